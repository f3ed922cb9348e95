"""A step of an RL job and its graders, played with drawn times: what grading adds to a step, and what falls back. Core.

Rollouts of one group lie together and are started in order, as many at a time as there are slots; a group is complete
when its slowest rollout ends. Mixed groups are graded by one of N graders, the first complete one first. With overlap
grading begins at once, without it when the last rollout of the step has ended. Axes: `_G` mixed groups, `_M` all
groups, `_R` rollouts.
"""

from dataclasses import dataclass
from heapq import heapify, heapreplace
from typing import NamedTuple

import numpy as np


@dataclass(frozen=True)
class Times:
    """A distribution of durations, seconds.

    kind: `constant` (value), `exponential` (mean), `lognormal` (mean, spread of the logarithm), or `sample`: drawn from
        measured ones with repetition.
    """

    kind: str
    numbers: tuple[float, ...]

    @classmethod
    def parse(cls, text: str) -> "Times":
        """Read `constant:S`, `exponential:MEAN`, `lognormal:MEAN:SPREAD` or `sample:S,S,…`.

        Raises:
            ValueError: it is none of them, or a number is no finite time above 0 (a spread may be 0).
        """
        kind, _, rest = text.partition(":")
        wanted = {"constant": 1, "exponential": 1, "lognormal": 2}.get(kind)
        try:
            numbers = tuple(float(part) for part in rest.split("," if kind == "sample" else ":"))
        except ValueError:
            numbers = ()
        least = (*numbers[:1], numbers[1] + 1) if kind == "lognormal" and len(numbers) == 2 else numbers
        if (wanted is None and kind != "sample") or not numbers or (wanted and len(numbers) != wanted):
            raise ValueError(f"times are {text[:80]!r}, expected constant:S, exponential:MEAN, lognormal:MEAN:SPREAD …")
        if not np.isfinite(numbers).all() or min(least) <= 0:
            raise ValueError(f"times are {text[:80]!r}, expected finite seconds above 0")
        return cls(kind, numbers)

    def draw(self, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Draw an array of durations, seconds."""
        if self.kind == "constant":
            return np.full(size, self.numbers[0])
        if self.kind == "exponential":
            return rng.exponential(self.numbers[0], size)
        if self.kind == "sample":
            return rng.choice(np.array(self.numbers), size)
        mean, spread = self.numbers
        return mean * np.exp(rng.normal(-spread * spread / 2, spread, size))


@dataclass(frozen=True)
class Step:
    """What a step of the job is.

    groups, rollouts: how many groups, and rollouts a group.
    slots: rollouts that run at a time.
    mixed_share: share of the groups that is graded, 0 to 1.
    rollout, grading: how long one takes.
    train_s: of the update that follows, seconds.
    """

    groups: int
    rollouts: int
    slots: int
    mixed_share: float
    rollout: Times
    grading: Times
    train_s: float


class Drawn(NamedTuple):
    """One step's times, seconds from its start; `_G` in the order in which the groups are complete."""

    complete_G: np.ndarray
    grading_G: np.ndarray
    rollouts_end_s: float
    train_s: float

    @property
    def plain_s(self) -> float:
        """How long the step is without grading."""
        return self.rollouts_end_s + self.train_s


class Played(NamedTuple):
    """What N graders made of a step: seconds it grew by, groups that fell back, seconds graders were busy."""

    added_s: float
    late: int
    busy_s: float


def draw(step: Step, rng: np.random.Generator) -> Drawn:
    """Draw the times of one step.

    Args:
        step: at least one group, rollout and slot.
        rng: a seeded generator; the same seed gives the same times.
    Returns:
        When each mixed group is complete, and how long its grading would take.
    """
    took_MR = step.rollout.draw((step.groups, step.rollouts), rng)
    complete_M = _ends(took_MR.ravel(), step.slots).reshape(took_MR.shape).max(1)
    mixed_M = rng.random(step.groups) < step.mixed_share
    grading_M = step.grading.draw((step.groups,), rng)
    order_G = np.flatnonzero(mixed_M)[np.argsort(complete_M[mixed_M], kind="stable")]
    return Drawn(complete_M[order_G], grading_M[order_G], float(complete_M.max()), step.train_s)


def _ends(took: np.ndarray, slots: int) -> np.ndarray:
    """Return when each job ends, started in order as slots become free."""
    if slots >= len(took):
        return took
    free = [0.0] * slots
    return np.array([_next(free, 0.0, seconds) for seconds in took.tolist()])


def _next(free: list[float], earliest: float, seconds: float) -> float:
    """Give the server that is free first a job; returns when it ends."""
    ends = max(free[0], earliest) + seconds
    heapreplace(free, ends)
    return ends


def play(drawn: Drawn, graders: int, *, overlap: bool, deadline_s: float | None = None) -> Played:
    """Let N graders work on a step.

    Args:
        drawn: from `draw`.
        graders: gradings at a time, at least 1.
        overlap: whether a group is graded while others are still rolled out.
        deadline_s: a group falls back so long after it could first be graded; its grader stops then. None: never.
    Returns:
        The step's growth, and what fell back.
    """
    free = [0.0] * graders
    heapify(free)
    last, late, busy = drawn.rollouts_end_s, 0, 0.0
    for complete, seconds in zip(drawn.complete_G.tolist(), drawn.grading_G.tolist(), strict=True):
        ready = complete if overlap else drawn.rollouts_end_s
        until = np.inf if deadline_s is None else ready + deadline_s
        begins = max(free[0], ready)
        ends = min(begins + seconds, max(until, begins))
        if begins < until:
            heapreplace(free, ends)
            busy += ends - begins
        late += begins + seconds > until
        last = max(last, min(begins + seconds, until))
    return Played(last - drawn.rollouts_end_s, late, busy)


def growth(steps: list[Drawn], graders: int, *, overlap: bool, deadline_s: float | None = None) -> tuple[float, float]:
    """Play several steps.

    Args:
        steps, graders, overlap, deadline_s: as for `play`.
    Returns:
        By what share of their time without grading the steps grow, and the share of mixed groups that fall back (0 if
        there is none).
    """
    played = [play(drawn, graders, overlap=overlap, deadline_s=deadline_s) for drawn in steps]
    mixed = sum(len(drawn.complete_G) for drawn in steps)
    grown = sum(one.added_s for one in played) / sum(drawn.plain_s for drawn in steps)
    return grown, sum(one.late for one in played) / max(1, mixed)


def graders_for(steps: list[Drawn], share: float, *, overlap: bool) -> int | None:
    """Find the smallest N at which the steps grow by at most a share, nothing falling back.

    Args:
        steps: at least one with a mixed group.
        share: 0.05 for 5 %.
        overlap: as for `play`.
    Returns:
        N; None if even a grader for every group is not enough, as the last grading alone takes longer.
    """
    low, high = 1, max(1, *(len(drawn.complete_G) for drawn in steps))
    if growth(steps, high, overlap=overlap)[0] > share:
        return None
    while low < high:
        middle = (low + high) // 2
        if growth(steps, middle, overlap=overlap)[0] <= share:
            high = middle
        else:
            low = middle + 1
    return low
