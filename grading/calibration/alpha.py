"""Krippendorff's alpha: agreement of any number of raters with holes in their ratings. Core."""

from collections.abc import Sequence

import numpy as np

LEVELS = ("nominal", "ordinal", "interval", "ratio")


def coincidences(ratings_RU: Sequence[Sequence[float | None]], labels: Sequence[float]) -> np.ndarray:
    """How often two raters of a unit say c and k: pairs in a unit of m ratings count 1 / (m - 1).

    Args:
        ratings_RU: (R, U), None where a rater left a unit out.
        labels: all possible ratings, in their order.
    Returns:
        (K, K) float, symmetric; 0 throughout where no unit has two ratings. Tables of groups add up.
    Raises:
        ValueError: a rating that is not possible.
    """
    at = {label: k for k, label in enumerate(labels)}
    unknown = sorted({r for row in ratings_RU for r in row if r is not None} - at.keys())
    if unknown:
        raise ValueError(f"ratings {unknown}, expected only {list(labels)}")
    found_KK = np.zeros((len(labels), len(labels)))
    for unit in zip(*ratings_RU, strict=True):
        said = [at[r] for r in unit if r is not None]
        if len(said) > 1:
            count_K = np.bincount(said, minlength=len(labels)).astype(float)
            found_KK += (np.outer(count_K, count_K) - np.diag(count_K)) / (len(said) - 1)
    return found_KK


def alpha(coincidences_KK: np.ndarray, labels: Sequence[float], level: str = "ordinal") -> np.ndarray:
    """alpha = 1 - observed / expected disagreement.

    Args:
        coincidences_KK: (…, K, K).
        level: how far two labels are apart; ordinal counts the ratings in between, so it is not interval.
    Returns:
        (…) float; nan where no unit has two ratings, or all ratings are one and the same.
    """
    if level not in LEVELS:
        raise ValueError(f"level {level!r}, expected one of {', '.join(LEVELS)}")
    coincidences_KK = np.asarray(coincidences_KK, float)
    count_K = coincidences_KK.sum(-1)
    n = count_K.sum(-1)
    apart_KK = _apart(count_K, np.asarray(labels, float), level)
    seen = (coincidences_KK * apart_KK).sum((-2, -1))
    expected = (count_K[..., :, None] * count_K[..., None, :] * apart_KK).sum((-2, -1))
    defined = expected > 0
    return np.where(defined, 1 - (n - 1) * seen / np.where(defined, expected, 1), np.nan)


def _apart(count_K: np.ndarray, label_K: np.ndarray, level: str) -> np.ndarray:
    if level == "ordinal":
        upto_K = np.cumsum(count_K, -1) - count_K / 2
        return (upto_K[..., :, None] - upto_K[..., None, :]) ** 2
    a, b = label_K[:, None], label_K[None, :]
    if level == "nominal":
        return (a != b).astype(float)
    if level == "interval":
        return (a - b) ** 2
    total = a + b
    return np.where(total == 0, 0.0, (a - b) / np.where(total == 0, 1, total)) ** 2


def alpha_of(ratings_RU: Sequence[Sequence[float | None]], level: str = "ordinal") -> float | None:
    """alpha of one table of ratings; None where it is undefined (the library of that name raises ValueError)."""
    labels = sorted({r for row in ratings_RU for r in row if r is not None})
    if not labels:
        return None
    value = float(alpha(coincidences(ratings_RU, labels), labels, level))
    return None if np.isnan(value) else value
