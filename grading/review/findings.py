"""People confirm leaks and hacks, withdraw them, and quarantine tasks whose tests are broken. All is reversible."""

import logging
from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction
from django.db.models import Q

from grading import clock, wake
from grading.errors import BadInput, Conflict, GradingError
from grading.grader import gather
from grading.models import Finding, RolloutGroup, Run, Task, TaskEvent, Trajectory, User
from grading.review.anchors import Citation
from grading.review.recount import recount
from grading.states import OPEN, EndReason, GroupState, Integrity

log = logging.getLogger(__name__)
SETTLING_S = 60  # a transaction that still read the task's old mark is over by then


@transaction.atomic
def confirm(trajectory: Trajectory, *, kind: str, reason: str, citations: Sequence[Citation], user) -> Finding:
    """A person confirms a leak or a hack with evidence: the rollout counts as failed, before any statistic."""
    if kind not in Integrity.values:
        raise BadInput("unknown kind of finding", got=kind, expected=" or ".join(Integrity.values))
    group = _locked(trajectory)
    material = gather.material_of(group)
    candidate = material.get(trajectory.external_id)
    if candidate is None:
        counts = "a late rollout" if trajectory.is_late else trajectory.outcome
        raise BadInput("only a valid rollout can be found to leak or hack", got=counts)
    if not reason.strip():
        raise BadInput("a finding needs a reason", expected="what was done, in a sentence")
    why = [candidate.resolve(citation) for citation in citations if citation.candidate == trajectory.external_id]
    if not any(resolution.resolves for resolution in why):
        said = "; ".join(resolution.why for resolution in why) or "no citation of this rollout"
        raise BadInput("a finding needs evidence that is there", got=said, expected="a line, an event or a result")
    return _set(group, trajectory, kind, reason=reason, citations=[c.to_json() for c in citations], user=user)


@transaction.atomic
def withdraw(trajectory: Trajectory, *, reason: str, user) -> Finding:
    """Take a confirmed finding back; the rollout counts again as its tests say."""
    group = _locked(trajectory)
    if not reason.strip():
        raise BadInput("a withdrawal needs a reason", expected="why it was no leak or hack, in a sentence")
    if not trajectory.integrity:
        raise Conflict(f"rollout {trajectory.external_id} has no confirmed finding to withdraw")
    return _set(group, trajectory, "", reason=reason, citations=[], user=user)


def _locked(trajectory: Trajectory) -> RolloutGroup:
    group = RolloutGroup.objects.locked().select_related("run", "task", "rubric").get(pk=trajectory.group_id)
    trajectory.refresh_from_db()
    return group


def _set(group: RolloutGroup, trajectory: Trajectory, kind: str, *, reason: str, citations: list, user) -> Finding:
    if trajectory.integrity == kind:
        raise Conflict(f"rollout {trajectory.external_id} is already confirmed as {kind}")
    finding = Finding.objects.create(
        trajectory=trajectory, kind=kind, by=user.username, reason=reason, citations=citations
    )
    Trajectory.objects.filter(pk=trajectory.pk).update(integrity=kind)
    said = f"{kind or 'finding withdrawn'} {trajectory.letter or trajectory.external_id}: {reason}"
    group.note(group.state, by=user.username, reason=said, details={"finding": finding.pk, "kind": kind})
    recount(group, by=user.username, reason=said, user=user)
    wake.pages(group.run_id)
    return finding


def quarantine(task: Task, *, reason: str, user, group: RolloutGroup | None = None) -> None:
    """The task's tests are broken: groups not delivered yet end now, those of later steps when they are complete.

    `group` is where the person saw it; it gets a new version even if it was delivered.
    """
    with transaction.atomic():
        mark = _mark(task, True, reason, user)
        if group is not None:
            _recount(RolloutGroup.objects.filter(pk=group.pk), mark)
    settle(task)


def release(task: Task, *, reason: str, user) -> None:
    """The tests work after all: groups that were excluded for it count again, as new versions."""
    _mark(task, False, reason, user)
    settle(task)


@transaction.atomic
def _mark(task: Task, broken: bool, reason: str, user) -> TaskEvent:
    if not reason.strip():
        raise BadInput("a quarantine or its release needs a reason")
    until = clock.now() + timedelta(seconds=SETTLING_S)
    if not Task.objects.filter(pk=task.pk, is_broken=not broken).update(is_broken=broken, settling_until=until):
        raise Conflict(f"task {task.key} is {'already' if broken else 'not'} quarantined")
    task.is_broken = broken
    for run_pk in RolloutGroup.objects.filter(task=task).order_by().values_list("run", flat=True).distinct():
        wake.pages(run_pk)
    return TaskEvent.objects.create(task=task, is_broken=broken, by=user.username, reason=reason)


def settle(task: Task) -> None:
    """Count the groups again that do not stand yet as the task's last mark says, each in a transaction of its own.

    A group that cannot be read is logged and stays as it was: it must not keep the others from counting.
    """
    mark = task.events.order_by("-pk").first()
    for pk in list(_unsettled(mark).order_by("pk").values_list("pk", flat=True)):
        try:
            with transaction.atomic():
                _recount(_unsettled(mark).filter(pk=pk, task__is_broken=mark.is_broken), mark)
        except GradingError:
            log.exception("group %s of task %s could not be counted again", pk, task.key)


def settle_marked() -> None:
    """For the sweep: finish what a killed process left, and find groups that were completed beside a mark."""
    now = clock.now()
    for task in Task.objects.filter(settling_until__isnull=False):
        settle(task)
        if task.settling_until < now:
            Task.objects.filter(pk=task.pk, settling_until=task.settling_until).update(settling_until=None)


def _unsettled(mark: TaskEvent):
    """Groups of the task that do not stand as the mark says. What was delivered keeps its version when it breaks."""
    groups = RolloutGroup.objects.filter(task=mark.task_id)
    if not mark.is_broken:
        return groups.filter(end_reason=EndReason.EXCLUDED_BROKEN_EVALUATION)
    undelivered = Q(state__in=OPEN - {GroupState.COLLECTING}) | Q(state=GroupState.DECIDED, run__kind=Run.Kind.LIVE)
    return groups.filter(undelivered).exclude(
        end_reason__in=(EndReason.EXCLUDED_BROKEN_EVALUATION, EndReason.ABANDONED)
    )


def _recount(one, mark: TaskEvent) -> None:
    """Count the group of this query again, if it is still in there once it is locked."""
    group = one.locked().select_related("run", "task", "rubric").first()
    if group is not None:
        reason = f"task {'broken' if mark.is_broken else 'released'}: {mark.reason}"
        recount(group, by=mark.by, reason=reason, user=User.objects.filter(username=mark.by).first())
