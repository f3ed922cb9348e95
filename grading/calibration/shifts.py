"""Whether two times differ: counts, scores, and right or wrong on the same things. Core.

Candidates of one group go together, so `permuted` moves whole groups between the times; p-values of the libraries treat
them as independent and are too small.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

PERMUTATIONS = 999
SMOOTHING = 0.5  # added to each count of a PSI: an empty tier is no infinite shift


@dataclass(frozen=True)
class Test:
    statistic: float
    p: float
    dof: int = 0


def mcnemar(only_first: int, only_second: int) -> Test | None:
    """Exact McNemar: of the things that only one of two got right, how many did the second.

    Returns:
        The smaller count with its two-sided p; None where both are right and wrong alike everywhere.
    """
    n = only_first + only_second
    if not n:
        return None
    least = min(only_first, only_second)
    return Test(float(least), float(scipy.stats.binomtest(least, n, 0.5).pvalue))


def chi2(counts_2K: np.ndarray) -> Test | None:
    """Pearson's chi-square of two rows of counts, without a continuity correction; empty columns are left out.

    None with fewer than two columns in use or an empty row (scipy raises).
    """
    counts_2K = np.asarray(counts_2K, float)
    used = counts_2K[:, counts_2K.sum(0) > 0]
    if used.shape[1] < 2 or (used.sum(1) == 0).any():
        return None
    found = scipy.stats.chi2_contingency(used, correction=False)
    return Test(float(found.statistic), float(found.pvalue), int(found.dof))


def ks(before_N: np.ndarray, now_M: np.ndarray) -> Test | None:
    """Two-sample Kolmogorov-Smirnov; None where a sample is empty."""
    if not len(before_N) or not len(now_M):
        return None
    found = scipy.stats.ks_2samp(before_N, now_M)
    return Test(float(found.statistic), float(found.pvalue))


def psi(before_K: np.ndarray, now_K: np.ndarray) -> float | None:
    """Population stability index: sum (q - p) ln(q / p). By custom below 0.1 is calm, above 0.25 a shift."""
    before_K, now_K = (np.asarray(x, float) for x in (before_K, now_K))
    if not before_K.sum() or not now_K.sum():
        return None
    p_K, q_K = ((x + SMOOTHING) / (x + SMOOTHING).sum() for x in (before_K, now_K))
    return float(((q_K - p_K) * np.log(q_K / p_K)).sum())


def permuted(
    counts_GK: np.ndarray,
    is_now_G: np.ndarray,
    statistic: Callable[[np.ndarray, np.ndarray], np.ndarray],
    *,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> Test | None:
    """The p-value of a shift where whole groups, not candidates, are exchanged between the two times.

    Args:
        counts_GK: (G, K) what each group adds to each column.
        is_now_G: (G,) bool, which time it is of.
        statistic: (…, K) sums before, (…, K) sums now -> (…), large where they differ.
    Returns:
        None with fewer than two groups of a time. p counts the drawn order itself, so it is never 0.
    """
    counts_GK, is_now_G = np.asarray(counts_GK, float), np.asarray(is_now_G, bool)
    if min(is_now_G.sum(), (~is_now_G).sum()) < 2:
        return None
    rng = np.random.default_rng(seed)
    order_PG = rng.permuted(np.tile(is_now_G, (permutations, 1)), axis=1)
    total_K, now_PK = counts_GK.sum(0), order_PG.astype(float) @ counts_GK
    seen_K = counts_GK[is_now_G].sum(0)
    seen = float(statistic(total_K - seen_K, seen_K))
    drawn_P = statistic(total_K - now_PK, now_PK)
    return Test(seen, (1 + int((drawn_P >= seen - 1e-12).sum())) / (permutations + 1))


def share_shift(before: np.ndarray, now: np.ndarray) -> np.ndarray:
    """Chi-square between two rows of counts, over leading axes; columns that nobody uses add nothing."""
    both = before + now
    total, n_before, n_now = (x.sum(-1, keepdims=True) for x in (both, before, now))
    parts = []
    for seen, n in ((before, n_before), (now, n_now)):
        expected = both * n / np.maximum(total, 1e-300)
        parts.append(np.where(expected > 0, (seen - expected) ** 2 / np.where(expected > 0, expected, 1), 0).sum(-1))
    return parts[0] + parts[1]


def largest_gap(before: np.ndarray, now: np.ndarray) -> np.ndarray:
    """Kolmogorov-Smirnov distance of two histograms over the same ascending values, over leading axes."""
    shares = [np.cumsum(x, -1) / np.maximum(x.sum(-1, keepdims=True), 1e-300) for x in (before, now)]
    return np.abs(shares[0] - shares[1]).max(-1)
