"""What people and graders said about the same groups, out of the rows: the comparisons that agreement is made of.

Groups that still wait are left out: what others must not know yet is in no mean.
"""

from collections import defaultdict
from itertools import combinations

from grading.calibration.agreement import Compared, Said
from grading.calibration.identity import BY, EVERYBODY, Choice, Identity
from grading.models import Review, Verdict, VerdictCandidate
from grading.review.agreement import flat, places
from grading.review.decisions import PERSON
from grading.scoring.tiers import TIER_NAMES
from grading.states import OPEN, Purpose

NEWEST = 3000  # reviews
KINDS = {
    "grader_blind": "grader with people, before they saw its verdict",
    "grader_then": "grader with the same people, after they saw it",
    "grader_shown": "grader with people who saw its verdict from the start",
    "people_blind": "people with people, before they saw a verdict",
    "people_shown": "people with people, each alone beside the verdict",
}
FIELDS = ("group", "reviewer", "is_blind", "blind", "answer", "seen_verdict", "verdict", "group__reviews_wanted")


def compared(reviews, by: Choice = EVERYBODY) -> dict[str, list[Compared]]:
    """Kind of comparison -> its comparisons, over these reviews. `reviews`: a queryset of what the reader may see.

    `by`: whose verdicts count; an answer stands beside the verdict that its author had, so each counts for one grader.
    """
    rows = reviews.exclude(group__state__in=OPEN).order_by("-pk").values(*FIELDS)[:NEWEST]
    rows = [row for row in rows if row["blind"] or row["answer"]]
    graders = _graders({row["group"] for row in rows})
    scores = scores_of({row["verdict"] for row in rows if row["verdict"]})
    found: dict[str, list[Compared]] = {kind: [] for kind in KINDS}
    people: dict[tuple[int, str], list[Said]] = defaultdict(list)
    for row in rows:
        grader = _grader_seen(graders.get(row["group"], []), row["seen_verdict"])
        for kind, said in _answers(row, scores):
            if grader and by.takes(grader[3]):
                found[f"grader_{kind}"].append(Compared(row["group"], said, grader[1], grader[2]))
            if kind == "blind" or row["group__reviews_wanted"] > 1:  # else they may have seen the others'
                people[row["group"], "blind" if kind == "blind" else "shown"].append(said)
    for (group, kind), said in people.items():
        for one, other in combinations(said, 2):
            found[f"people_{kind}"] += [Compared(group, *pair, counts=0.5) for pair in ((one, other), (other, one))]
    return found


def _answers(row: dict, scores: dict[int, dict]) -> list[tuple[str, Said]]:
    """The kinds of answer in a review: an order given blind, and what was said with the verdict in sight."""
    said = []
    if row["blind"]:
        tiers = {id: int(tier) for id, tier in row["blind"].get("tiers", {}).items() if tier}
        said.append(("blind", Said(_ranks(row["blind"]["order"]), tiers)))
    if row["answer"]:
        reply = row["answer"].get("reply")
        own = {c["id"]: c["scores"] for c in reply["candidates"]} if reply else scores.get(row["verdict"], {})
        kind = "then" if row["is_blind"] else "shown"
        said.append((kind, said_of(row["answer"]["ranking"], own)))
    return said


def said_of(ranking: dict, scores: dict[str, dict[str, int]]) -> Said:
    tiers = {id: tier for tier, name in TIER_NAMES.items() for tied in ranking.get(name, ()) for id in tied}
    return Said(_ranks(flat(ranking)), tiers, scores)


def _ranks(order) -> dict[str, int]:
    return {id: place + 1 for id, place in places(order).items()}


def _graders(groups: set[int]) -> dict[int, list[tuple[int, Said, dict[str, float], Identity]]]:
    """Group -> the valid training verdicts of graders, oldest first: (verdict, what it said, W of each, whose)."""
    rows = Verdict.objects.filter(group__in=groups, purpose=Purpose.TRAINING, is_valid=True)
    rows = list(rows.exclude(grader=PERSON).order_by("pk").values_list("pk", "group", "ranking", *BY))
    scores, weighted = scores_of({pk for pk, *_ in rows}), _weighted({pk for pk, *_ in rows})
    found = defaultdict(list)
    for pk, group, ranking, *said_by in rows:
        said = said_of(ranking, scores.get(pk, {}))
        found[group].append((pk, said, weighted.get(pk, {}), Identity.of(*said_by)))
    return found


def _grader_seen(verdicts: list[tuple], seen: int | None):
    """The verdict a person had before them: the grader's newest one up to what they saw, which may be a correction."""
    known = [row for row in verdicts if seen is None or row[0] <= seen]
    return (known or verdicts or [None])[-1]


def scores_of(verdicts: set[int]) -> dict[int, dict[str, dict[str, int]]]:
    """Verdict -> candidate -> criterion -> score."""
    found = defaultdict(dict)
    rows = VerdictCandidate.objects.filter(verdict__in=verdicts).order_by()
    for verdict, id, scores in rows.values_list("verdict", "trajectory__external_id", "scores"):
        found[verdict][id] = scores
    return found


def _weighted(verdicts: set[int]) -> dict[int, dict[str, float]]:
    found = defaultdict(dict)
    rows = VerdictCandidate.objects.filter(verdict__in=verdicts).order_by()
    for verdict, id, score in rows.values_list("verdict", "trajectory__external_id", "weighted_score"):
        found[verdict][id] = float(score)
    return found


def reviews_of(user, *, run=None, team=None):
    """The reviews of a run or a team that this reader may see."""
    rows = Review.objects.visible_to(user)
    return rows.filter(group__run=run) if run else rows.filter(group__run__team=team) if team else rows.none()
