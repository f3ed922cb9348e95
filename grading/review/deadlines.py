"""Deadlines: a trainer must never hang on a person. A missed one is a decision by policy:deadline."""

from collections.abc import Collection
from datetime import timedelta

from django.db import transaction
from django.db.models import Q

from grading import clock, wake
from grading.grader import gather
from grading.ingest import assemble, lives
from grading.models import RolloutGroup, Run, Verdict
from grading.review import decisions, findings
from grading.states import AWAITING_REVIEW, GroupState

USED = ("run", "state", "version", "policy", "hold_reason", "task__is_broken")  # of a group that is decided here
AT_ONCE = 64  # groups a commit: a person who saves meanwhile waits for it
UNDER_WAY = (GroupState.COMPLETE, GroupState.GRADING)


def sweep() -> int:
    """Close what is overdue by the database's clock. Returns how many groups were decided here."""
    now = clock.now()
    assemble.close_overdue(now)
    lives.abandon_fenced()
    findings.settle_marked()
    waiting = list(overdue(now).order_by("pk").values_list("pk", flat=True))
    return sum(decide_overdue(waiting[start : start + AT_ONCE]) for start in range(0, len(waiting), AT_ONCE))


def overdue(now):
    late = Q(state__in=UNDER_WAY, grade_by__lt=now) | Q(state__in=AWAITING_REVIEW, review_by__lt=now)
    wanted = Q(state__in=(*UNDER_WAY, *AWAITING_REVIEW), wanted_by__lt=now)
    return RolloutGroup.objects.filter(late | wanted)


@transaction.atomic
def decide_overdue(keys: Collection[int]) -> int:
    """The grader's valid verdict counts, else the outcome advantages do. Returns how many were decided here.

    A few groups in one commit: one commit each would cost a step of 1,568 groups its seconds. What a person or a grader
    decided meanwhile is not overdue any more.
    """
    rows = overdue(clock.now()).filter(pk__in=keys).select_related("task").only(*USED)
    groups = list(rows.locked().order_by("pk"))  # rollouts and verdicts are read under the lock
    runs = Run.objects.in_bulk({group.run_id for group in groups})  # one object a run, not one a group
    for group in groups:
        group.run = runs[group.run_id]
    standing, verdicts = gather.standings(groups), decisions.graders_verdicts(groups)
    return len(
        decisions.decide_all([_choice(group, standing[group.pk].status, verdicts.get(group.pk)) for group in groups])
    )


def _choice(group: RolloutGroup, status: str, verdict: Verdict | None) -> decisions.Choice:
    by = decisions.BY_DEADLINE
    if kind := decisions.end_kind(status):
        return decisions.Choice(group, kind, by, end_reason=status)
    return decisions.chosen_by_policy(group, verdict, by=by, otherwise=decisions.DEADLINE)


def want(run: Run, life: int, keys: Collection[str], within_s: float) -> int:
    """The job needs these groups in `within_s` seconds; the earliest deadline counts. Returns how many it moved."""
    until = clock.now() + timedelta(seconds=within_s)
    asked = RolloutGroup.objects.open().filter(run=run, life__n=life, key__in=keys)
    moved = asked.filter(Q(wanted_by=None) | Q(wanted_by__gt=until)).update(wanted_by=until)
    if moved:
        wake.pages(run.pk)  # its clock runs out sooner than the queue shows
    return moved
