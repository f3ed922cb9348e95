"""Grade what waits: claim a group, look at it outside any transaction, store the verdict if the claim still holds."""

import logging
import time
from dataclasses import replace

from django.db import transaction
from django.db.models import QuerySet

from grading import clock
from grading.errors import BadInput, BodyCorrupt, LeaseLost, NotFound, WrongState
from grading.grader import claims, gather, running, verdicts
from grading.grader.claims import EXTERNAL
from grading.grader.inspection import inspect
from grading.grader.material import GroupMaterial
from grading.grader.parse import Checked, check
from grading.grader.running import Heard
from grading.grader.shape import GraderReply, Problem
from grading.models import Grading, RolloutGroup, Run, Verdict
from grading.models.gradings import ATTEMPTS
from grading.review import decisions
from grading.states import ENDED, GroupState, Purpose

log = logging.getLogger(__name__)
GRADER_CHARS = 60
UNDER_WAY = (GroupState.COMPLETE, GroupState.GRADING)
State = Grading.State


def drain(*, networked: bool = True) -> int:
    """Grade until nothing waits, one after the other. Returns how many gradings this call made.

    `networked` False leaves those that wait for a model to the threads of `crew`.
    """
    done = 0
    while grading := claims.next_claim(networked=False) or (networked and claims.next_claim(networked=True)):
        grade(grading)
        done += 1
    while group := RolloutGroup.objects.uninspected(clock.now()).order_by("pk").first():
        inspect(group)  # filtered groups too: a hack can hide in an all-passed group
    return done


def grade_group(group: RolloutGroup) -> None:
    """Grade one group that the caller has claimed."""
    grade(claims.begin(group, endpoint=claims.endpoint_of(group.run.grader)))


def grade(grading: Grading) -> None:
    """Grade one claimed group. What the grader gets wrong is kept with the verdict; the group then falls back."""
    group, started = grading.group, time.monotonic()
    if grading.attempt > ATTEMPTS:
        died = Problem("", f"{ATTEMPTS} graders died on this group", None, "a verdict")
        heard = Heard(unread=[died], is_failure=True)
    else:
        if group.inspected_at is None:
            inspect(group)
        heard = running.hear(grading)
    running.keep_transcript(grading, heard)
    took_s = time.monotonic() - started
    try:
        if grading.fencing:
            _store(grading, heard, took_s)
        else:
            _store_extra(grading, heard, took_s)
    except (LeaseLost, WrongState) as refused:
        if not _kept_as_extra(grading, heard, took_s):
            log.warning("the verdict on group %s came too late: %s", group.key, refused)
            _book(grading, heard, str(refused), took_s)


def dead_letters(run: Run) -> QuerySet[RolloutGroup]:
    """Groups of a run that ended without a verdict because their graders died again and again."""
    dead = Grading.objects.dead_letters().filter(group__run=run)
    return RolloutGroup.objects.filter(pk__in=dead.values("group"))


def _kept_as_extra(grading: Grading, heard: Heard, took_s: float) -> bool:
    """What a person asked for is there to read, also if a decision was faster."""
    decided = RolloutGroup.objects.filter(pk=grading.group_id, state__in=ENDED)
    if not grading.asked_by or heard.is_failure or not decided.exists():
        return False
    try:
        _store_extra(grading, heard, took_s)
    except LeaseLost:
        return False
    return True


@transaction.atomic
def _book(grading: Grading, heard: Heard, why: str, took_s: float) -> None:
    """A refused verdict is not kept, what it cost is."""
    now = RolloutGroup.objects.locked().get(pk=grading.group_id)
    cost = {"grading": grading.pk, "duration_s": took_s, "cost_usd": heard.record.cost_usd}
    now.note(now.state, by=f"grader:{grading.grader}", reason=f"verdict refused: {why}", details=cost)
    problems = [Problem("", f"refused: {why}"), *heard.unread]
    running.end(grading, heard, state=State.REFUSED, duration_s=took_s, problems=problems)


@transaction.atomic
def _store(grading: Grading, heard: Heard, took_s: float) -> None:
    verdict = _store_verdict(
        grading.group, heard.reply, fencing=grading.fencing, unread=heard.unread, grader=grading.grader,
        duration_s=took_s, cost_usd=heard.record.cost_usd, flips=heard.record.flips,
        is_asked=bool(grading.asked_by), details={"grading": grading.pk} | heard.details,
    )  # fmt: skip
    _close(grading, heard, verdict, took_s)


@transaction.atomic
def _store_extra(grading: Grading, heard: Heard, took_s: float) -> None:
    """After a decision nothing moves: one more verdict to read."""
    group = RolloutGroup.objects.locked().select_related("run", "task", "rubric").get(pk=grading.group_id)
    if not Grading.objects.filter(pk=grading.pk, state=State.RUNNING, attempt=grading.attempt).exists():
        raise LeaseLost(f"grading {grading.pk} was taken from its worker")
    purpose = Purpose.ANCHOR if grading.round_id else Purpose.EXTRA
    fields = {"duration_s": took_s, "cost_usd": heard.record.cost_usd, "purpose": purpose}
    verdict = _checked_and_stored(group, heard.reply, heard.unread, grader=grading.grader, **fields)
    _close(grading, heard, verdict, took_s)


def _close(grading: Grading, heard: Heard, verdict: Verdict, took_s: float) -> None:
    state = State.FAILED if heard.is_failure else State.VALID if verdict.is_valid else State.INVALID
    said = [Problem(**problem) for problem in verdict.problems]
    problems = heard.unread or said if heard.is_failure else said  # without a reply nobody is "missing" in it
    running.end(grading, heard, state=state, verdict=verdict, duration_s=took_s, problems=problems)


@transaction.atomic
def store_verdict(group: RolloutGroup, reply: GraderReply, **fields) -> Verdict:
    """Check and store the claimed group's verdict, then apply the policy. LeaseLost when the claim is gone.

    `fields`: fencing, and where they apply unread, grader, flips, is_asked, details, duration_s, cost_usd.
    """
    return _store_verdict(group, reply, **fields)


def _store_verdict(
    group: RolloutGroup,
    reply: GraderReply,
    *,
    fencing: int,
    unread=(),
    grader: str = "",
    flips: float | None = None,
    is_asked: bool = False,
    details: dict | None = None,
    **cost,
) -> Verdict:
    """`is_asked`: a person asked for it; an invalid one then takes nothing away from a valid one before it."""
    group = RolloutGroup.objects.locked().select_related("run", "task", "rubric").get(pk=group.pk)
    if group.state != GroupState.GRADING or group.fencing != fencing:
        raise LeaseLost(f"group {group.key} is {group.state} under token {group.fencing}", got=fencing)
    standing = decisions.newest_verdict(group) if is_asked else None
    verdict = _checked_and_stored(
        group, reply, unread, grader=grader or group.run.grader, fencing=fencing,
        is_extra_unless_valid=bool(standing and standing.is_valid), **cost,
    )  # fmt: skip
    counts = verdict if verdict.purpose == Purpose.TRAINING else standing
    group.move(
        GroupState.GRADED if counts.is_valid else GroupState.UNGRADED, by=f"grader:{verdict.grader}",
        details={"verdict": verdict.pk, "problems": len(verdict.problems), "flips": flips} | (details or {}),
        graded_at=clock.now(), claimed_until=None,
    )  # fmt: skip
    decisions.after_graded(group, counts, flips=flips)
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
        return _store_verdict(group, reply, fencing=group.fencing, grader=grader)
    return _checked_and_stored(group, reply, (), grader=grader, purpose=Purpose.EXTRA)


@transaction.atomic
def add_audit(group: RolloutGroup, reply: GraderReply, *, grader: str) -> Verdict:
    """One more verdict to read of a group, whatever its state: it decides nothing and moves nothing."""
    group = RolloutGroup.objects.locked().select_related("run", "task", "rubric").get(pk=group.pk)
    return _checked_and_stored(group, reply, (), grader=grader, purpose=Purpose.AUDIT)


def _checked_and_stored(
    group: RolloutGroup, reply: GraderReply, unread, *, is_extra_unless_valid: bool = False, **fields
) -> Verdict:
    """The candidates are read under the lock: a finding confirmed or withdrawn meanwhile already counts."""
    try:
        material = gather.material_of(group)
        cleared = gather.cleared(group)
        heard = replace(reply, findings=tuple(f for f in reply.findings if f.id not in cleared))
        checked: Checked = check(heard, material, (group.rubric or group.run.rubric).rubric, unread)
    except (BodyCorrupt, NotFound) as broken:
        problem = Problem("", broken.what, broken.got, broken.expected)
        heard, material = reply, GroupMaterial.of([])
        checked = Checked(False, (*unread, problem), None, ())
    if is_extra_unless_valid and not checked.valid:
        fields["purpose"] = Purpose.EXTRA
    return verdicts.store(group, heard, checked, material, said=reply, **fields)
