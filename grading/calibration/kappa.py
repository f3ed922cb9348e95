"""Agreement on categories beyond chance: Cohen's kappa, weighted, and Gwet's AC1 and AC2. Core.

Categories are given, never inferred: a grader that used 3 to 5 only would else be read on a shorter scale.
Tables may have leading axes, so a bootstrap is one call.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grading.calibration.intervals import normal

WEIGHTS = ("identity", "linear", "quadratic", "ordinal")


@dataclass(frozen=True)
class Kappa:
    value: float
    se: float
    low: float
    high: float


def confusion(a_N: Sequence[int], b_N: Sequence[int], labels: Sequence[int]) -> np.ndarray:
    """Count how often two raters say what.

    Args:
        a_N, b_N: (N,) labels of the same things.
        labels: all possible ones, in their order.
    Returns:
        (K, K) float: rows are what a said.
    Raises:
        ValueError: other lengths, or a label that is not possible.
    """
    at = {label: k for k, label in enumerate(labels)}
    unknown = sorted({*a_N, *b_N} - at.keys())
    if len(a_N) != len(b_N) or unknown:
        raise ValueError(f"{len(a_N)} and {len(b_N)} labels, unknown {unknown}, expected as many of {list(labels)}")
    table_KK = np.zeros((len(labels), len(labels)))
    np.add.at(table_KK, ([at[a] for a in a_N], [at[b] for b in b_N]), 1)
    return table_KK


def agreement_weights(k: int, kind: str) -> np.ndarray:
    """How far two of `k` labels agree: 1 on the diagonal, 0 at the ends; ordinal is Gwet's, by pairs in between."""
    if kind not in WEIGHTS:
        raise ValueError(f"weights {kind!r}, expected one of {', '.join(WEIGHTS)}")
    apart_KK = np.abs(np.subtract.outer(np.arange(k), np.arange(k))).astype(float)
    if kind == "identity" or k < 2:
        return (apart_KK == 0).astype(float)
    if kind == "ordinal":
        return 1 - apart_KK * (apart_KK + 1) / (k * (k - 1))
    return 1 - (apart_KK / (k - 1)) ** (2 if kind == "quadratic" else 1)


def cohen(table_KK: np.ndarray, kind: str = "quadratic") -> np.ndarray:
    """Cohen's kappa: 1 - observed / expected disagreement.

    Args:
        table_KK: (…, K, K) counts.
        kind: identity, linear or quadratic weights.
    Returns:
        (…) float; nan where nothing was rated, or both said one and the same label throughout.
    """
    table_KK = np.asarray(table_KK, float)
    apart_KK = 1 - agreement_weights(table_KK.shape[-1], kind)
    n = table_KK.sum((-2, -1))
    expected_KK = table_KK.sum(-1)[..., :, None] * table_KK.sum(-2)[..., None, :]
    seen, by_chance = (table_KK * apart_KK).sum((-2, -1)), (expected_KK * apart_KK).sum((-2, -1))
    defined = by_chance > 0
    return np.where(defined, 1 - seen * n / np.where(defined, by_chance, 1), np.nan)


def cohen_with_se(table_KK: np.ndarray, kind: str = "quadratic") -> Kappa | None:
    """Kappa of independent items with its large-sample standard error (Fleiss, Cohen and Everitt 1969).

    Items of one group are not independent: over groups resample instead.
    """
    value = float(cohen(table_KK, kind))
    if np.isnan(value):
        return None
    n = table_KK.sum()
    p_KK, w_KK = table_KK / n, agreement_weights(len(table_KK), kind)
    rows_K, columns_K = p_KK.sum(1), p_KK.sum(0)
    by_chance = (np.outer(rows_K, columns_K) * w_KK).sum()
    margins_KK = (w_KK @ columns_K)[:, None] + (rows_K @ w_KK)[None, :]
    spread = (p_KK * (w_KK - margins_KK * (1 - value)) ** 2).sum() - (value - by_chance * (1 - value)) ** 2
    se = float(np.sqrt(spread / n) / (1 - by_chance))
    return Kappa(value, se, value - normal() * se, value + normal() * se)


def gwet(table_KK: np.ndarray, kind: str = "identity") -> np.ndarray:
    """Gwet's AC1 (identity) and AC2 (weighted): chance is counted only where items are hard to tell.

    80 % agreement on skewed tiers can be kappa -0.11 and AC1 0.756. Arguments and undefined as `cohen`.
    """
    table_KK = np.asarray(table_KK, float)
    k = table_KK.shape[-1]
    w_KK, n = agreement_weights(k, kind), table_KK.sum((-2, -1))
    safe = np.where(n > 0, n, 1)
    share_K = (table_KK.sum(-1) + table_KK.sum(-2)) / (2 * safe[..., None])
    seen = (table_KK * w_KK).sum((-2, -1)) / safe
    by_chance = w_KK.sum() / (k * (k - 1)) * (share_K * (1 - share_K)).sum(-1)
    return np.where(n > 0, (seen - by_chance) / (1 - by_chance), np.nan)


def raw(table_KK: np.ndarray) -> np.ndarray:
    """The plain share of equal labels; nan where nothing was rated."""
    n = np.asarray(table_KK, float).sum((-2, -1))
    same = np.trace(table_KK, axis1=-2, axis2=-1)
    return np.where(n > 0, same / np.where(n > 0, n, 1), np.nan)
