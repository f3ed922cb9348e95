"""Agreement of two rankings of one group, ties included. Core.

Ranks: 1 is best, equal numbers are a tie. Undefined is None, never 0: a rater who ties everything has no tau.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from grading.review.agreement import Pairs


@dataclass(frozen=True)
class Top:
    """Who stands first: `pick` is what to report, the chance that a uniformly drawn grader-top is human-top."""

    strict: float  # both have the same single first
    any_overlap: float
    expected: float  # a drawn grader-top and a drawn human-top are the same
    jaccard: float
    pick: float


def pairs_of(human_N: Sequence[float], grader_N: Sequence[float]) -> Pairs:
    """Count the pairs of candidates by how both rank them.

    Args:
        human_N: (N,) ranks, 1 best; grader_N: (N,) the same candidates.
    Returns:
        The counts, "one" being the human.
    Raises:
        ValueError: other lengths.
    """
    human, grader = np.asarray(human_N, float), np.asarray(grader_N, float)
    if human.shape != grader.shape or human.ndim != 1:
        raise ValueError(f"ranks of {human.shape} and {grader.shape} candidates, expected the same row of them")
    above = np.triu_indices(len(human), 1)
    by_human, by_grader = (np.sign(r[above[0]] - r[above[1]]) for r in (human, grader))
    both = by_human * by_grader
    return Pairs(
        same=int((both > 0).sum()),
        opposite=int((both < 0).sum()),
        tied_one=int(((by_human == 0) & (by_grader != 0)).sum()),
        tied_other=int(((by_human != 0) & (by_grader == 0)).sum()),
        tied_both=int(((by_human == 0) & (by_grader == 0)).sum()),
    )


def top(human_N: Sequence[float], grader_N: Sequence[float]) -> Top | None:
    """Agreement on the first place; None without a candidate. Arguments as `pairs_of`."""
    human, grader = (np.asarray(r, float) for r in (human_N, grader_N))
    if not len(human):
        return None
    mine, theirs = human == human.min(), grader == grader.min()
    shared = int((mine & theirs).sum())
    return Top(
        strict=float((mine == theirs).all() and mine.sum() == 1),
        any_overlap=float(shared > 0),
        expected=shared / (int(mine.sum()) * int(theirs.sum())),
        jaccard=shared / int((mine | theirs).sum()),
        pick=shared / int(theirs.sum()),
    )


def spearman(x_N: Sequence[float], y_N: Sequence[float]) -> float | None:
    """Spearman's rho; None where one is constant or has fewer than two values (scipy warns and says nan)."""
    if len(x_N) < 2 or len(set(x_N)) < 2 or len(set(y_N)) < 2:
        return None
    return float(scipy.stats.spearmanr(x_N, y_N).statistic)


def kendall_w(ranks_RN: Sequence[Sequence[float]]) -> float | None:
    """Kendall's W of R raters over N candidates, ties corrected: 12 S / (m^2 (n^3 - n) - m sum T).

    Args:
        ranks_RN: (R, N) ranks or scores of the same candidates.
    Returns:
        0 (no agreement) to 1; None with one rater or candidate, or where everybody ties everything.
    """
    ranks_RN = scipy.stats.rankdata(np.asarray(ranks_RN, float), axis=1)
    m, n = ranks_RN.shape
    if m < 2 or n < 2:
        return None
    sizes = [np.unique(row, return_counts=True)[1] for row in ranks_RN]
    scale = m * m * (n**3 - n) - m * sum(float((t**3 - t).sum()) for t in sizes)
    sums_N = ranks_RN.sum(0)
    return float(12 * ((sums_N - sums_N.mean()) ** 2).sum() / scale) if scale else None
