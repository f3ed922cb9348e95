"""Orders that people gave before they saw a verdict, beside the scores that the grader gave first."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from django.db.models import Q

from grading.calibration.fit_weights import PairData
from grading.calibration.gate import Decided
from grading.calibration.identity import Identity, graders_of
from grading.calibration.packing import AT_ONCE, Pack, read_pack
from grading.calibration.replay import tiers
from grading.models import Review, Team, Trajectory, Verdict
from grading.review.agreement import places
from grading.scoring.criteria import Rubric
from grading.states import Purpose


@dataclass(frozen=True)
class Answer:
    """One person's blind order of one group: places and tiers by trajectory."""

    group: int
    reviewer: int
    places: dict[int, int]
    tiers: dict[int, int]


@dataclass(frozen=True)
class Orders:
    """Blind answers, each with a row of the pack: the grader's first valid verdict on its group."""

    answers: Sequence[Answer]
    row_A: np.ndarray
    pack: Pack

    @property
    def groups(self) -> list[int]:
        return sorted({answer.group for answer in self.answers})

    def of(self, groups: Iterable[int]) -> "Orders":
        wanted = set(groups)
        kept = [a for a, answer in enumerate(self.answers) if answer.group in wanted]
        return Orders([self.answers[a] for a in kept], self.row_A[kept], self.pack)


def blind_orders(team: Team):
    """Every order of the team's groups that was given before its author saw a verdict."""
    return Review.objects.filter(group__run__team=team, blind__isnull=False).order_by("group_id", "pk")


def graders_ordered(team: Team, grader: str) -> list[tuple[Identity, int]]:
    """Models and prompts under a grader's name whose verdicts people ordered blind too, with groups of each."""
    return graders_of(Verdict.objects.filter(grader=grader, group__in=blind_orders(team).values("group")))


def orders_of(team: Team, said: Q) -> Orders:
    """Every blind order of the team's groups on which a grader gave a valid verdict; `said` tells whose."""
    found = list(blind_orders(team).values_list("group_id", "reviewer_id", "blind"))
    first = first_verdicts({group for group, *_ in found}, said)
    found = [row for row in found if row[0] in first]
    pack = read_pack([first[group] for group in sorted({row[0] for row in found})])
    row_of = {group: row for row, group in enumerate(pack.group_B.tolist())}
    ids = _trajectories(row_of)
    answers = [
        Answer(
            group,
            reviewer,
            {ids[group, id]: place for id, place in places(blind["order"]).items() if (group, id) in ids},
            {ids[group, id]: tier for id, tier in (blind.get("tiers") or {}).items() if (group, id) in ids},
        )
        for group, reviewer, blind in found
    ]
    return Orders(answers, np.array([row_of[answer.group] for answer in answers], np.int64), pack)


def first_verdicts(groups: Iterable[int], said: Q) -> dict[int, int]:
    """Group -> the first valid training verdict that a grader `said`; a correction is no grader's."""
    first: dict[int, int] = {}
    for chunk in chunks(sorted(groups)):
        rows = Verdict.objects.filter(said, group__in=chunk, author=None, purpose=Purpose.TRAINING)
        for group, pk in rows.filter(is_valid=True).order_by("-pk").values_list("group_id", "pk"):
            first[group] = pk
    return first


def chunks(pks: Sequence[int]) -> Iterable[Sequence[int]]:
    return (pks[start : start + AT_ONCE] for start in range(0, len(pks), AT_ONCE))


def _trajectories(groups: Iterable[int]) -> dict[tuple[int, str], int]:
    found: dict[tuple[int, str], int] = {}
    for chunk in chunks(sorted(groups)):
        rows = Trajectory.objects.filter(group__in=chunk).values_list("group_id", "external_id", "pk")
        found |= {(group, id): pk for group, id, pk in rows}
    return found


def _pairs(orders: Orders) -> Iterable[tuple[int, int, int, float, int, int]]:
    """(row, column, other column, 1 | 0 | 1/2, group, reviewer) of every pair that a person placed."""
    for answer, row in zip(orders.answers, orders.row_A.tolist(), strict=True):
        columns = [(g, t) for g, t in enumerate(orders.pack.trajectory_BG[row].tolist()) if t in answer.places]
        for (one, a), (other, b) in combinations(columns, 2):
            ahead = answer.places[b] - answer.places[a]
            yield row, one, other, 0.5 if ahead == 0 else float(ahead > 0), answer.group, answer.reviewer


def within_tiers(orders: Orders, rubric: Rubric) -> PairData:
    """Pairs inside one of the rubric's tiers: only there do weights decide."""
    tier_BG = tiers(orders.pack.scored, rubric)
    scores_BGC = orders.pack.scored.scores_BGC
    kept = [pair for pair in _pairs(orders) if tier_BG[pair[0], pair[1]] == tier_BG[pair[0], pair[2]]]
    table = np.array(kept, float).reshape(-1, 6)
    row_P, one_P, other_P, group_P, reviewer_P = (table[:, n].astype(np.int64) for n in (0, 1, 2, 4, 5))
    difference_PC = scores_BGC[row_P, one_P].astype(float) - scores_BGC[row_P, other_P]
    return PairData(difference_PC, table[:, 3], group_P, reviewer_P)


def decided(orders: Orders) -> Decided:
    """All pairs that a person decided, the preferred one first."""
    kept = [pair for pair in _pairs(orders) if pair[3] != 0.5]
    swapped = [
        (row, one, other, group) if first else (row, other, one, group) for row, one, other, first, group, _ in kept
    ]
    return Decided(*np.array(swapped, np.int64).reshape(-1, 4).T)


def said_tiers(orders: Orders) -> np.ndarray:
    """(A, G) int: the tier that each answer gave each candidate of its pack row, 0 where none."""
    said_AG = np.zeros((len(orders.answers), orders.pack.trajectory_BG.shape[1]), np.int64)
    for a, answer in enumerate(orders.answers):
        for g, trajectory in enumerate(orders.pack.trajectory_BG[orders.row_A[a]].tolist()):
            said_AG[a, g] = answer.tiers.get(trajectory, 0)
    return said_AG
