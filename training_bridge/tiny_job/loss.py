"""The token-mean policy gradient loss. Axes: `_B` sequences, `_T` tokens."""

import torch


def token_mean_loss(
    log_probs_BT: torch.Tensor,
    old_log_probs_BT: torch.Tensor,
    advantages_BT: torch.Tensor,
    mask_BT: torch.Tensor,
    clip_ratio: float = 0.2,
) -> torch.Tensor:
    """Average the clipped policy gradient objective over all response tokens of the batch.

    Args:
        log_probs_BT: (B, T) float, of the tokens under the policy as it is.
        old_log_probs_BT: (B, T) float, when they were written; equal for rollouts of this step.
        advantages_BT: (B, T) float, reward units; one sequence's advantage on each of its response tokens.
        mask_BT: (B, T) float, 1 on response tokens.
        clip_ratio: how far the ratio of both probabilities may move a late rollout's objective; no unit.
    Returns:
        () float. With all ratios 1 it is minus the token-weighted mean advantage. No response token: 0.
    """
    ratios_BT = ((log_probs_BT - old_log_probs_BT) * mask_BT).exp()
    clipped_BT = ratios_BT.clamp(1 - clip_ratio, 1 + clip_ratio)
    objective_BT = torch.minimum(ratios_BT * advantages_BT, clipped_BT * advantages_BT)
    return -(objective_BT * mask_BT).sum() / mask_BT.sum().clamp(min=1)
