"""Judge what waits in audits: claim a group, ask the grader outside any transaction, store if the claim holds."""

import logging
import time
from dataclasses import replace
from threading import Lock, Thread

from django.conf import settings
from django.db import connection, connections, transaction

from grading import bodies, clock
from grading.audit.judged import with_failures
from grading.audit.keeper import AuditKeeper
from grading.audit.workspace import AuditWorkspace
from grading.errors import LeaseLost, WrongState
from grading.grader import claims
from grading.grader.graders import GRADERS
from grading.grader.options import GradingOptions
from grading.grader.parse import Checked, check
from grading.grader.record import Answer, Record
from grading.grader.running import failure_problems
from grading.grader.shape import GraderReply, Problem
from grading.models import AuditGroup, AuditVerdict
from grading.scoring.tiers import TIER_NAMES
from grading.storable import storable

log = logging.getLogger(__name__)
ATTEMPTS = 3  # claims of a group whose workers died
PROMPT_CHARS = 80
State = AuditGroup.State
_lock = Lock()
_thread: Thread | None = None


def drain(*, networked: bool = True) -> int:
    """Judge until nothing waits. Returns how many groups this call judged; `networked` False leaves those of models."""
    done = 0
    while group := next_claim(networked=False) or (networked and next_claim(networked=True)) or None:
        grade(group)
        done += 1
    return done


def start() -> bool:
    """One thread of this process judges what waits for a model: audits have time, and training goes first."""
    global _thread
    with _lock:
        if _thread and _thread.is_alive():
            return False
        group = next_claim(networked=True)
        if group is None:
            return False
        _thread = Thread(target=_work, args=[group], name=f"audit group {group.pk}", daemon=True)
        _thread.start()
    return True


def _work(group: AuditGroup) -> None:
    try:
        grade(group)
    except Exception:  # the database is gone, or a mistake of ours: the lease runs out and the group is tried again
        log.exception("the audit of a group broke off")
    finally:
        connections.close_all()


def next_claim(*, networked: bool) -> AuditGroup | None:
    """The next group of an audit that a grader of ours judges, claimed; None where nothing waits."""
    graders = [name for name in GRADERS if claims.is_networked(name) == networked]
    waiting = AuditGroup.objects.free(clock.now()).filter(audit__grader__in=graders)
    for group in waiting.select_related("audit__rubric", "task").order_by("audit", "place")[:4]:
        endpoint = claims.endpoint_of(group.audit.grader, group.audit.model)
        if claims.pauses.lasts(endpoint, now=time.monotonic()) or not claims.has_room(endpoint):
            continue
        if group.claim(by=claims.worker(), lease_s=settings.GAGAR_LEASE_S):
            return group
    return None


def grade(group: AuditGroup) -> AuditVerdict | None:
    """Judge one claimed group. None where the claim was lost meanwhile; a reply that is not valid is kept with why."""
    started, fencing = time.monotonic(), group.fencing
    options = GradingOptions(model=group.audit.model, checks=False)
    if group.attempts > ATTEMPTS:
        died = Problem("", f"{ATTEMPTS} graders died on this group", None, "a verdict")
        return _store(group, fencing, Answer(GraderReply(()), (died,)), None, record=Record(), started=started)
    record, checked = Record(), None
    with AuditKeeper(group, wall_s=options.max_wall_s) as keeper:
        record.cancelled = keeper.cancelled
        if claims.is_networked(group.audit.grader) and not connection.in_atomic_block:
            connection.close()  # it will wait for a model: others need the connection
        try:
            with AuditWorkspace.open(group) as workspace:
                record.order = workspace.order
                answer = _ask(workspace, options, record)
                checked = check(answer.reply, workspace.material, group.audit.rubric.rubric, answer.unread)
        except Exception as failure:
            answer = Answer(GraderReply(()), failure_problems(failure, f"the audit of {group}"))
    return _store(group, fencing, answer, checked, record=record, started=started)


def _ask(workspace: AuditWorkspace, options: GradingOptions, record: Record) -> Answer:
    grader = workspace.group.audit.grader
    answer = GRADERS[grader](workspace, options, record)
    if grader != claims.INLINE:
        return answer
    shown = workspace.shown
    failed = {one.letter for one in shown.values() if not any(shown[a].passed for a in (one.letter, *one.twins))}
    return replace(answer, reply=with_failures(answer.reply, failed))


def _store(
    group: AuditGroup, fencing: int, answer: Answer, checked: Checked | None, *, record: Record, started: float
) -> AuditVerdict | None:
    transcript = bodies.write_events(storable(list(record.events))) if record.events else None
    try:
        with transaction.atomic():
            hold(group, fencing)
            return store(
                group, answer.reply, checked, unread=answer.unread, grader=group.audit.grader,
                model=record.model or group.audit.model, prompt=record.prompt[:PROMPT_CHARS], order=list(record.order),
                transcript=transcript.sha256 if transcript else "", event_count=transcript.events if transcript else 0,
                duration_s=time.monotonic() - started, cost_usd=record.cost_usd,
            )  # fmt: skip
    except (LeaseLost, WrongState) as lost:
        log.warning("a verdict on %s came too late: %s", group, lost)
        return None


def hold(group: AuditGroup, fencing: int) -> None:
    """Lock a claimed group. Raises LeaseLost where another has it now, WrongState where the audit is revealed."""
    now = AuditGroup.objects.select_for_update().select_related("audit").get(pk=group.pk)
    if now.audit.is_revealed:
        raise WrongState(f"{now.audit} is revealed: who made what is known, so nothing is judged any more")
    if now.state != State.GRADING or now.fencing != fencing:
        raise LeaseLost(f"{now} is {now.state} under token {now.fencing}", got=fencing)


def store(group: AuditGroup, reply: GraderReply, checked: Checked | None, *, unread=(), **fields) -> AuditVerdict:
    """Write a verdict and close the group; call inside a transaction that holds it."""
    is_valid = bool(checked and checked.valid)
    problems = checked.problems if checked else unread
    verdict = AuditVerdict.objects.create(
        group=group,
        is_valid=is_valid,
        problems=storable([problem.to_json() for problem in problems]),
        reply=storable(reply.to_json()),
        ranking=ranking_json(checked.grades.ranking) if is_valid else {},
        **fields,
    )
    close(group, State.DONE if is_valid else State.FAILED)
    return verdict


def close(group: AuditGroup, state: str) -> None:
    AuditGroup.objects.filter(pk=group.pk).update(state=state, claimed_until=None, claimed_by="")
    group.state = state


def ranking_json(ranking) -> dict:
    return {name: [list(tied) for tied in ranking[tier]] for tier, name in TIER_NAMES.items()}
