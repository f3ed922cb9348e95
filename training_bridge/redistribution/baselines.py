"""What redistribution is compared with: downweighting alone, and discounted rewards."""

import numpy as np

from training_bridge.redistribution.masks import as_floats, check_factors, check_masks, group_sums, keep, weigh


def downweight_only(advantages_BG: np.ndarray, factors_BG: np.ndarray, passing_BG: np.ndarray) -> np.ndarray:
    """Weight the passing advantages and stop there: no rescaling, no centring. Eq. (1).

    Args:
        advantages_BG: (..., G) float, reward units; mean-centred over the valid rows, 0 on masked ones.
        factors_BG: (..., G) float in (0, 1], no unit; read where a rollout passes.
        passing_BG: (..., G) bool, False on masked rows.
    Returns:
        (..., G) float, reward units; f a+ on passes, the input on failures. The sum is below 0 by
        the deficit. All factors 1 and no pass below the mean: the input.
    Raises:
        ValueError: shapes differ, a mask is not bool, or a factor is outside (0, 1].
    """
    advantages_BG = as_floats(advantages_BG)
    check_masks(advantages_BG, passing_BG)
    check_factors(factors_BG, passing_BG)
    kept_BG = keep(advantages_BG, passing_BG)
    weighted_BG = advantages_BG - kept_BG
    weighted_BG += weigh(np.maximum(kept_BG, 0), factors_BG, passing_BG)
    return weighted_BG


def deficit(advantages_BG: np.ndarray, factors_BG: np.ndarray, passing_BG: np.ndarray) -> np.ndarray:
    """Sum the credit that downweighting takes and nobody gets, D. Eq. (1).

    Args:
        advantages_BG, factors_BG, passing_BG: as for `downweight_only`.
    Returns:
        (...,) float, reward units, at least 0. No passing rollout, or factors of 1: 0.
    Raises:
        ValueError: as for `downweight_only`.
    """
    advantages_BG = as_floats(advantages_BG)
    check_masks(advantages_BG, passing_BG)
    check_factors(factors_BG, passing_BG)
    kept_BG = np.maximum(keep(advantages_BG, passing_BG), 0)
    return group_sums(kept_BG * (1 - keep(as_floats(factors_BG), passing_BG)))[..., 0]


def discounted_rewards(rewards_BG: np.ndarray, factors_BG: np.ndarray, passing_BG: np.ndarray) -> np.ndarray:
    """Multiply the rewards of the passes by their factors; centred, they are Eq. (11).

    Args:
        rewards_BG: (..., G) float, reward units; effective rewards, 0 on masked rows.
        factors_BG: (..., G) float in (0, 1], no unit; read where a rollout passes.
        passing_BG: (..., G) bool, False on masked rows.
    Returns:
        (..., G) float, reward units. A pass with a low factor may end below the mean, and one with
        a negative reward gains by a low factor: see `favours_the_worse`.
    Raises:
        ValueError: shapes differ, a mask is not bool, or a factor is outside (0, 1].
    """
    rewards_BG = as_floats(rewards_BG)
    check_masks(rewards_BG, passing_BG)
    check_factors(factors_BG, passing_BG)
    return keep(rewards_BG, ~passing_BG) + weigh(keep(rewards_BG, passing_BG), factors_BG, passing_BG)


def favours_the_worse(rewards_BG: np.ndarray, passing_BG: np.ndarray) -> np.ndarray:
    """Say in which groups discounting rewards the lower factor: a pass has a negative reward.

    Args:
        rewards_BG: (..., G) float, reward units.
        passing_BG: (..., G) bool.
    Returns:
        (...,) bool.
    """
    return (passing_BG & (rewards_BG < 0)).any(-1)
