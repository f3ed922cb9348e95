"""Which graded groups could have been drawn for a person, and what came back: the frame of fleet accuracy.

Only assigned answers count: of groups drawn with a stored probability. Groups held for a signal or flips were chosen
for what they are: answers about them say nothing about the others.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from math import log1p

import numpy as np
from django.db.models import Q

from grading.calibration import answers
from grading.calibration.agreement import Said
from grading.calibration.fleet import Frame
from grading.calibration.identity import BY, EVERYBODY, Choice, Identity
from grading.models import Review, RolloutGroup, Verdict, VerdictCandidate
from grading.review.decisions import DRAWN, FORCED, PERSON
from grading.review.placing import CLOSE
from grading.states import ENDED, Purpose

NEWEST = 5000  # groups
MANUAL = "policy manual"
BLIND, ANY = "blind", "any"


@dataclass(frozen=True)
class Drawn:
    """The frame, None without a group in it, and the counts that a reader needs to trust it."""

    frame: Frame | None
    graded: list[int]  # groups with a valid verdict of a grader
    never: list[int]  # of these, could not be drawn: probability 0 or none stored
    forced: list[int]  # held for another reason than the draw
    drawn: list[int]
    answered: list[int]
    groups: list[int] = ()  # of the frame, in its order


def drawn_of(groups, *, truth: str = ANY, by: Choice = EVERYBODY) -> Drawn:
    """The frame over these groups, newest first. `truth`: what counts as an answer, an order given `blind` or `any`;
    `by`: whose verdicts, the last one of each group."""
    fields = ("pk", "state", "hold_probability", "hold_reason", "is_blind", "blind_probability", "run__blind_share")
    seen = groups.filter(Q(state__in=ENDED) | Q(held=True), verdicts__purpose=Purpose.TRAINING, verdicts__is_valid=True)
    rows = list(seen.distinct().order_by("-pk").values(*fields)[:NEWEST])
    placed = _placed([row["pk"] for row in rows], by)
    rows = [row for row in rows if row["pk"] in placed]
    probability = {row["pk"]: _probability(row, truth) for row in rows}
    frame_rows = [row for row in rows if probability[row["pk"]] > 0 and len(placed[row["pk"]]) > 1]
    was_drawn = {row["pk"]: _was_drawn(row, truth) for row in frame_rows}
    people = _people([pk for pk, drawn in was_drawn.items() if drawn], truth)
    counts = {
        "graded": [row["pk"] for row in rows],
        "never": [row["pk"] for row in rows if probability[row["pk"]] == 0],
        "forced": [row["pk"] for row in rows if row["hold_reason"] in FORCED],
        "drawn": [pk for pk, drawn in was_drawn.items() if drawn],
        "answered": list(people),
    }
    if not frame_rows:
        return Drawn(None, **counts)
    pks = [row["pk"] for row in frame_rows]
    return Drawn(_frame(pks, probability, was_drawn, placed, people), **counts, groups=pks)


def _probability(row: Mapping, truth: str) -> float:
    held = row["hold_probability"] or 0.0
    if truth == ANY:
        return held
    blind = row["blind_probability"]
    return held * (row["run__blind_share"] if blind is None else blind)


def _was_drawn(row: Mapping, truth: str) -> bool:
    by_draw = row["hold_reason"].startswith(DRAWN) or row["hold_reason"] == MANUAL
    return by_draw and (truth == ANY or row["is_blind"])


def _placed(pks: list[int], by: Choice) -> dict[int, dict[str, tuple]]:
    """Group -> candidate -> ((tier, rank), W, patch bytes), by the newest valid verdict of a grader."""
    verdicts = Verdict.objects.filter(group__in=pks, purpose=Purpose.TRAINING, is_valid=True).exclude(grader=PERSON)
    newest = {group: row for group, *row in verdicts.order_by("pk").values_list("group", "pk", *BY)}
    theirs = [pk for pk, *said_by in newest.values() if by.takes(Identity.of(*said_by))]
    rows = VerdictCandidate.objects.filter(verdict__in=theirs).order_by()
    fields = ("verdict__group", "trajectory__external_id", "tier", "rank", "weighted_score", "trajectory__patch_bytes")
    found: dict[int, dict[str, tuple]] = defaultdict(dict)
    for group, id, tier, rank, weighted, size in rows.values_list(*fields):
        found[group][id] = ((tier, rank), float(weighted), size)
    return found


def _people(pks: list[int], truth: str) -> dict[int, list[Said]]:
    """Group -> what people answered; an order given blind is worth more than what they said beside the verdict."""
    compared = answers.compared(Review.objects.filter(group__in=pks))
    found: dict[int, list[Said]] = {}
    for kind in ("grader_blind",) if truth == BLIND else ("grader_blind", "grader_shown"):
        here: dict[int, list[Said]] = defaultdict(list)
        for one in compared[kind]:
            here[one.group].append(one.person)
        found = {**here, **found}
    return found


def _frame(pks, probability, was_drawn, placed, people) -> Frame:
    rows, difficulty = [], []
    for at, pk in enumerate(pks):
        pairs = [_pair(a, b, placed[pk], people.get(pk, ())) for a, b in combinations(sorted(placed[pk]), 2)]
        rows += [(at, *pair) for pair in pairs]
        apart = np.array([pair[0] for pair in pairs])
        size = sum(bytes_ for *_, bytes_ in placed[pk].values())
        difficulty.append((log1p(len(pairs)), apart.mean(), (apart <= CLOSE).mean(), log1p(size)))
    columns = np.array(rows, float).T
    return Frame(
        probability_G=np.array([probability[pk] for pk in pks]),
        drawn_G=np.array([was_drawn[pk] for pk in pks]),
        answered_G=np.array([pk in people for pk in pks]),
        difficulty_GD=np.array(difficulty),
        group_P=columns[0].astype(int),
        apart_P=columns[1],
        tied_P=columns[2].astype(bool),
        credit_P=columns[3],
        decided_P=columns[4],
    )


def _pair(a: str, b: str, placed: Mapping, said) -> tuple[float, bool, float, float]:
    """(how far W is apart, whether the grader ties them, credit, decided): the last two as means over people."""
    sign = (placed[a][0] > placed[b][0]) - (placed[a][0] < placed[b][0])
    apart = abs(placed[a][1] - placed[b][1])
    known = [
        (one.ranks[a] > one.ranks[b]) - (one.ranks[a] < one.ranks[b]) for one in said if {a, b} <= one.ranks.keys()
    ]
    if not known:
        return apart, sign == 0, 0.0, 0.0
    credit = [0.0 if not person else 0.5 if not sign else float(person == sign) for person in known]
    return apart, sign == 0, sum(credit) / len(known), sum(map(bool, known)) / len(known)


def visible_groups(user, *, run=None, team=None):
    rows = RolloutGroup.objects.visible_to(user)
    return rows.filter(run=run) if run else rows.filter(run__team=team) if team else rows.none()
