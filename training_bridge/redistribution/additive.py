"""An additive rubric advantage beside the method, PAPO-style: our reading of it, as its paper gives no std or eps."""

import numpy as np

from training_bridge.redistribution.masks import as_floats, check_factors, check_masks, group_sizes, group_sums, keep

EPS = 1e-6


def rubric_advantages(scores_BG: np.ndarray, passing_BG: np.ndarray) -> np.ndarray:
    """Standardise the passes' scores over the passes alone; to be added to the outcome advantages.

    s' = (s - mean_P s) / (std_P s + 1e-6) with the sample's standard deviation (n - 1). The Gagar paper's Sec. 2 says
    that correct rollouts alone are compared; std and eps are ours.

    Args:
        scores_BG: (..., G) float, no unit, higher is better; read where a rollout passes, may be NaN elsewhere.
        passing_BG: (..., G) bool, False on masked rows.
    Returns:
        (..., G) float, no unit; sums to 0 over the passes, 0 elsewhere. One pass, or equal scores: 0. A pass may end
        below a failure once it is added: unlike redistribution it promises no order.
    Raises:
        ValueError: shapes differ or a mask is not bool.
    """
    scores_BG = as_floats(scores_BG)
    check_masks(scores_BG, passing_BG)
    kept_BG = keep(scores_BG, passing_BG)
    passes_B1 = group_sizes(passing_BG, kept_BG)
    centred_BG = keep(kept_BG - group_sums(kept_BG) / np.maximum(passes_B1, 1), passing_BG)
    std_B1 = np.sqrt(group_sums(centred_BG**2) / np.maximum(passes_B1 - 1, 1))
    return centred_BG / (std_B1 + EPS)


def neutral_when_equal(factors_BG: np.ndarray, passing_BG: np.ndarray) -> np.ndarray:
    """Divide the factors by the best one of the group, so that equal factors, or one pass, change nothing.

    The cap binds where the mean factor is below 2/3, also if all passes are equal or there is one. With this option the
    best pass has factor 1: only differences inside the group count, and no longer how good its best is.

    Args:
        factors_BG: (..., G) float in (0, 1], no unit; read where a rollout passes.
        passing_BG: (..., G) bool.
    Returns:
        (..., G) float in (0, 1] on passes, 1 elsewhere.
    Raises:
        ValueError: shapes differ, a mask is not bool, or a factor is outside (0, 1].
    """
    factors_BG = as_floats(factors_BG)
    check_factors(factors_BG, passing_BG)
    kept_BG = keep(factors_BG, passing_BG)
    best_B1 = kept_BG.max(-1, keepdims=True)
    return np.where(passing_BG, kept_BG / np.where(best_B1 > 0, best_B1, 1), 1.0)
