"""People confirm leaks and hacks, withdraw them, and quarantine tasks whose tests are broken. All is reversible."""

from collections.abc import Sequence

from django.db import transaction
from django.db.models import Q

from grading.errors import BadInput, Conflict
from grading.grader import gather
from grading.models import Finding, RolloutGroup, Run, Task, TaskEvent, Trajectory
from grading.review.anchors import Citation
from grading.review.recount import recount
from grading.states import OPEN, EndReason, GroupState, Integrity


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
    return finding


@transaction.atomic
def quarantine(task: Task, *, reason: str, user, group: RolloutGroup | None = None) -> None:
    """The task's tests are broken: groups not delivered yet end now, those of later steps when they are complete.

    `group` is where the person saw it; it gets a new version even if it was delivered.
    """
    _mark(task, True, reason, user)
    undelivered = Q(state__in=OPEN) | Q(state=GroupState.DECIDED, run__kind=Run.Kind.LIVE)
    seen = Q(pk=group.pk) if group else Q()
    _recount(task, undelivered | seen, user, f"task broken: {reason}")


@transaction.atomic
def release(task: Task, *, reason: str, user) -> None:
    """The tests work after all: groups that were excluded for it count again, as new versions."""
    _mark(task, False, reason, user)
    excluded = Q(end_reason=EndReason.EXCLUDED_BROKEN_EVALUATION)
    _recount(task, excluded, user, f"task released: {reason}")


def _recount(task: Task, which: Q, user, reason: str) -> None:
    """Locked in one order, so that two people who press at once cannot wait for each other."""
    rows = RolloutGroup.objects.filter(which, task=task).exclude(state=GroupState.COLLECTING)
    for group in rows.locked().select_related("run", "task", "rubric").order_by("pk"):
        group.task.is_broken = task.is_broken
        recount(group, by=user.username, reason=reason, user=user)


def _mark(task: Task, broken: bool, reason: str, user) -> None:
    if not reason.strip():
        raise BadInput("a quarantine or its release needs a reason")
    if not Task.objects.filter(pk=task.pk, is_broken=not broken).update(is_broken=broken):
        raise Conflict(f"task {task.key} is {'already' if broken else 'not'} quarantined")
    TaskEvent.objects.create(task=task, is_broken=broken, by=user.username, reason=reason)
    task.is_broken = broken
