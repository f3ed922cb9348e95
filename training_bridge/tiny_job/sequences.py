"""From the tokens of rollouts to the padded tensors a loss reads."""

from dataclasses import dataclass

import torch

from training_bridge.tiny_job.language import PAD, SLOT_VERBS
from training_bridge.tiny_job.policy import Policy


@dataclass(frozen=True)
class Sequences:
    """A batch of sequences.

    Args:
        tokens_BT: (B, T) int64, padded at the end.
        contexts_BT: (B, T) int64, the situation each response token was written in; 0 elsewhere.
        mask_BT: (B, T) float, 1 on response tokens.
    """

    tokens_BT: torch.Tensor
    contexts_BT: torch.Tensor
    mask_BT: torch.Tensor


def pad(policy: Policy, tokens: list[list[int]]) -> Sequences:
    """Pad sequences and find out which tokens the model wrote and in which situation.

    Args:
        policy: whose language and device.
        tokens: ids of each sequence, the task first.
    Returns:
        The batch, as long as its longest sequence.
    """
    language = policy.language
    contexts, masks = [], []
    for sequence in tokens:
        key = language.tokens[sequence[0]].removeprefix("task ")
        before = [PAD, *sequence[:-1]]
        waiting = [language.tokens[token] if language.tokens[token] in SLOT_VERBS else None for token in before]
        written = [language.is_response(token) for token in sequence]
        contexts.append([policy.context_id[key, verb] for verb in waiting])
        masks.append([float(is_response) for is_response in written])
    return Sequences(_stack(policy, tokens, torch.int64), _stack(policy, contexts, torch.int64), _stack(policy, masks))


def pad_floats(policy: Policy, rows: list[list[float]]) -> torch.Tensor:
    """Pad rows of numbers with zeros: (B, T) float."""
    return _stack(policy, rows)


def _stack(policy: Policy, rows: list[list], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    tensors = [torch.tensor(row, dtype=dtype) for row in rows]
    return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True).to(policy.head.weight.device)
