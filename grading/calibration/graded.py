"""What a grader did lately, a row for each group: tiers, W, ties, cap, fallbacks, corrections, time and tokens."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from grading.calibration import drift
from grading.calibration.agreement import Said
from grading.calibration.answers import compared, said_of, scores_of
from grading.calibration.drift import Anchored, Shift
from grading.calibration.identity import BY, EVERYBODY, Choice, Identity
from grading.models import AnchorRound, Decision, Grading, Review, Trajectory, Verdict, VerdictCandidate
from grading.review.decisions import DEADLINE, GRADER_FAILURE, PERSON
from grading.states import ENDED, DecisionKind, Method, Purpose

NEWEST = 800  # groups: the last quarter is now, the others are before
FAILED = (GRADER_FAILURE, DEADLINE)


@dataclass
class Graded:
    """One group as its grader left it."""

    group: int
    candidates: list[tuple] = field(default_factory=list)  # (tier, rank, W, factor)
    lambda_max: float | None = None
    is_shaped: bool = False
    is_neutral: bool = False  # factors are divided by the group's best one
    is_fallback: bool = False
    is_seen: bool = False  # a person decided or answered
    is_corrected: bool = False
    seconds: float | None = None
    tokens: int | None = None

    @property
    def tied(self) -> int:
        """Candidates that share their place."""
        return sum(n for n in Counter(row[:2] for row in self.candidates).values() if n > 1)

    @property
    def is_capped(self) -> bool | None:
        """With pass-or-fail rewards the cap binds iff the mean factor is below 1 / lambda_max; None where rewards are
        shaped or nothing is ranked."""
        if not self.candidates or self.is_shaped:
            return None
        best = max(row[3] for row in self.candidates) if self.is_neutral else 1.0
        mean = sum(row[3] for row in self.candidates) / len(self.candidates) / best
        return self.lambda_max is not None and mean * self.lambda_max < 1 - 1e-12


def to_rank(groups):
    """The decided groups among `groups` that a grader was to rank."""
    return groups.filter(state__in=ENDED, end_reason="", eligible=True).exclude(method=Method.OUTCOME)


def newest(groups, by: Choice = EVERYBODY) -> list[Graded]:
    """The newest decided groups among `groups` that one of these graders was to rank, oldest first.

    A group that no grader began counts for each of them: what it lacks is a verdict in time.
    """
    newest_first = list(to_rank(groups).order_by("-pk").values_list("pk", "neutral_when_equal")[:NEWEST])
    found = {pk: Graded(pk, is_neutral=is_neutral) for pk, is_neutral in newest_first[::-1]}
    if by.one:
        whose = graders_by_group(list(found))
        found = {pk: one for pk, one in found.items() if pk not in whose or by.takes(whose[pk])}
    pks = list(found)
    _read_verdicts(pks, found)
    shaped = Trajectory.objects.filter(group__in=pks).exclude(reward="")
    for pk in shaped.values_list("group", flat=True).distinct():
        found[pk].is_shaped = True
    for pk, kind, reason, user in (
        Decision.objects.filter(group__in=pks).order_by("version").values_list("group", "kind", "reason", "user")
    ):
        found[pk].is_fallback = kind == DecisionKind.FALLBACK and reason in FAILED
        found[pk].is_seen |= user is not None
    for pk in Review.objects.filter(group__in=pks, state=Review.State.SUBMITTED).values_list("group", flat=True):
        found[pk].is_seen = True
    figures = ("group", "duration_s", "input_tokens", "output_tokens")
    for pk, took, read, wrote in Grading.objects.filter(group__in=pks, round=None, asked_by="").values_list(*figures):
        found[pk].seconds, found[pk].tokens = took, read + wrote
    return list(found.values())


def graders_by_group(pks) -> dict[int, Identity]:
    """Group -> who graded it last, whether or not that gave a valid verdict. `pks`: keys, or a queryset of groups."""
    rows = Verdict.objects.filter(group__in=pks, purpose=Purpose.TRAINING).exclude(grader=PERSON).order_by("pk")
    begun = Grading.objects.filter(group__in=pks, round=None, asked_by="").order_by("pk")
    found = {group: Identity.of(*said) for group, *said in begun.values_list("group", "grader", "model", "prompt")}
    return found | {group: Identity.of(*said) for group, *said in rows.filter(is_valid=True).values_list("group", *BY)}


def _read_verdicts(pks: list[int], found: dict[int, Graded]) -> None:
    verdicts = Verdict.objects.filter(group__in=pks, purpose=Purpose.TRAINING, is_valid=True).select_related("rubric")
    newest: dict[int, Verdict] = {}
    for verdict in verdicts.order_by("pk").only("pk", "group_id", "grader", "rubric"):
        if verdict.grader == PERSON:
            found[verdict.group_id].is_corrected = found[verdict.group_id].is_seen = True
        else:
            newest[verdict.group_id] = verdict
    of = {verdict.pk: pk for pk, verdict in newest.items()}
    caps = {v.rubric_id: v.rubric.rubric.lambda_max for v in newest.values()}
    for pk, verdict in newest.items():
        cap = caps[verdict.rubric_id]
        found[pk].lambda_max = None if cap is None else float(cap)
    rows = VerdictCandidate.objects.filter(verdict__in=of).order_by()
    for verdict, tier, rank, weighted, factor in rows.values_list(
        "verdict", "tier", "rank", "weighted_score", "factor"
    ):
        found[of[verdict]].candidates.append((tier, rank, float(weighted), factor))


ADDS: dict[str, Callable[[Graded], tuple[float, float]]] = {  # what a group adds to a figure: hits and trials
    "tier shares": lambda row: (sum(c[0] == 1 for c in row.candidates), len(row.candidates)),
    "W": lambda row: (sum(c[2] for c in row.candidates), len(row.candidates)),
    "fallback": lambda row: (row.is_fallback, 1),
    "cap": lambda row: (bool(row.is_capped), row.is_capped is not None),
    "ties": lambda row: (row.tied, len(row.candidates)),
    "corrections": lambda row: (row.is_corrected and row.is_seen, row.is_seen),
    "seconds": lambda row: (row.seconds or 0.0, row.seconds is not None),
    "tokens": lambda row: (row.tokens or 0, row.tokens is not None),
}
NO_SHARES = {"seconds", "tokens"}


def is_now(rows: list[Graded]) -> np.ndarray:
    """(G,) bool: the last quarter of the groups."""
    return np.arange(len(rows)) >= len(rows) - len(rows) // 4


def shifts_of(rows: list[Graded]) -> list[Shift]:
    """Everything that may drift, the last quarter of the groups against those before it."""
    now_G = is_now(rows)
    ranked = np.array([bool(row.candidates) for row in rows], bool)
    tiers = np.array([[sum(c[0] == tier for c in row.candidates) for tier in (1, 2, 3)] for row in rows]).reshape(-1, 3)
    scores = [[c[2] for c in row.candidates] for row in rows if row.candidates]
    found = [drift.tier_shift(tiers[ranked], now_G[ranked]), drift.score_shift(scores, now_G[ranked])]
    return found + [
        drift.rate_shift(name, np.array([adds(row) for row in rows], float).reshape(-1, 2), now_G,
                         is_share=name not in NO_SHARES)
        for name, adds in ADDS.items() if name not in ("tier shares", "W")
    ]  # fmt: skip


def behind_shift(rows: list[Graded], name: str, *, now: bool) -> dict[int, tuple[float, float]]:
    """Group -> (value, n) of the groups that a figure of one time is made of."""
    added = [(row.group, *ADDS[name](row)) for row, here in zip(rows, is_now(rows), strict=True) if here == now]
    return {group: (hits / trials, trials) for group, hits, trials in added if trials}


# ---- rounds of anchors ----


def before(round: AnchorRound) -> AnchorRound | None:
    """The round to compare with: the last one of the same run, else of the team."""
    earlier = AnchorRound.objects.filter(run__team=round.run.team_id, pk__lt=round.pk)
    return earlier.filter(run=round.run_id).last() or earlier.last()


def anchored(round: AnchorRound) -> list[Anchored]:
    """What this round and the one before it said of each anchor; without one, what the anchor's grader once said."""
    now = _said_in(round)
    last = before(round)
    was = {} if last is None else _said_in(last)
    first = _first_said([pk for pk in now if pk not in was])
    people = _people(list(now))
    both = {pk: was.get(pk) or first.get(pk) for pk in now}
    return [Anchored(pk, both[pk], now[pk], people.get(pk)) for pk in now if both[pk]]


def between(last: AnchorRound, now: AnchorRound) -> list[Anchored]:
    """What two rounds said of the anchors that both have."""
    before, after = _said_in(last), _said_in(now)
    both = sorted(before.keys() & after.keys())
    people = _people(both)
    return [Anchored(pk, before[pk], after[pk], people.get(pk)) for pk in both]


def _said_in(round: AnchorRound) -> dict[int, Said]:
    return _said(Verdict.objects.filter(grading__round=round, is_valid=True))


def _first_said(pks: list[int]) -> dict[int, Said]:
    return _said(Verdict.objects.filter(group__in=pks, purpose=Purpose.TRAINING, is_valid=True).exclude(grader=PERSON))


def _said(verdicts) -> dict[int, Said]:
    rows = list(verdicts.order_by("pk").values_list("group", "pk", "ranking"))
    scores = scores_of({pk for _, pk, _ in rows})
    return {group: said_of(ranking, scores.get(pk, {})) for group, pk, ranking in rows}


def _people(pks: list[int]) -> dict[int, Said]:
    """One person's answer for each group, blind where there is one."""
    found = compared(Review.objects.filter(group__in=pks))
    chosen: dict[int, Said] = {}
    for kind in ("grader_shown", "grader_then", "grader_blind"):
        chosen |= {one.group: one.person for one in found[kind]}
    return chosen
