"""A small autoregressive policy: a GRU over the tokens of a rollout, the task as its prompt.

Axes: `_B` sequences, `_T` tokens, `_V` the vocabulary, `_C` the situations a token is written in.
"""

import torch
from torch import nn

from training_bridge.tiny_job.language import PAD, Language


class Policy(nn.Module):
    """Predicts the next token of a rollout.

    Args:
        language: the tokens.
        width: size of an embedding; the hidden state has twice as many units.
    """

    def __init__(self, language: Language, width: int = 48) -> None:
        super().__init__()
        self.language = language
        self.embed = nn.Embedding(len(language.tokens), width, padding_idx=PAD)
        self.gru = nn.GRU(width, 2 * width, batch_first=True)
        self.head = nn.Linear(2 * width, len(language.tokens))
        self.context_id = {context: number for number, context in enumerate(language.contexts())}
        allowed_CV = torch.zeros(len(self.context_id), len(language.tokens), dtype=torch.bool)
        for context, number in self.context_id.items():
            allowed_CV[number, language.allowed(context)] = True
        self.register_buffer("allowed_CV", allowed_CV, persistent=False)

    def read(self, tokens_BT: torch.Tensor, state_1BH: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Read tokens on from a hidden state.

        Args:
            tokens_BT: (B, T) int64 ids.
            state_1BH: (1, B, H) float, or None at the start.
        Returns:
            (B, T, H) the outputs after each token, and (1, B, H) the state after the last.
        """
        return self.gru(self.embed(tokens_BT), state_1BH)

    def log_probs(self, outputs: torch.Tensor, contexts: torch.Tensor) -> torch.Tensor:
        """Score what may come next.

        Args:
            outputs: (..., H) float, outputs of `read`.
            contexts: (...) int64, number of the situation.
        Returns:
            (..., V) log probabilities; -inf for what may not come.
        """
        return self.head(outputs).masked_fill(~self.allowed_CV[contexts], -torch.inf).log_softmax(-1)

    def score(self, tokens_BT: torch.Tensor, contexts_BT: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Score written sequences.

        Args:
            tokens_BT: (B, T) int64 ids.
            contexts_BT: (B, T) int64, the situation each token was written in; any number on other tokens.
        Returns:
            (B, T) log probability of each token given the ones before (0 for the first), and (B, T) the entropy of the
            distribution it was drawn from, both meaningless where the model did not write.
        """
        outputs, _ = self.read(tokens_BT[:, :-1])
        log_probs = self.log_probs(outputs, contexts_BT[:, 1:])
        # A token of the environment is not among the allowed ones; its -inf must not reach the loss.
        taken = log_probs.gather(-1, tokens_BT[:, 1:, None])[..., 0].nan_to_num(neginf=0.0)
        entropy = -(log_probs.exp() * log_probs.nan_to_num(neginf=0.0)).sum(-1)
        return nn.functional.pad(taken, (1, 0)), nn.functional.pad(entropy, (1, 0))
