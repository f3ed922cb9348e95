"""From a difference to a probability: isotonic regression, calibration in bins, Brier score, AUC. Core."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy


@dataclass(frozen=True)
class Steps:
    """A rising step function through its knots: read between them in a straight line, flat outside."""

    x: np.ndarray
    y: np.ndarray

    def at(self, x: np.ndarray) -> np.ndarray:
        return np.interp(x, self.x, self.y)


def isotonic(x_N: Sequence[float], y_N: Sequence[float], weight_N: Sequence[float] | None = None) -> Steps:
    """The rising function nearest to the points (pool adjacent violators); equal x are one point, by their mean.

    Args:
        x_N, y_N: (N,) float; weight_N: (N,) positive, 1 where absent.
    Raises:
        ValueError: no point (scipy would fail later).
    """
    x_N, y_N = np.asarray(x_N, float), np.asarray(y_N, float)
    if not len(x_N):
        raise ValueError("no point, expected at least one")
    weight_N = np.ones(len(x_N)) if weight_N is None else np.asarray(weight_N, float)
    x_K, at_N = np.unique(x_N, return_inverse=True)
    weight_K = np.bincount(at_N, weight_N)
    mean_K = np.bincount(at_N, weight_N * y_N) / weight_K
    return Steps(x_K, scipy.optimize.isotonic_regression(mean_K, weights=weight_K).x)


def preference(difference_N: Sequence[float], first_N: Sequence[float]) -> Steps:
    """P(a person puts the first of a pair above the second) by the difference of their W, the same from both sides.

    Args:
        difference_N: (N,) W of the first minus W of the second; first_N: (N,) 1, 0, or 1/2 for a tie.
    Returns:
        Steps with P(-d) = 1 - P(d).
    """
    d_N, y_N = np.asarray(difference_N, float), np.asarray(first_N, float)
    return isotonic(np.concatenate([d_N, -d_N]), np.concatenate([y_N, 1 - y_N]))


def brier(y_N: Sequence[float], p_N: Sequence[float]) -> float | None:
    """Mean squared distance of a probability from what came; None of nothing."""
    return float(np.mean((np.asarray(p_N, float) - np.asarray(y_N, float)) ** 2)) if len(y_N) else None


def auc(y_N: Sequence[int], score_N: Sequence[float]) -> float | None:
    """P(a positive scores above a negative), ties half; None with one class only."""
    y_N, score_N = np.asarray(y_N, bool), np.asarray(score_N, float)
    if y_N.all() or not y_N.any():
        return None
    ranks_N = scipy.stats.rankdata(score_N)
    positive, negative = int(y_N.sum()), int((~y_N).sum())
    return float((ranks_N[y_N].sum() - positive * (positive + 1) / 2) / (positive * negative))
