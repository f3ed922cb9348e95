"""What a group's numbers did to its outcome advantages, row by row and in sum. Core."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from training_bridge.payload import Numbers
from training_bridge.redistribution import regimes
from training_bridge.redistribution.masks import keep, weigh
from training_bridge.redistribution.outcome import outcome_advantages
from training_bridge.redistribution.sum_preserving import conserves, rescaling

REDISTRIBUTING = (regimes.EXACT, regimes.BOUNDED, regimes.CLIPPED)


@dataclass(frozen=True)
class Effect:
    """Outcome advantages beside those that train, over effective rewards.

    before_G, after_G: one float a row, reward units; 0 on masked rows.
    passing_G, valid_G: who passes in effect, and who is in the statistics.
    wanted: lambda without its bound, no unit; None where nothing is redistributed.
    sums_kept: passes keep their sum and every failure its advantage.
    """

    before_G: np.ndarray
    after_G: np.ndarray
    passing_G: np.ndarray
    valid_G: np.ndarray
    wanted: float | None
    sums_kept: bool

    @property
    def failing_G(self) -> np.ndarray:
        """Valid rows that do not pass in effect."""
        return self.valid_G & ~self.passing_G

    @property
    def credit(self) -> tuple[float, float]:
        """S+, the positive outcome advantages of the passes, and what the passes have now."""
        due_G = np.maximum(self.before_G, 0)
        return float(due_G[self.passing_G].sum()), float(self.after_G[self.passing_G].sum())

    @property
    def penalty(self) -> tuple[float, float]:
        """The outcome advantages of the failures, and what they have now."""
        return float(self.before_G[self.failing_G].sum()), float(self.after_G[self.failing_G].sum())


def effect_of(numbers: Numbers) -> Effect:
    """Compare a group's numbers with its outcome advantages.

    Args:
        numbers: from `payload.numbers`.
    Returns:
        The comparison. A row without a usable reward counts as masked, so that every number is finite.
    """
    rows = numbers.rows
    valid_G = np.array([row.reward is not None for row in rows], bool)
    passing_G = np.array([row.outcome == "passed" for row in rows], bool) & valid_G
    rewards_G = np.array([row.reward or 0.0 for row in rows], float)
    with np.errstate(over="ignore", invalid="ignore"):  # a reward may be finite and its group's sums not: excluded
        before_G = np.nan_to_num(outcome_advantages(rewards_G, valid_G)) if rows else rewards_G
    after_G = np.array([row.advantage for row in rows], float)
    return Effect(
        before_G=before_G,
        after_G=after_G,
        passing_G=passing_G,
        valid_G=valid_G,
        wanted=_wanted(numbers, before_G, passing_G),
        sums_kept=bool(conserves(after_G, before_G, passing_G, valid_G)),
    )


def _wanted(numbers: Numbers, before_G: np.ndarray, passing_G: np.ndarray) -> float | None:
    if numbers.credit.regime not in REDISTRIBUTING:
        return None
    factors_G = np.array([np.nan if row.factor is None else row.factor for row in numbers.rows], float)
    kept_G = np.maximum(keep(before_G, passing_G), 0)
    return float(rescaling(kept_G, weigh(kept_G, factors_G, passing_G))[0])


def balance(advantages: Sequence[float], lengths: Sequence[float | None]) -> tuple[float, float]:
    """Sum A len and len over the rows whose length is known: what a token-mean loss sees is their quotient.

    Args:
        advantages: one a row, reward units.
        lengths: one a row, tokens; None where the job gave none.
    Returns:
        Both sums; (0, 0) where no length is known.
    """
    known = [(a, n) for a, n in zip(advantages, lengths, strict=True) if n is not None]
    return float(sum(a * n for a, n in known)), float(sum(n for _, n in known))
