"""Intervals: of a share, and of any statistic by resampling whole groups. Core.

Pairs of one group are not independent, so groups are the units of every interval here.
"""

from collections.abc import Callable
from functools import lru_cache
from itertools import product
from math import sqrt

import numpy as np
import scipy

from grading.calibration.estimate import Estimate

CONFIDENCE = 0.95
EXHAUSTIVE = 256  # resamples that are all enumerated: 4 groups
RESAMPLES = 2000
MOST_UNDEFINED = 0.1  # of the resamples
FLAT = 1e-12
Statistic = Callable[[np.ndarray], np.ndarray]  # (…, M) sums over groups -> (…); nan where undefined


def normal(confidence: float = CONFIDENCE) -> float:
    """Returns: the two-sided quantile of the normal distribution, 1.96 for 95 %."""
    return float(scipy.stats.norm.ppf(0.5 + confidence / 2))


def wilson(k: float, n: float, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """The score interval of a share; of 5 in 5 it is [0.566, 1], not [1, 1].

    Args:
        k: hits, 0 to n; n: trials.
    Returns:
        Both ends in [0, 1]; None without a trial.
    Raises:
        ValueError: k outside 0 to n.
    """
    _check_share(k, n)
    if n == 0:
        return None
    z, p = normal(confidence), k / n
    middle, half = p + z * z / (2 * n), z * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low, high = ((middle + sign * half) / (1 + z * z / n) for sign in (-1, 1))
    return (0.0 if k == 0 else low), (1.0 if k == n else high)


def clopper_pearson(k: int, n: int, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """The exact interval of a share: never covers less than it says, so it is wider. Arguments as `wilson`."""
    _check_share(k, n)
    if n == 0:
        return None
    found = scipy.stats.binomtest(k, n).proportion_ci(confidence, method="exact")
    return float(found.low), float(found.high)


def _check_share(k: float, n: float) -> None:
    if not 0 <= k <= n:
        raise ValueError(f"{k} hits in {n} trials, expected 0 to {n}")


def cluster_se(values_N: np.ndarray, groups_N: np.ndarray) -> float | None:
    """The standard error of a mean whose errors go together inside a group (CR0): sqrt(sum_g (sum e)^2) / n.

    Args:
        values_N: (N,) float; groups_N: (N,) the group of each.
    Returns:
        In the unit of the values; None for fewer than two groups. For the correction of few groups multiply it by
        sqrt(G / (G - 1)), (n - 1) / (n - 1) being 1 for a mean.
    """
    _, at_N = np.unique(groups_N, return_inverse=True)
    if len(values_N) == 0 or at_N.max() == 0:
        return None
    errors_G = np.bincount(at_N, np.asarray(values_N, float) - np.mean(values_N))
    return float(np.sqrt((errors_G**2).sum()) / len(values_N))


def resampled(sums_GM: np.ndarray, statistic: Statistic, *, resamples: int = RESAMPLES, seed: int = 0) -> np.ndarray:
    """A statistic over groups drawn with replacement; all G^G draws where these are few, so that nothing is random.

    Args:
        sums_GM: (G, M) float, what each group adds to the sums that the statistic is made of.
        statistic: (…, M) sums -> (…) values, nan where undefined.
    Returns:
        (R,) float, one value for each resample.
    """
    times_RG = _draws(len(sums_GM), resamples, seed)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(statistic(times_RG @ sums_GM))


@lru_cache(maxsize=8)
def _draws(n_groups: int, resamples: int, seed: int) -> np.ndarray:
    """(R, G) float, how often each resample has each group; kept, as the figures of a page are of the same groups."""
    if n_groups**n_groups <= EXHAUSTIVE:
        draws = np.array(list(product(range(n_groups), repeat=n_groups)))
        return np.stack([(draws == g).sum(-1) for g in range(n_groups)], axis=-1).astype(float)
    rng = np.random.default_rng(seed)
    return rng.multinomial(n_groups, [1 / n_groups] * n_groups, size=resamples).astype(float)


def estimate(
    sums_GM: np.ndarray,
    statistic: Statistic,
    *,
    n: int,
    undefined: str,
    is_share: bool = False,
    resamples: int = RESAMPLES,
    seed: int = 0,
    drawn_RM: np.ndarray | None = None,
) -> Estimate:
    """A statistic with its interval over groups: percentiles, widened for few groups to the levels that t asks for.

    Args:
        sums_GM: (G, M), see `resampled`. n: counted things, for the reader.
        undefined: why the statistic has no value where it is nan, in words.
        drawn_RM: resampled sums, where several statistics of the same sums share them.
        is_share: whether values lie in [0, 1]; one that never varies then has the Wilson interval of G trials.
    Returns:
        The estimate; without an interval for one group, or where resampling says nothing, with the reason.
    """
    sums_GM = np.asarray(sums_GM, float)
    n_groups = len(sums_GM)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(statistic(sums_GM.sum(0))) if n_groups else np.nan
    if np.isnan(value):
        return Estimate.undefined(undefined, n=n, groups=n_groups)
    if n_groups == 1:
        return Estimate(value, n=n, groups=1, why="one group: there is nothing to resample")
    if drawn_RM is None:
        drawn_RM = resampled(sums_GM, lambda sums: sums, resamples=resamples, seed=seed)
    with np.errstate(divide="ignore", invalid="ignore"):
        values_R = np.asarray(statistic(drawn_RM))
    known_R = values_R[~np.isnan(values_R)]
    if len(known_R) < (1 - MOST_UNDEFINED) * len(values_R):
        return Estimate(value, n=n, groups=n_groups, why="too few groups: many resamples have no value")
    if np.ptp(known_R) < FLAT:
        return _flat(value, n, n_groups, is_share)
    tail = scipy.stats.norm.cdf(
        -sqrt(n_groups / (n_groups - 1)) * scipy.stats.t.ppf(0.5 + CONFIDENCE / 2, n_groups - 1)
    )
    low, high = np.quantile(known_R, [tail, 1 - tail])
    return Estimate(value, float(min(low, value)), float(max(high, value)), n, n_groups)


def _flat(value: float, n: int, n_groups: int, is_share: bool) -> Estimate:
    if not is_share:
        return Estimate(value, n=n, groups=n_groups, why="all groups say the same: resampling shows no width")
    low, high = wilson(min(max(value, 0.0), 1.0) * n_groups, n_groups)
    return Estimate(value, low, high, n, n_groups, why="all groups say the same: Wilson over groups")


def ratio(sums: np.ndarray) -> np.ndarray:
    """The statistic sums[0] / sums[1]; nan where there is nothing to divide by."""
    return np.where(sums[..., 1] > 0, sums[..., 0] / np.where(sums[..., 1] > 0, sums[..., 1], 1), np.nan)


def difference(sums: np.ndarray) -> np.ndarray:
    """The statistic sums[0] / sums[1] - sums[2] / sums[3]."""
    return ratio(sums[..., :2]) - ratio(sums[..., 2:])
