"""Whether a grader is still the one it was: on anchors, version by version, and on what it grades day by day. Core."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from grading.calibration import shifts
from grading.calibration.agreement import Said
from grading.calibration.anytime import Watched
from grading.calibration.estimate import Estimate
from grading.calibration.intervals import difference, estimate, ratio
from grading.calibration.ranks import pairs_of

LEAST = 20  # groups of each time; below it nothing is said
ALARM_P = 0.01  # of each test: a handful of them run every week
PSI_ALARM = 0.25
# How far is far: many groups make any difference sure, and one that changes nothing is no alarm.
FAR_SHARE, FAR_TIMES, FAR_GAP = 0.05, 1.25, 0.2  # of shares; of amounts, as a factor; of two distributions
LOW_TAU = 0.6  # of the same groups graded twice
FEWEST = 5  # anchors that all say the same: no interval, and none is needed
PAUSE = "Pause the run (outcome advantages go out) until you know; then resume it, or change the grader back."


@dataclass(frozen=True)
class Anchored:
    """One anchor: what two versions of the grader said, and what people said of it (None where nobody did)."""

    group: int
    before: Said
    now: Said
    people: Said | None = None


@dataclass(frozen=True)
class Versions:
    """Two versions of a grader on the same anchors."""

    tau_b: Estimate  # of each anchor to the last version, then the mean
    moved: Estimate  # share of pairs that both order and order oppositely
    tiers: Estimate  # share of candidates in another tier
    gain: Estimate  # accuracy now minus before, on pairs that people decide
    mcnemar: shifts.Test | None
    only_before: int  # pairs that only the last version had right
    only_now: int


def versions(anchors: Sequence[Anchored]) -> Versions:
    """Compare two versions. Undefined figures have their reason; McNemar takes pairs as independent, `gain` groups."""
    found = [_steady(one) for one in anchors]
    only = [one.only for one in found if one.right]
    only_before, only_now = (sum(pair[at] for pair in only) for at in (0, 1))
    return Versions(
        tau_b=_over([(one.tau_b, 1) for one in found if one.tau_b is not None], "no anchor that both versions order"),
        moved=_over([one.moved for one in found], "no pair that both versions order", is_share=True),
        tiers=_over([one.tiers for one in found], "no candidate that both versions place", is_share=True),
        gain=_gain([one.right for one in found if one.right]),
        mcnemar=shifts.mcnemar(only_before, only_now),
        only_before=only_before,
        only_now=only_now,
    )


def at_most(one: Estimate) -> float | None:
    """The upper end of an interval; the value itself where enough anchors all say it; else None."""
    return one.high if one.high is not None or one.groups < FEWEST else one.value


@dataclass(frozen=True)
class _Steady:
    """One anchor by itself: what it adds to each figure of `Versions`."""

    tau_b: float | None  # None where a version ties everything
    moved: tuple[int, int]
    tiers: tuple[int, int]
    right: tuple[float, ...] = ()  # (credit now, decided, credit before, decided), where people answered
    only: tuple[int, int] = (0, 0)  # pairs that only one version has fully right


def _steady(one: Anchored) -> _Steady:
    ids = sorted(one.before.ranks.keys() & one.now.ranks.keys())
    found = pairs_of([one.before.ranks[id] for id in ids], [one.now.ranks[id] for id in ids])
    tiers = sum(one.before.tiers.get(id) != one.now.tiers.get(id) for id in ids)
    right, only = _right(one, ids) if one.people else ((), (0, 0))
    return _Steady(found.tau_b, (found.opposite, found.same + found.opposite), (tiers, len(ids)), right, only)


def steadiness(one: Anchored) -> dict:
    """One anchor by itself: tau-b of both versions (None where one ties everything), candidates in another tier."""
    found = _steady(one)
    return {"tau_b": found.tau_b, "tiers": found.tiers[0]}


def by_anchor(anchors: Sequence[Anchored], figure: str) -> dict[int, tuple[float | None, float]]:
    """Group -> (value, n) of the anchors behind a figure of `Versions`: tau_b, moved, tiers or gain."""
    made: dict[int, tuple[float | None, float]] = {}
    for one in anchors:
        found = _steady(one)
        if figure == "tau_b":
            made[one.group] = (found.tau_b, 1)
        elif figure == "gain" and found.right and found.right[1]:
            made[one.group] = (float(difference(np.array(found.right))), found.right[1])
        elif figure in ("moved", "tiers") and getattr(found, figure)[1]:
            made[one.group] = (float(ratio(np.array(getattr(found, figure)))), getattr(found, figure)[1])
    return made


def _right(one: Anchored, ids: list[str]) -> tuple[tuple[float, ...], tuple[int, int]]:
    """(credit now, decided, credit before, decided), and how many pairs only one version has fully right."""
    rows = np.array([[said.ranks.get(id, np.nan) for id in ids] for said in (one.people, one.before, one.now)])
    rows = rows[:, ~np.isnan(rows[0])]
    above = np.triu_indices(rows.shape[1], 1)
    person, before, now = (np.sign(r[above[0]] - r[above[1]]) for r in rows)
    decided = person != 0
    credit = [np.where(said == 0, 0.5, said == person)[decided] for said in (before, now)]
    only = (int(((credit[0] == 1) & (credit[1] < 1)).sum()), int(((credit[1] == 1) & (credit[0] < 1)).sum()))
    return (credit[1].sum(), decided.sum(), credit[0].sum(), decided.sum()), only


def _over(rows: list[tuple], undefined: str, *, is_share: bool = False) -> Estimate:
    sums_GM = np.array([row for row in rows if row[1]], float).reshape(-1, 2)
    return estimate(sums_GM, ratio, n=int(sums_GM[:, 1].sum()), undefined=undefined, is_share=is_share, resamples=1000)


def _gain(rows: list[tuple]) -> Estimate:
    sums_GM = np.array([row for row in rows if row[1]], float).reshape(-1, 4)
    why = "no anchor has a pair that a person decided"
    return estimate(sums_GM, difference, n=int(sums_GM[:, 1].sum()), undefined=why, resamples=1000)


# ---- what it grades day by day ----


@dataclass(frozen=True)
class Shift:
    """One thing that may drift: before, now, and how surprising the difference is where groups are exchanged."""

    name: str
    before: Estimate
    now: Estimate
    p: float | None
    psi: float | None = None
    why: str = ""
    statistic: float | None = None
    is_far: bool = False

    @property
    def is_alarm(self) -> bool:
        return self.p is not None and self.p <= ALARM_P and self.is_far


def too_few(is_now_G: np.ndarray) -> str:
    """Why nothing is compared; "" where each time has enough groups."""
    now, before = int(np.sum(is_now_G)), int(np.sum(~is_now_G))
    return "" if min(now, before) >= LEAST else f"{before} groups before and {now} now, expected {LEAST} of each"


def _times(sums_G2: np.ndarray, is_now_G: np.ndarray, *, is_share: bool) -> tuple[Estimate, Estimate]:
    """A ratio of sums, before and now."""
    before, now = (_over(sums_G2[part], "nothing of this time", is_share=is_share) for part in (~is_now_G, is_now_G))
    return before, now


def rate_shift(name: str, sums_G2: np.ndarray, is_now_G: np.ndarray, *, is_share: bool = True, seed: int = 0) -> Shift:
    """A rate: hits and trials of each group, before and now.

    Args:
        sums_G2: (G, 2) float; a group without a trial says nothing.
        is_now_G: (G,) bool.
        is_share: whether a rate lies in [0, 1].
    """
    told = sums_G2[:, 1] > 0
    sums_G2, is_now_G = sums_G2[told], is_now_G[told]
    before, now = _times(sums_G2, is_now_G, is_share=is_share)
    if why := too_few(is_now_G):
        return Shift(name, before, now, None, why=why)

    def gap(before_2: np.ndarray, now_2: np.ndarray) -> np.ndarray:
        return np.abs(ratio(now_2) - ratio(before_2))

    found = shifts.permuted(sums_G2, is_now_G, gap, seed=seed)
    is_far = found.statistic >= FAR_SHARE if is_share else _times_as_much(before.value, now.value) >= FAR_TIMES
    return Shift(name, before, now, found.p, statistic=found.statistic, is_far=is_far)


def _times_as_much(before: float | None, now: float | None) -> float:
    """The larger amount over the smaller; infinite where one is nothing."""
    low, high = sorted((before or 0.0, now or 0.0))
    return high / low if low > 0 else np.inf


def tier_shift(counts_G3: np.ndarray, is_now_G: np.ndarray, *, seed: int = 0) -> Shift:
    """Tier shares by chi-square and PSI; `before` and `now` are the shares of T1."""
    sums = [counts_G3[part].sum(0) for part in (~is_now_G, is_now_G)]
    shares = _times(np.stack([counts_G3[:, 0], counts_G3.sum(-1)], axis=-1), is_now_G, is_share=True)
    if why := too_few(is_now_G):
        return Shift("tier shares", *shares, None, why=why)
    found = shifts.permuted(counts_G3, is_now_G, shifts.share_shift, seed=seed)
    psi = shifts.psi(*sums)
    return Shift("tier shares", *shares, found.p, psi=psi, statistic=found.statistic, is_far=(psi or 0) >= PSI_ALARM)


def score_shift(scores: Sequence[Sequence[float]], is_now_G: np.ndarray, *, seed: int = 0) -> Shift:
    """The distribution of W by Kolmogorov-Smirnov; `before` and `now` are means."""
    flat = np.concatenate([np.asarray(s, float) for s in scores]) if len(scores) else np.zeros(0)
    values, at = np.unique(flat, return_inverse=True)
    of = np.repeat(np.arange(len(scores)), [len(s) for s in scores])
    counts_GV = np.zeros((len(scores), max(len(values), 1)))
    np.add.at(counts_GV, (of, at), 1)
    sums_G2 = np.array([[np.sum(s), len(s)] for s in scores], float).reshape(-1, 2)
    means = _times(sums_G2, is_now_G, is_share=False)
    if why := too_few(is_now_G):
        return Shift("W", *means, None, why=why)
    found = shifts.permuted(counts_GV, is_now_G, shifts.largest_gap, permutations=499, seed=seed)
    return Shift("W", *means, found.p, statistic=found.statistic, is_far=found.statistic >= FAR_GAP)


# ---- what to do ----


def alarms(found: Versions | None, stream: Sequence[Shift], watched: Sequence[tuple[str, Watched]] = ()) -> list[str]:
    """Sentences that say what changed and what to do; none where nothing did."""
    said = []
    gain, tau_b = (at_most(found.gain), at_most(found.tau_b)) if found else (None, None)
    if gain is not None and gain < 0:
        lost = f"{-100 * found.gain.value:.1f} points less than its last version did"
        said.append(f"On anchors the grader agrees with people by {lost}. {PAUSE}")
    if tau_b is not None and tau_b < LOW_TAU:
        moved = f"τ-b {found.tau_b.value:.2f}, expected above {LOW_TAU}"
        said.append(f"The grader orders the same anchors differently than its last version: {moved}. {RANK}")
    said += [f"{one.name.capitalize()}: {_said(one)} {ADVICE.get(one.name, PAUSE)}" for one in stream if one.is_alarm]
    return said + [f"{name.capitalize()}: {_left(one)} {ADVICE[name]}" for name, one in watched if one.has_left]


def _left(one: Watched) -> str:
    at = f"{one.left_at} group{'s' * (one.left_at != 1)} after its baseline"
    return f"{one.baseline.value:.2f} in the grader's first {one.baseline.n} groups, {one.since.value:.2f} since, {at}."


def _said(one: Shift) -> str:
    psi = f", PSI {one.psi:.2f}" if one.psi is not None else ""
    return f"{one.before.value:.2f} before, {one.now.value:.2f} now (p {one.p:.3f}{psi})."


RANK = f"Have people rank some anchors blind, to know which version is nearer to them. {PAUSE}"
ADVICE: Mapping[str, str] = {
    "agreement": "Grade the anchors again, and read the groups behind it: is it the grader or the work? " + PAUSE,
    "tier shares": "Grade the anchors again: if their tiers moved too it is the grader, else the policy. " + PAUSE,
    "W": "Grade the anchors again: if their scores moved too it is the grader, else the policy.",
    "fallback": "Look at why replies did not count on the Grader page, and at its budgets and deadline.",
    "cap": "More or less credit is kept than before: try other factor constants in What-if before you publish any.",
    "ties": "The grader tells candidates apart less or more: look at the newest ties, and whether a prompt changed.",
    "corrections": "People change its rankings more or less often: look at the newest corrections. " + PAUSE,
    "seconds": "Gradings take another time: look at the load of the endpoint (or of this machine, where no model "
    "grades) and at the budgets on the Grader page.",
    "tokens": "Gradings read another amount: look at how long trajectories are, and at the budgets.",
}
