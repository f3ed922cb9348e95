"""A mean that may be looked at every day: confidence sequences, and whether a stream left its baseline. Core.

Hedged betting of Waudby-Smith & Ramdas, Estimating means of bounded random variables by betting, JRSS-B 2024, Thm. 3;
baseline against stream as in Podkopaev & Ramdas, Tracking the risk of a deployed model, ICLR 2022.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from grading.calibration.estimate import Estimate

BASELINE = 50  # values; fixed before any is seen
LEVEL = 0.05  # of false alarms, over all lines that are watched and all looks together
GRID = 201  # means that are tried; an interval is one step wider on each side
AT_ONCE = 1000  # values
MOST_BET = 0.75  # of what a mean could lose
TOO_FEW = "fewer than {} values: the baseline is not complete"


def confidence_sequence(values_T: np.ndarray, alpha: float) -> np.ndarray:
    """Intervals that hold the mean at all times together with probability 1 - alpha.

    K+_t(m) = prod (1 + min(l_i, c/m) (x_i - m)), K-_t(m) = prod (1 - min(l_i, c/(1-m)) (x_i - m)), with the bets
    l_i = sqrt(2 log(2/alpha) / (s_{i-1}^2 i log(i+1))) from the values before; m is left out once
    max(K+, K-) / 2 >= 1 / alpha.

    Args:
        values_T: (T,) float in [0, 1], of one mean given all before.
        alpha: in (0, 1).
    Returns:
        (T, 2) float, lowest and highest mean not ruled out after each value; no value: (0, 2).
    Raises:
        ValueError: a value outside [0, 1].
    """
    values_T = np.asarray(values_T, float)
    if len(values_T) and not ((values_T >= 0) & (values_T <= 1)).all():
        raise ValueError(f"values from {values_T.min()} to {values_T.max()}, expected 0 to 1")
    parts = [_widest(kept_M) for kept_M in _kept(values_T, alpha)]
    return np.array(parts, float).reshape(-1, 2)


def _kept(values_T: np.ndarray, alpha: float) -> Iterator[np.ndarray]:
    """After each value, (M,) bool: the means of the grid that are not ruled out."""
    bets_T, means_M, bound = _bets(values_T, alpha), np.linspace(0, 1, GRID), log(2 / alpha)
    most_up_M, most_down_M = MOST_BET / np.maximum(means_M, 1e-12), MOST_BET / np.maximum(1 - means_M, 1e-12)
    up_M, down_M = np.zeros((2, len(means_M)))
    for start in range(0, len(values_T), AT_ONCE):
        bets_T1 = bets_T[start : start + AT_ONCE, None]
        gap_TM = values_T[start : start + AT_ONCE, None] - means_M
        up_TM = up_M + np.cumsum(np.log1p(np.minimum(bets_T1, most_up_M) * gap_TM), axis=0)
        down_TM = down_M + np.cumsum(np.log1p(-np.minimum(bets_T1, most_down_M) * gap_TM), axis=0)
        up_M, down_M = up_TM[-1], down_TM[-1]
        yield from np.maximum(up_TM, down_TM) < bound


def _bets(values_T: np.ndarray, alpha: float) -> np.ndarray:
    """(T,) predictable: each from the values before it alone."""
    count_T = np.arange(1, len(values_T) + 1)
    mean_T = (0.5 + np.cumsum(values_T)) / (count_T + 1)
    variance_T = (0.25 + np.cumsum((values_T - mean_T) ** 2)) / (count_T + 1)
    before_T = np.concatenate([[0.25], variance_T[:-1]]) if len(values_T) else variance_T
    return np.sqrt(2 * log(2 / alpha) / (before_T * count_T * np.log(count_T + 1)))


def _widest(kept_M: np.ndarray) -> tuple[float, float]:
    """No mean is left where the values cannot have one mean: the whole range then, which claims nothing."""
    at, step = np.flatnonzero(kept_M), 1 / (GRID - 1)
    return (max(0.0, (at[0] - 1) * step), min(1.0, (at[-1] + 1) * step)) if len(at) else (0.0, 1.0)


@dataclass(frozen=True)
class Watched:
    """A stream against its baseline. `left_at`: how many values after the baseline it was when it left; None: never."""

    baseline: Estimate
    since: Estimate
    left_at: int | None
    band: Sequence[tuple[float, float]] = ()  # of `since`, after each value

    @property
    def has_left(self) -> bool:
        return self.left_at is not None


def watch(values_T: np.ndarray, *, alpha: float, worse: int, baseline: int = BASELINE) -> Watched:
    """Compare all values after the first `baseline` ones with these, at every length, with one bound on false alarms.

    Args:
        values_T: (T,) float in [0, 1], in the order they came.
        alpha: probability of ever alarming while the mean stays; half is spent on each interval.
        worse: 1 where higher is worse, -1 where lower is, 0 for both.
    Returns:
        Both means with their intervals. It has left once the intervals lie apart, and that stands.
    """
    values_T = np.asarray(values_T, float)
    if len(values_T) < baseline:
        few = Estimate.undefined(TOO_FEW.format(baseline), n=len(values_T), groups=len(values_T))
        return Watched(few, Estimate.undefined("nothing yet"), None)
    first_T, later_T = values_T[:baseline], values_T[baseline:]
    low, high = confidence_sequence(first_T, alpha / 2)[-1].tolist()
    told = Estimate(float(first_T.mean()), low, high, baseline, baseline)
    if not len(later_T):
        return Watched(told, Estimate.undefined("nothing after the baseline yet"), None)
    band_T2 = confidence_sequence(later_T, alpha / 2)
    above_T, below_T = band_T2[:, 0] > high, band_T2[:, 1] < low
    left_T = (above_T & (worse >= 0)) | (below_T & (worse <= 0))
    n, (now_low, now_high) = len(later_T), band_T2[-1].tolist()
    since = Estimate(float(later_T.mean()), now_low, now_high, n, n)
    left_at = int(np.argmax(left_T)) + 1 if left_T.any() else None
    return Watched(told, since, left_at, [(a, b) for a, b in band_T2.tolist()])
