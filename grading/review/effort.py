"""What reviewing cost and changed: minutes of attention, and advantages that are others because of it.

A changed advantage is a passing candidate whose factor in the verdict that counts differs from the one that the grader
gave it. Counted for the person whose answer that verdict is, in the group's newest decision.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from django.db.models import OuterRef, Subquery

from grading.models import Decision, Review, Verdict, VerdictCandidate
from grading.review import decisions
from grading.states import Purpose

SAME = 1e-9


@dataclass(frozen=True)
class Effort:
    """One person's reviews. Minutes are those of reviews whose time was measured, `measured` of them."""

    reviews: int
    changed_reviews: int
    measured: int
    median_min: float | None
    changed_groups: int
    changed_advantages: int
    min_per_change: float | None


def effort_of(reviews: Sequence[Review]) -> Effort:
    """Sum up submitted reviews of one person."""
    changed = changed_advantages(reviews)
    minutes = [row.attention_s / 60 for row in reviews if row.attention_s is not None]
    total = sum(changed.values())
    return Effort(
        reviews=len(reviews),
        changed_reviews=sum(bool(row.answer and row.answer.get("is_changed")) for row in reviews),
        measured=len(minutes),
        median_min=median(minutes) if minutes else None,
        changed_groups=sum(n > 0 for n in changed.values()),
        changed_advantages=total,
        min_per_change=sum(minutes) / total if total and minutes else None,
    )


def changed_advantages(reviews: Sequence[Review]) -> dict[int, int]:
    """Review -> candidates whose factor it changed, for reviews whose verdict counts now. Few queries for all."""
    mine = {row.pk: row for row in reviews if row.verdict_id and row.answer and row.answer.get("is_changed")}
    newest = Decision.objects.filter(group=OuterRef("group")).order_by("-version").values("pk")[:1]
    groups = [row.group_id for row in mine.values()]
    counted = set(Decision.objects.filter(group__in=groups, pk=Subquery(newest)).values_list("group_id", "verdict_id"))
    counting = {pk: row for pk, row in mine.items() if (row.group_id, row.verdict_id) in counted}
    graders = _graders_verdicts([row.group_id for row in counting.values()])
    wanted = {row.verdict_id for row in counting.values()} | set(graders.values())
    factors: dict[int, dict[int, float]] = defaultdict(dict)
    for verdict, trajectory, factor in VerdictCandidate.objects.filter(verdict__in=wanted).values_list(
        "verdict_id", "trajectory_id", "factor"
    ):
        factors[verdict][trajectory] = factor
    return {
        pk: _differing(factors[row.verdict_id], factors.get(graders.get(row.group_id), {}))
        for pk, row in counting.items()
    }


def _graders_verdicts(groups: list[int]) -> dict[int, int]:
    """Group -> the newest verdict that no person gave."""
    rows = Verdict.objects.filter(group__in=groups, purpose=Purpose.TRAINING).exclude(grader=decisions.PERSON)
    return dict(rows.order_by("pk").values_list("group_id", "pk"))


def _differing(now: dict[int, float], then: dict[int, float]) -> int:
    return sum(abs(factor - then.get(trajectory, float("inf"))) > SAME for trajectory, factor in now.items())
