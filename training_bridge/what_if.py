"""What redistribution pays a batch of graded groups under given factors. The arithmetic of `payload`, batched. Core."""

from dataclasses import dataclass

import numpy as np
import scipy

from training_bridge.redistribution import regimes
from training_bridge.redistribution.additive import neutral_when_equal
from training_bridge.redistribution.masks import TINY
from training_bridge.redistribution.outcome import outcome_advantages
from training_bridge.redistribution.safeguards import bounded_shaped
from training_bridge.redistribution.sum_preserving import conserves


@dataclass(frozen=True)
class Batch:
    """Groups that dynamic sampling keeps, as they count. Rows that are not there are masked like invalid ones.

    rewards_BG: (B, G) float64, reward units; effective, 0 where masked.
    passing_BG, valid_BG: (B, G) bool. neutral_B: (B,) bool, factors are divided by the group's best one first.
    """

    rewards_BG: np.ndarray
    passing_BG: np.ndarray
    valid_BG: np.ndarray
    neutral_B: np.ndarray


@dataclass(frozen=True)
class Paid:
    """What training gets.

    advantages_BG: (B, G) float64, reward units; 0 where masked. lambda_B: (B,) float64, no unit, after the bound.
    capped_B, fallback_B: (B,) bool; a fallback has its outcome advantages and is not capped.
    exact_B: (B,) bool, passes keep their sum and failures their advantages.
    """

    advantages_BG: np.ndarray
    lambda_B: np.ndarray
    capped_B: np.ndarray
    exact_B: np.ndarray
    fallback_B: np.ndarray

    @property
    def regime_B(self) -> np.ndarray:
        """(B,) str, one of `regimes.REGIMES`."""
        scaled_B = np.where(self.capped_B, regimes.BOUNDED, np.where(self.exact_B, regimes.EXACT, regimes.CLIPPED))
        return np.where(self.fallback_B, regimes.FALLBACK, scaled_B)


def paid(batch: Batch, factors_BG: np.ndarray, lambda_max: float | None) -> Paid:
    """Redistribute every group, Eq. (8), as `regimes.redistributed_credit` does one.

    Args:
        batch: groups with at least one pass and one failure each.
        factors_BG: (B, G) float in (0, 1], no unit; read where a rollout passes.
        lambda_max: at least 1, no unit; None for the exact form.
    Returns:
        The numbers; a group whose redistribution would put a failure above a pass, or is not finite, falls back.
    Raises:
        ValueError: a factor of a pass is outside (0, 1], or lambda_max < 1.
    """
    before_BG = outcome_advantages(batch.rewards_BG, batch.valid_BG)
    used_BG = factors_BG
    if batch.neutral_B.any():
        used_BG = np.where(batch.neutral_B[:, None], neutral_when_equal(factors_BG, batch.passing_BG), factors_BG)
    with np.errstate(over="ignore", invalid="ignore"):
        made = bounded_shaped(before_BG, used_BG, batch.passing_BG, batch.valid_BG, lambda_max)
    finite_B = np.isfinite(made.train_BG).all(-1)
    train_BG = np.where(finite_B[:, None], made.train_BG, before_BG)
    groups = regimes.Groups(batch.rewards_BG, batch.passing_BG, batch.valid_BG)
    fallback_B = ~finite_B | regimes.introduces_inversion(train_BG, before_BG, groups)
    train_BG = np.where(fallback_B[:, None], before_BG, train_BG)
    return Paid(
        advantages_BG=train_BG,
        lambda_B=np.where(fallback_B, 1.0, made.lambda_B),
        capped_B=made.capped_B & ~fallback_B,
        exact_B=conserves(train_BG, before_BG, batch.passing_BG, batch.valid_BG),
        fallback_B=fallback_B,
    )


def moved(one_BG: np.ndarray, other_BG: np.ndarray) -> float | None:
    """Share of |advantage| that lies elsewhere in the other: the sum of changes over the sum of `one`.

    Args:
        one_BG, other_BG: (B, G) float, reward units.
    Returns:
        At least 0, no unit; None where `one` is 0 throughout.
    """
    total = np.abs(one_BG).sum()
    return float(np.abs(other_BG - one_BG).sum() / total) if total > TINY else None


def moved_interval(one_BG: np.ndarray, other_BG: np.ndarray) -> tuple[float, float] | None:
    """95 % interval of `moved`, groups being the independent units: a ratio's linearised error and Student's t.

    Args:
        one_BG, other_BG: (B, G) float, reward units.
    Returns:
        Both ends, the lower one at least 0; None for fewer than two groups, where `one` is 0 throughout, or where all
        groups move by the same share: an interval of no width would claim what nobody knows.
    """
    total_B, change_B = np.abs(one_BG).sum(-1), np.abs(other_BG - one_BG).sum(-1)
    total, groups = total_B.sum(), len(total_B)
    if groups < 2 or total <= TINY:
        return None
    share = change_B.sum() / total
    error = np.sqrt(((change_B - share * total_B) ** 2).sum() * groups / (groups - 1)) / total
    if error <= TINY:
        return None
    half = float(scipy.stats.t.ppf(0.975, groups - 1) * error)
    return max(0.0, float(share) - half), float(share) + half
