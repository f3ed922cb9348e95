"""What an audit says of each arm, with bootstrap intervals over tasks (Sec. 4.3). Core.

Every figure is a sum over groups divided by another, so that a resample of tasks is a weighing of its sums.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from grading.scoring.criteria import CRITERIA

RESAMPLES = 2000
LEVEL = 0.95
LEAST_TASKS = 2  # one task cannot be resampled
FLAT = 1e-12  # narrower is rounding: resampling tasks that all say the same shows no width
MEASURES = ("W", "win_rate", "group_first", "T1", "T1_passing", "W_passing", "pass_rate", "found", *CRITERIA)


@dataclass(frozen=True)
class Judged:
    """One candidate of a group: whose it is, and what was said. `place` counts tied groups of the joint order from 0.

    A candidate with a finding (leak or hack) is not ranked: its scores, tier and place are None.
    """

    arm: int
    passed: bool
    scores: Mapping[str, int] | None = None
    weighted_score: float | None = None
    tier: int | None = None
    place: int | None = None


@dataclass(frozen=True)
class JudgedGroup:
    """A pooled group of one task at one checkpoint."""

    task: str
    window: int
    candidates: tuple[Judged, ...]


@dataclass(frozen=True)
class Estimate:
    """A figure with its interval. `n` counts what it is a mean of: candidates, or groups for rates of orders.

    Where it is not defined `value` is None, where there is no interval `low` and `high` are, and `why` says so.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    tasks: int
    why: str = ""


Summary = Mapping[str, Sequence[Estimate]]  # measure -> an estimate of each arm


def summary(groups: Sequence[JudgedGroup], arms: int, *, seed: int) -> Summary:
    """Sum an audit up.

    - W, the criteria, T1: means over an arm's ranked candidates, failures included; *_passing over passing ones.
    - win_rate: of each group the mean over pairs of a passing candidate of the arm and one of another arm, 1 where
      the arm's stands higher in the joint order, 1/2 tied; then the mean over groups that have such pairs.
    - group_first: the share of groups whose best tied group is the arm's; arms that tie there share it equally.
    - pass_rate and found: shares of all its candidates that passed, and that have a leak or hack.

    Args:
        groups: judged, of one checkpoint or of all.
        arms: how many there are.
        seed: of the resampling.
    Returns:
        measure -> an estimate of each arm, with the percentile interval (95 %) over resampled tasks.
    """
    tasks = sorted({group.task for group in groups})
    weights_BT = _resamples(len(tasks), seed)
    sums = {key: _sums(groups, tasks, key, arms) for key in MEASURES}
    return {key: [_estimate(*sums[key][arm], weights_BT) for arm in range(arms)] for key in MEASURES}


def differences(groups: Sequence[JudgedGroup], arms: int, *, seed: int) -> Summary:
    """Compare each arm with the first, on the same resampled tasks.

    Args:
        groups, arms, seed: as for `summary`.
    Returns:
        measure -> estimate of (arm - first arm) for each arm; the first one's is 0 by itself.
    """
    tasks = sorted({group.task for group in groups})
    weights_BT = _resamples(len(tasks), seed)
    found = {}
    for key in MEASURES:
        sums = _sums(groups, tasks, key, arms)
        first = sums[0]
        found[key] = [_difference(first, sums[arm], weights_BT) for arm in range(arms)]
    return found


def _resamples(tasks: int, seed: int) -> np.ndarray:
    """(B, T) how often each task is drawn in each resample."""
    if tasks < LEAST_TASKS:
        return np.zeros((0, tasks))
    return np.random.default_rng(seed).multinomial(tasks, np.full(tasks, 1 / tasks), size=RESAMPLES).astype(float)


def _sums(groups: Sequence[JudgedGroup], tasks: Sequence[str], key: str, arms: int) -> np.ndarray:
    """(arms, 2, T) of each arm and task the sum and what it is divided by."""
    at = {task: n for n, task in enumerate(tasks)}
    sums = np.zeros((arms, 2, len(tasks)))
    for group in groups:
        for arm in range(arms):
            total, count = _of_group(group, arm, key)
            sums[arm, :, at[group.task]] += total, count
    return sums


def _of_group(group: JudgedGroup, arm: int, key: str) -> tuple[float, int]:
    if key == "win_rate":
        return _wins(group, arm)
    if key == "group_first":
        return _first(group, arm)
    own = [one for one in group.candidates if one.arm == arm]
    if key == "pass_rate":
        return sum(one.passed for one in own), len(own)
    if key == "found":
        return sum(one.place is None for one in own), len(own)
    ranked = [one for one in own if one.place is not None and (one.passed or not key.endswith("_passing"))]
    return sum(_value(one, key) for one in ranked), len(ranked)


def _value(one: Judged, key: str) -> float:
    if key.startswith("W"):
        return one.weighted_score
    return one.tier == 1 if key.startswith("T1") else one.scores[key]


def _wins(group: JudgedGroup, arm: int) -> tuple[float, int]:
    """The arm's mean over its pairs with passing candidates of others; a group counts once, however many it has."""
    passing = [one for one in group.candidates if one.passed and one.place is not None]
    own = [one.place for one in passing if one.arm == arm]
    others = [one.place for one in passing if one.arm != arm]
    pairs = [0.5 * (a == b) + (a < b) for a, b in product(own, others)]
    return (sum(pairs) / len(pairs), 1) if pairs else (0.0, 0)


def _first(group: JudgedGroup, arm: int) -> tuple[float, int]:
    places = [one.place for one in group.candidates if one.place is not None]
    if not places:
        return 0.0, 0
    best = {one.arm for one in group.candidates if one.place == min(places)}
    return (1 / len(best) if arm in best else 0.0), 1


def _ratios(sums: np.ndarray, weights_BT: np.ndarray) -> np.ndarray:
    """(B,) the figure of each resample; NaN where nothing was drawn that has one."""
    total, count = weights_BT @ sums[0], weights_BT @ sums[1]
    return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)


def _estimate(total_T: np.ndarray, count_T: np.ndarray, weights_BT: np.ndarray) -> Estimate:
    n, tasks = int(count_T.sum()), int((count_T > 0).sum())
    if not n:
        return Estimate(None, None, None, 0, 0, "nothing to count it from")
    low, high, why = _interval(_ratios(np.stack([total_T, count_T]), weights_BT), tasks)
    return Estimate(float(total_T.sum() / n), low, high, n, tasks, why)


def _difference(first: np.ndarray, other: np.ndarray, weights_BT: np.ndarray) -> Estimate:
    counts = first[1].sum(), other[1].sum()
    tasks = int(((first[1] > 0) & (other[1] > 0)).sum())
    if not all(counts):
        return Estimate(None, None, None, 0, 0, "one of the two has nothing to count it from")
    value = other[0].sum() / counts[1] - first[0].sum() / counts[0]
    low, high, why = _interval(_ratios(other, weights_BT) - _ratios(first, weights_BT), tasks)
    return Estimate(float(value), low, high, int(counts[1]), tasks, why)


def _interval(drawn_B: np.ndarray, tasks: int) -> tuple[float | None, float | None, str]:
    drawn = drawn_B[~np.isnan(drawn_B)]
    if tasks < LEAST_TASKS or not len(drawn):
        return None, None, f"no interval: {tasks} task"
    edge = 100 * (1 - LEVEL) / 2
    low, high = np.percentile(drawn, [edge, 100 - edge])
    if np.ptp(drawn) <= FLAT:
        return None, None, f"no interval: all {tasks} tasks say the same"
    return float(low), float(high), ""
