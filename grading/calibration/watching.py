"""What is watched since a grader began: agreement with blind orders, corrections, fallbacks, in the order they came."""

from collections.abc import Mapping

import numpy as np

from grading.calibration import answers
from grading.calibration.agreement import FIGURES
from grading.calibration.anytime import LEVEL, Watched, watch
from grading.calibration.graded import FAILED, graders_by_group, to_rank
from grading.calibration.identity import Choice
from grading.models import Decision
from grading.review.decisions import PERSON
from grading.states import DecisionKind

WORSE = {"agreement": -1, "corrections": 1, "fallback": 1}  # which way each of them is an alarm
Stream = Mapping[int, float]  # group -> value in [0, 1], the oldest first


def streams_of(groups, reviews, by: Choice) -> dict[str, Stream]:
    """Each line that is watched. `groups`, `reviews`: what the reader may see; `by`: whose verdicts."""
    pks = list(to_rank(groups).order_by("pk").values_list("pk", flat=True))
    if by.one:
        whose = graders_by_group(to_rank(groups).values("pk"))
        pks = [pk for pk in pks if pk not in whose or by.takes(whose[pk])]
    decided = Decision.objects.filter(group__in=to_rank(groups).values("pk"))
    corrected, failed = _corrected(decided), _failed(decided)
    return {
        "agreement": _agreement(reviews, by),
        "corrections": {pk: corrected[pk] for pk in pks if pk in corrected},
        "fallback": {pk: float(pk in failed) for pk in pks},
    }


def watched_of(streams: Mapping[str, Stream]) -> dict[str, Watched]:
    """Each line against its own baseline; the level is shared out among them."""
    return {
        name: watch(np.array(list(stream.values()), float), alpha=LEVEL / len(streams), worse=WORSE[name])
        for name, stream in streams.items()
    }


def _agreement(reviews, by: Choice) -> Stream:
    """The first blind order of each group: the share of its decided pairs that the grader has alike, a tie half.

    Later answers on the same group are left out: a value that changed afterwards could not be watched.
    """
    first: dict[int, int] = {}
    for group, pk in reviews.filter(blind__isnull=False).order_by("ranked_at", "pk").values_list("group", "pk"):
        first.setdefault(group, pk)
    found = answers.compared(reviews.filter(pk__in=first.values()), by)["grader_blind"]
    sums = {one.group: FIGURES["pairs"].adds(one) for one in found}
    return {group: float(sums[group][0] / sums[group][1]) for group in first if group in sums and sums[group][1]}


def _corrected(decided) -> dict[int, float]:
    """Of the groups that people decided: 1 where the first of them let a corrected verdict count. Later ones change
    nothing here, for the reason above."""
    rows = decided.filter(user__isnull=False).order_by("-version").values_list("group", "verdict__grader")
    return {group: float(grader == PERSON) for group, grader in rows}


def _failed(decided) -> set[int]:
    first = decided.filter(version=1, kind=DecisionKind.FALLBACK, reason__in=FAILED)
    return set(first.values_list("group", flat=True))
