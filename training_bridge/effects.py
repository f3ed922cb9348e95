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
    """Compare a group's numbers with its outcome advantages: `effects_of` a batch of one."""
    return effects_of([numbers])[0]


def effects_of(many: Sequence[Numbers]) -> list[Effect]:
    """Compare groups' numbers with their outcome advantages.

    Args:
        many: from `payload.numbers_of`.
    Returns:
        The comparison of each. A row without a usable reward counts as masked, so that every number is finite.
    """
    alike: dict[int, list[int]] = {}
    for place, numbers in enumerate(many):
        alike.setdefault(len(numbers.rows), []).append(place)
    found: dict[int, Effect] = {}
    for places in alike.values():
        found |= zip(places, _effects([many[place] for place in places]), strict=True)
    return [found[place] for place in range(len(many))]


def _effects(many: Sequence[Numbers]) -> list[Effect]:
    """Of groups of one size."""
    valid_BG = np.array([[row.reward is not None for row in numbers.rows] for numbers in many], bool)
    passing_BG = np.array([[row.outcome == "passed" for row in numbers.rows] for numbers in many], bool) & valid_BG
    rewards_BG = np.array([[row.reward or 0.0 for row in numbers.rows] for numbers in many], float)
    with np.errstate(over="ignore", invalid="ignore"):  # a reward may be finite and its group's sums not: excluded
        before_BG = np.nan_to_num(outcome_advantages(rewards_BG, valid_BG)) if rewards_BG.size else rewards_BG
    after_BG = np.array([[row.advantage for row in numbers.rows] for numbers in many], float)
    conserved_B = conserves(after_BG, before_BG, passing_BG, valid_BG).tolist()
    wanted_B = _wanted(many, before_BG, passing_BG)
    return list(map(Effect, before_BG, after_BG, passing_BG, valid_BG, wanted_B, conserved_B))


def _wanted(many: Sequence[Numbers], before_BG: np.ndarray, passing_BG: np.ndarray) -> list[float | None]:
    said = [numbers.credit.regime in REDISTRIBUTING for numbers in many]
    weighed_BG = passing_BG & np.array(said)[:, None]
    factors_BG = np.array([[row.factor or np.nan for row in numbers.rows] for numbers in many], float)
    kept_BG = np.maximum(keep(before_BG, weighed_BG), 0)
    wanted_B1 = rescaling(kept_BG, weigh(kept_BG, factors_BG, weighed_BG))
    return [wanted if asked else None for wanted, asked in zip(wanted_B1[:, 0].tolist(), said, strict=True)]


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
