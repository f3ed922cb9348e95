"""What the training implementation adds: a bound on lambda, centring, shaped rewards (App. A.2)."""

from typing import NamedTuple

import numpy as np

from training_bridge.redistribution.masks import as_floats, check_factors, check_masks, keep, weigh
from training_bridge.redistribution.outcome import centred
from training_bridge.redistribution.sum_preserving import rescaling

# Relative: a lambda that is the bound on paper may lie a rounding error above it.
CAP_TOLERANCE = 1e-12


class Bounded(NamedTuple):
    """Training advantages with what made them.

    train_BG: (..., G) float, reward units; sum 0 over the valid rows.
    weighted_BG: (..., G) float, reward units; B, before centring.
    lambda_B: (...,) float, no unit; after the bound.
    capped_B: (...,) bool.
    """

    train_BG: np.ndarray
    weighted_BG: np.ndarray
    lambda_B: np.ndarray
    capped_B: np.ndarray


def bounded(
    advantages_BG: np.ndarray,
    factors_BG: np.ndarray,
    passing_BG: np.ndarray,
    valid_BG: np.ndarray,
    lambda_max: float | None,
) -> Bounded:
    """Redistribute with a bounded lambda, then centre. Eq. (7).

    Args:
        advantages_BG: (..., G) float, reward units; mean-centred over the valid rows, 0 on masked
            ones, above 0 on passes (binary rewards; for shaped ones see `bounded_shaped`).
        factors_BG: (..., G) float in (0, 1], no unit; read where a rollout passes.
        passing_BG: (..., G) bool, False on masked rows.
        valid_BG: (..., G) bool.
        lambda_max: at least 1, no unit; None for no bound.
    Returns:
        The training advantages. While the bound is slack they are those of Eq. (2). One passing
        rollout or equal factors: the input, as long as 1/f is within the bound.
    Raises:
        ValueError: shapes differ, a mask is not bool, a factor is outside (0, 1], or lambda_max < 1.
    """
    advantages_BG = as_floats(advantages_BG)
    check_masks(advantages_BG, passing_BG, valid_BG)
    check_factors(factors_BG, passing_BG)
    kept_BG = keep(advantages_BG, passing_BG)
    credit_BG = weigh(kept_BG, factors_BG, passing_BG)
    return _bounded(advantages_BG - kept_BG, kept_BG, credit_BG, valid_BG, lambda_max)


def bounded_shaped(
    advantages_BG: np.ndarray,
    factors_BG: np.ndarray,
    passing_BG: np.ndarray,
    valid_BG: np.ndarray,
    lambda_max: float | None,
) -> Bounded:
    """Redistribute a+ = max(a, 0) of the passes with a bounded lambda, then centre. Eq. (8).

    Args:
        advantages_BG: (..., G) float, reward units; shaped rewards, mean-centred over the valid
            rows, 0 on masked ones.
        factors_BG: (..., G) float in (0, 1], no unit; read where a rollout passes.
        passing_BG: (..., G) bool, False on masked rows.
        valid_BG: (..., G) bool.
        lambda_max: at least 1, no unit; None for no bound.
    Returns:
        The training advantages. Binary rewards: those of Eq. (7). No pass above the mean: lambda is
        1, the passes are 0 and centring moves everyone.
    Raises:
        ValueError: shapes differ, a mask is not bool, a factor is outside (0, 1], or lambda_max < 1.
    """
    advantages_BG = as_floats(advantages_BG)
    check_masks(advantages_BG, passing_BG, valid_BG)
    check_factors(factors_BG, passing_BG)
    kept_BG = keep(advantages_BG, passing_BG)
    failing_BG = advantages_BG - kept_BG
    np.maximum(kept_BG, 0, out=kept_BG)
    return _bounded(failing_BG, kept_BG, weigh(kept_BG, factors_BG, passing_BG), valid_BG, lambda_max)


def _bounded(failing_BG, kept_BG, credit_BG, valid_BG, lambda_max) -> Bounded:
    if lambda_max is not None and not lambda_max >= 1:
        raise ValueError(f"lambda_max is {lambda_max}, expected at least 1, or None for the exact form")
    lambda_B1 = rescaling(kept_BG, credit_BG)
    capped_B1 = np.zeros_like(lambda_B1, bool) if lambda_max is None else lambda_B1 > lambda_max * (1 + CAP_TOLERANCE)
    bound_B1 = np.minimum(lambda_B1, np.inf if lambda_max is None else lambda_max)
    weighted_BG = failing_BG
    weighted_BG += np.multiply(credit_BG, bound_B1, out=credit_BG)
    return Bounded(centred(weighted_BG, valid_BG), weighted_BG, bound_B1[..., 0], capped_B1[..., 0])
