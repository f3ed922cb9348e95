"""Deadlines: a trainer must never hang on a person. A missed one is a decision by policy:deadline."""

import logging
from collections.abc import Collection
from datetime import timedelta

from django.db import transaction
from django.db.models import Q

from grading import clock
from grading.errors import WrongState
from grading.grader import gather
from grading.ingest import assemble, lives
from grading.models import RolloutGroup, Run
from grading.review import decisions, findings
from grading.states import AWAITING_REVIEW, GroupState

log = logging.getLogger(__name__)
UNDER_WAY = (GroupState.COMPLETE, GroupState.GRADING)


def sweep() -> int:
    """Close what is overdue by the database's clock. Returns how many groups were decided here."""
    now = clock.now()
    assemble.close_overdue(now)
    lives.abandon_fenced()
    findings.settle_marked()
    done = 0
    for group in overdue(now):
        try:
            decide_overdue(group)
            done += 1
        except WrongState as lost:  # a person or a grader was faster
            log.info("deadline of group %s: %s", group.key, lost)
    return done


def overdue(now):
    late = Q(state__in=UNDER_WAY, grade_by__lt=now) | Q(state__in=AWAITING_REVIEW, review_by__lt=now)
    wanted = Q(state__in=(*UNDER_WAY, *AWAITING_REVIEW), wanted_by__lt=now)
    return RolloutGroup.objects.filter(late | wanted)


@transaction.atomic
def decide_overdue(group: RolloutGroup) -> None:
    """The grader's valid verdict counts, else the outcome advantages do. WrongState when somebody was faster."""
    rows = overdue(clock.now()).filter(pk=group.pk).select_related("run", "task", "rubric")
    group = rows.locked().first()  # verdicts are read under the lock
    if group is None:
        raise WrongState("it is not overdue any more")
    status = gather.effective(group).status
    if kind := decisions.end_kind(status):
        decisions.decide(group, kind, by=decisions.BY_DEADLINE, end_reason=status)
    else:
        verdict = decisions.graders_verdict(group)
        decisions.by_policy(group, verdict, by=decisions.BY_DEADLINE, otherwise=decisions.DEADLINE)


def want(run: Run, life: int, keys: Collection[str], within_s: float) -> int:
    """The job needs these groups in `within_s` seconds; the earliest deadline counts. Returns how many it moved."""
    until = clock.now() + timedelta(seconds=within_s)
    asked = RolloutGroup.objects.open().filter(run=run, life__n=life, key__in=keys)
    return asked.filter(Q(wanted_by=None) | Q(wanted_by__gt=until)).update(wanted_by=until)
