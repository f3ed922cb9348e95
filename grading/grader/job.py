"""Grade what waits: claim a group, look at it outside any transaction, store the verdict if the claim still holds."""

import logging
import os
import socket
import time
from collections.abc import Callable
from dataclasses import replace

from django.conf import settings
from django.db import transaction

from grading import clock
from grading.errors import BadInput, BodyCorrupt, LeaseLost, NotFound, WrongState
from grading.grader import gather, static, verdicts
from grading.grader.material import GroupMaterial
from grading.grader.parse import Checked, check
from grading.grader.shape import GraderReply, Problem
from grading.integrity.registry import detect
from grading.integrity.signals import Signal as Hint
from grading.models import RolloutGroup, Signal, Trajectory, Verdict
from grading.review import decisions
from grading.states import GroupState, Purpose
from grading.storable import storable

log = logging.getLogger(__name__)
Grader = Callable[[GroupMaterial], GraderReply]
GRADERS: dict[str, Grader] = {"static": static.grade}
ATTEMPTS = 3
GRADER_CHARS = 60
UNDER_WAY = (GroupState.COMPLETE, GroupState.GRADING)
EXTERNAL = "external"  # a grader of the team's own posts its verdicts


def drain() -> int:
    """Grade until nothing waits. Returns how many groups this call graded."""
    done = 0
    while group := _claim_next():
        grade_group(group)
        done += 1
    while group := RolloutGroup.objects.uninspected(clock.now()).order_by("pk").first():
        inspect(group)  # filtered groups too: a hack can hide in an all-passed group
    return done


def _claim_next() -> RolloutGroup | None:
    """The oldest step first, then the nearest deadline. Another worker may be faster: then the next one."""
    waiting = RolloutGroup.objects.gradable(clock.now()).exclude(run__grader=EXTERNAL)
    for group in waiting.select_related("run", "task", "rubric").order_by("step", "grade_by", "pk")[:16]:
        if group.claim(by=f"{socket.gethostname()}:{os.getpid()}", lease_s=settings.GAGAR_LEASE_S):
            return group
    return None


def grade_group(group: RolloutGroup) -> None:
    """Grade one claimed group. What the grader gets wrong is kept with the verdict; the group then falls back."""
    started, fencing = time.monotonic(), group.fencing
    if group.grading_attempts > ATTEMPTS:
        reply, unread = GraderReply(()), [Problem("", f"{ATTEMPTS} graders died on this group", None, "a verdict")]
    else:
        if group.inspected_at is None:
            inspect(group)
        reply, unread = _ask(group)
    try:
        store_verdict(group, reply, unread=unread, fencing=fencing, duration_s=time.monotonic() - started)
    except (LeaseLost, WrongState) as refused:
        log.warning("the verdict on group %s came too late: %s", group.key, refused)
        _book(group, str(refused), duration_s=time.monotonic() - started)


@transaction.atomic
def _book(group: RolloutGroup, why: str, **cost) -> None:
    """A refused verdict is not kept, what it cost is."""
    now = RolloutGroup.objects.locked().get(pk=group.pk)
    now.note(now.state, by=f"grader:{group.run.grader}", reason=f"verdict refused: {why}", details=cost)


def _ask(group: RolloutGroup) -> tuple[GraderReply, list[Problem]]:
    """Whatever a grader raises is a failure of the grader, never of the group."""
    try:
        return GRADERS[group.run.grader](gather.material_of(group)), []
    except Exception as failure:
        log.exception("grader %s failed on group %s", group.run.grader, group.key)
        return GraderReply(()), [Problem("", f"the grader raised {type(failure).__name__}: {failure}"[:500])]


@transaction.atomic
def store_verdict(
    group: RolloutGroup, reply: GraderReply, *, fencing: int, unread=(), grader: str = "", duration_s=None
) -> Verdict:
    """Check and store the claimed group's verdict, then apply the policy. LeaseLost when the claim is gone."""
    group = RolloutGroup.objects.locked().select_related("run", "task", "rubric").get(pk=group.pk)
    if group.state != GroupState.GRADING or group.fencing != fencing:
        raise LeaseLost(f"group {group.key} is {group.state} under token {group.fencing}", got=fencing)
    verdict = _checked_and_stored(
        group, reply, unread, grader=grader or group.run.grader, fencing=fencing, duration_s=duration_s
    )
    to = GroupState.GRADED if verdict.is_valid else GroupState.UNGRADED
    group.move(
        to, by=f"grader:{verdict.grader}", details={"verdict": verdict.pk, "problems": len(verdict.problems)},
        graded_at=clock.now(), claimed_until=None,
    )  # fmt: skip
    decisions.after_graded(group, verdict)
    return verdict


def accept(group: RolloutGroup, reply: GraderReply, *, grader: str) -> Verdict:
    """A verdict from a grader of the team's own: the training verdict of a group that waits for one, else an extra."""
    if grader == decisions.PERSON or not grader or len(grader) > GRADER_CHARS:
        raise BadInput("no name for a grader", got=grader[:80], expected=f"1 to {GRADER_CHARS} characters, not person")
    if group.inspected_at is None and group.state in UNDER_WAY:
        inspect(group)  # strong signals hold a group, whoever grades it
    return _accept(group, reply, grader=grader)


@transaction.atomic
def _accept(group: RolloutGroup, reply: GraderReply, *, grader: str) -> Verdict:
    group = RolloutGroup.objects.locked().select_related("run", "task", "rubric").get(pk=group.pk)
    if group.state == GroupState.COLLECTING:
        raise WrongState(f"group {group.key} is still collecting: a verdict needs all its rollouts")
    if group.run.grader == EXTERNAL and group.state in UNDER_WAY:
        if group.state == GroupState.COMPLETE:
            group.move(GroupState.GRADING, by=f"grader:{grader}", fencing=group.fencing + 1)
        return store_verdict(group, reply, fencing=group.fencing, grader=grader)
    return _checked_and_stored(group, reply, (), grader=grader, purpose=Purpose.EXTRA)


def _checked_and_stored(group: RolloutGroup, reply: GraderReply, unread, **fields) -> Verdict:
    """The candidates are read under the lock: a finding confirmed or withdrawn meanwhile already counts."""
    try:
        material = gather.material_of(group)
    except (BodyCorrupt, NotFound) as broken:
        problem = Problem("", broken.what, broken.got, broken.expected)
        nothing = GroupMaterial.of([])
        return verdicts.store(group, reply, Checked(False, (*unread, problem), None, ()), nothing, **fields)
    cleared = gather.cleared(group)
    heard = replace(reply, findings=tuple(f for f in reply.findings if f.id not in cleared))
    checked: Checked = check(heard, material, (group.rubric or group.run.rubric).rubric, unread)
    return verdicts.store(group, heard, checked, material, said=reply, **fields)


def inspect(group: RolloutGroup) -> None:
    """Run the integrity detectors over every rollout and keep their hints with their places."""
    found = []
    for trajectory in gather.counted(group):
        try:
            found += [_row(trajectory, signal) for signal in detect(*gather.inspected(trajectory))]
        except Exception as failure:  # a body that cannot be read must not stop every other group
            log.exception("rollout %s of group %s could not be inspected", trajectory, group.key)
            words = f"not inspected: {type(failure).__name__}: {failure}"
            found.append(Signal(trajectory=trajectory, detector="", is_strong=False, words=storable(words)[:500]))
    now = clock.now()
    with transaction.atomic():
        if RolloutGroup.objects.filter(pk=group.pk, inspected_at=None).update(inspected_at=now):
            Signal.objects.bulk_create(found)
    group.inspected_at = now


def _row(trajectory: Trajectory, signal: Hint) -> Signal:
    return Signal(
        trajectory=trajectory,
        detector=signal.detector,
        is_strong=signal.strength == "strong",
        words=storable(signal.words)[:500],
        place=storable(signal.place.to_json()) if signal.place else {},
    )
