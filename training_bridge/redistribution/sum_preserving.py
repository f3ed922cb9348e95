"""Sum-preserving redistribution, the exact form (Sec. 3.3)."""

import numpy as np

from training_bridge.redistribution.masks import TINY, as_floats, check_factors, check_masks, group_sums, keep, weigh


def redistribute(advantages_BG: np.ndarray, factors_BG: np.ndarray, passing_BG: np.ndarray) -> np.ndarray:
    """Weight the passing advantages by quality and rescale them to their old sum. Eq. (2).

    Args:
        advantages_BG: (..., G) float, reward units; mean-centred over the valid rows, 0 on masked ones.
        factors_BG: (..., G) float in (0, 1], no unit; read where a rollout passes.
        passing_BG: (..., G) bool, False on masked rows.
    Returns:
        (..., G) float, reward units. Passing sum as before, everything else untouched (Eq. 3); with
        binary rewards a pass has (1 - mean(R)) f / mean_P(f) (Eq. 4). One passing rollout, or equal
        factors: the input. No passing rollout, or all pass: the input.
    Raises:
        ValueError: shapes differ, a mask is not bool, or a factor is outside (0, 1].
    """
    advantages_BG = as_floats(advantages_BG)
    check_masks(advantages_BG, passing_BG)
    check_factors(factors_BG, passing_BG)
    kept_BG = keep(advantages_BG, passing_BG)
    weighted_BG = weigh(kept_BG, factors_BG, passing_BG)
    train_BG = advantages_BG - kept_BG
    train_BG += np.multiply(weighted_BG, rescaling(kept_BG, weighted_BG), out=weighted_BG)
    return train_BG


def rescaling(kept_BG: np.ndarray, weighted_BG: np.ndarray) -> np.ndarray:
    """Find lambda, which gives the weighted advantages the old passing sum. Eq. (2).

    Args:
        kept_BG: (..., G) float, reward units; passing advantages, 0 elsewhere.
        weighted_BG: (..., G) float, reward units; the same times their factors.
    Returns:
        (..., 1) float, no unit. A denominator of at most 1e-12: 1, there is nothing to rescale.
    """
    total_B1, weighted_B1 = group_sums(kept_BG), group_sums(weighted_BG)
    nothing_B1 = weighted_B1 <= TINY
    return np.where(nothing_B1, weighted_B1.dtype.type(1), total_B1 / np.where(nothing_B1, 1, weighted_B1))


def conserves(
    train_BG: np.ndarray, advantages_BG: np.ndarray, passing_BG: np.ndarray, valid_BG: np.ndarray
) -> np.ndarray:
    """Say for which groups the conservation identities hold, to 1e-12. Eq. (3).

    Args:
        train_BG: (..., G) float, reward units; what training gets.
        advantages_BG: (..., G) float, reward units; outcome advantages.
        passing_BG: (..., G) bool.
        valid_BG: (..., G) bool.
    Returns:
        (...,) bool: passes keep their sum and every failure its advantage. The tolerance grows with
        advantages above 1, as rounding does.
    """
    change_BG = keep(train_BG - advantages_BG, valid_BG)
    largest_B = np.abs(advantages_BG).max(-1, initial=1.0, where=valid_BG)
    passing_change_B = np.abs(group_sums(keep(change_BG, passing_BG))[..., 0])
    failing_change_B = np.abs(keep(change_BG, ~passing_BG)).max(-1, initial=0.0)
    return np.maximum(passing_change_B, failing_change_B) <= TINY * largest_B
