"""One optimiser step on frozen advantages. Axes: `_B` sequences, `_T` tokens."""

from dataclasses import dataclass

import torch

from training_bridge.client.sets import AdvantageSet
from training_bridge.redistribution.tokens import token_advantages
from training_bridge.tiny_job.loss import token_mean_loss
from training_bridge.tiny_job.policy import Policy
from training_bridge.tiny_job.rollout import Rollout
from training_bridge.tiny_job.sequences import pad, pad_floats

GRADIENT_NORM = 1.0


@dataclass(frozen=True)
class Row:
    """One rollout of a batch and the advantage it was given, reward units."""

    rollout: Rollout
    advantage: float


def training_rows(sets: list[AdvantageSet], rollouts: dict[str, Rollout]) -> list[Row]:
    """Choose what goes into the loss.

    Args:
        sets: frozen for this step.
        rollouts: by external id.
    Returns:
        Every valid rollout of the groups that train: filtered and excluded groups must not dilute a token mean, nor
        rollouts outside the statistics (invalid, masked as truncated, or late), which have no equivalent reward.
    """
    return [
        Row(rollouts[name], advantage)
        for chosen in sets
        if chosen.train
        for name, advantage in chosen.advantage.items()
        if name in rollouts and chosen.equivalent_reward.get(name) is not None
    ]


def train(policy: Policy, optimizer: torch.optim.Optimizer, rows: list[Row]) -> float | None:
    """Take one step.

    Args:
        policy: is changed in place.
        optimizer: of its parameters.
        rows: the batch.
    Returns:
        The loss before the step, reward units; None, and no step, without rows.
    """
    if not rows:
        return None
    sequences = pad(policy, [row.rollout.tokens for row in rows])
    old_log_probs_BT = pad_floats(policy, [row.rollout.log_probs for row in rows])
    advantages_B = torch.tensor([row.advantage for row in rows], device=old_log_probs_BT.device)
    advantages_BT = token_advantages(advantages_B, sequences.mask_BT)
    log_probs_BT, _ = policy.score(sequences.tokens_BT, sequences.contexts_BT)
    loss = token_mean_loss(log_probs_BT, old_log_probs_BT, advantages_BT, sequences.mask_BT)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(policy.parameters(), GRADIENT_NORM)
    optimizer.step()
    return loss.item()


@torch.no_grad()
def mean_entropy(policy: Policy, rollouts: list[Rollout]) -> float:
    """Return the mean entropy of the choices in some rollouts, nats a response token."""
    sequences = pad(policy, [rollout.tokens for rollout in rollouts])
    _, entropy_BT = policy.score(sequences.tokens_BT, sequences.contexts_BT)
    return ((entropy_BT * sequences.mask_BT).sum() / sequences.mask_BT.sum()).item()
