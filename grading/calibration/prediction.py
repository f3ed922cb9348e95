"""Prediction-powered means: few labels by people, a cheap prediction for everything. Core.

What leaves [0, 1] is clipped by `clipped`, which says so; these functions tell what the formula gives.
"""

from dataclasses import dataclass

import numpy as np

from grading.calibration.intervals import CONFIDENCE, normal


@dataclass(frozen=True)
class Mean:
    value: float
    se: float
    low: float
    high: float
    lam: float = 1.0


def _mean(value: float, se: float, lam: float, confidence: float) -> Mean:
    half = normal(confidence) * se
    return Mean(float(value), float(se), float(value - half), float(value + half), float(lam))


def ppi(
    labels_N: np.ndarray,
    predicted_N: np.ndarray,
    predicted_U: np.ndarray,
    *,
    lam: float | None = 1.0,
    ddof: int = 1,
    confidence: float = CONFIDENCE,
) -> Mean:
    """theta = lam mean(f_U) + mean(y - lam f); var = lam^2 var(f_U) / U + var(y - lam f) / N.

    Args:
        labels_N: (N,) by people; predicted_N: (N,) of the same things; predicted_U: (U,) of those without a label.
        lam: how far predictions are trusted; 0 is the plain mean of the labels, None tunes it.
        ddof: of the variances; 1, as few labels are the rule (ppi-python takes 0).
    Raises:
        ValueError: fewer than two labels or predictions without a label, or other lengths.
    """
    y_N, f_N, f_U = (np.asarray(x, float) for x in (labels_N, predicted_N, predicted_U))
    if len(y_N) != len(f_N) or len(y_N) < 2 or len(f_U) < 2:
        raise ValueError(f"{len(y_N)} labels, {len(f_N)} and {len(f_U)} predictions, expected N, N and U, at least 2")
    lam = tuned(y_N, f_N, f_U, ddof=ddof) if lam is None else lam
    rest_N = y_N - lam * f_N
    variance = lam**2 * f_U.var(ddof=ddof) / len(f_U) + rest_N.var(ddof=ddof) / len(y_N)
    return _mean(lam * f_U.mean() + rest_N.mean(), variance**0.5, lam, confidence)


def tuned(labels_N: np.ndarray, predicted_N: np.ndarray, predicted_U: np.ndarray, *, ddof: int = 1) -> float:
    """The lam of the least variance: cov(y, f) / ((1 + N / U) var(f)), the variance over all predictions; 0 if flat."""
    spread = np.concatenate([predicted_N, predicted_U]).var(ddof=1)
    together = np.cov(labels_N, predicted_N, ddof=ddof)[0, 1]
    return float(together / ((1 + len(labels_N) / len(predicted_U)) * spread)) if spread > 0 else 0.0


def ppi_clustered(
    labels_N: np.ndarray,
    predicted_N: np.ndarray,
    groups_N: np.ndarray,
    *,
    lam: float | None = 1.0,
    confidence: float = CONFIDENCE,
) -> Mean:
    """`ppi` over the means of groups: the target is the mean of group means, and a group is one observation.

    Args:
        labels_N: (N,) nan where nobody looked; a group has labels throughout or none.
        predicted_N: (N,); groups_N: (N,) the group of each.
    """
    labels_N, predicted_N = np.asarray(labels_N, float), np.asarray(predicted_N, float)
    _, at_N = np.unique(groups_N, return_inverse=True)
    size_G = np.bincount(at_N)
    label_G, predicted_G = (np.bincount(at_N, x) / size_G for x in (labels_N, predicted_N))
    seen_G = ~np.isnan(label_G)
    if np.bincount(at_N, ~np.isnan(labels_N))[~seen_G].any():
        raise ValueError("a group is labelled in part, expected throughout or not at all")
    return ppi(label_G[seen_G], predicted_G[seen_G], predicted_G[~seen_G], lam=lam, confidence=confidence)


def asi(
    labels_N: np.ndarray,
    predicted_N: np.ndarray,
    probability_N: np.ndarray,
    *,
    lam: float = 1.0,
    confidence: float = CONFIDENCE,
) -> Mean:
    """The mean under active sampling: mean(lam f + xi / pi (y - lam f)), xi = 1 where a person looked.

    With f = 0 it is the inverse-probability-weighted mean.

    Args:
        labels_N: (N,) nan where nobody looked; predicted_N: (N,); probability_N: (N,) of being looked at, in (0, 1].
    Raises:
        ValueError: a probability outside (0, 1], fewer than two things.
    """
    y_N, f_N, p_N = (np.asarray(x, float) for x in (labels_N, predicted_N, probability_N))
    if len(y_N) < 2 or not ((p_N > 0) & (p_N <= 1)).all():
        raise ValueError(f"{len(y_N)} things, probabilities from {p_N.min(initial=1)}: expected 2 or more in (0, 1]")
    seen_N = ~np.isnan(y_N)
    term_N = lam * f_N + np.where(seen_N, (np.where(seen_N, y_N, 0.0) - lam * f_N) / p_N, 0.0)
    return _mean(term_N.mean(), term_N.std(ddof=1) / len(y_N) ** 0.5, lam, confidence)


def rogan_gladen(share: float, *, sensitivity: float, specificity: float) -> float | None:
    """The true share behind a judged one: (share + specificity - 1) / (sensitivity + specificity - 1), in [0, 1].

    None where the judge tells nothing: sensitivity + specificity <= 1.
    """
    told = sensitivity + specificity - 1
    return min(max((share + specificity - 1) / told, 0.0), 1.0) if told > 0 else None


def clipped(low: float, high: float) -> tuple[float, float, bool]:
    """Both ends inside [0, 1], and whether one had left it."""
    inside = min(max(low, 0.0), 1.0), min(max(high, 0.0), 1.0)
    return *inside, inside != (low, high)
