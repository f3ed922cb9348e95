"""Who is graded next: runs in turn, inside a run the oldest step, then the nearest deadline; so many at one endpoint.

A claim is the group's lease and one `Grading` row, made in one transaction. What is not worth a grade ends here.
"""

import logging
import os
import random
import socket
import time
from collections import Counter
from datetime import timedelta
from urllib.parse import urlsplit
from zlib import crc32

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, Q

from grading import clock
from grading.errors import WrongShape, WrongState
from grading.grader import gather, spending, worth
from grading.grader.graders import GRADERS
from grading.grader.inspection import inspect
from grading.grader.options import GradingOptions
from grading.grader.pauses import Pauses
from grading.models import Grading, RolloutGroup, Run, Signal
from grading.models.gradings import ATTEMPTS
from grading.review import decisions
from grading.states import ENDED, DecisionKind, GroupState

log = logging.getLogger(__name__)
EXTERNAL = "external"  # a grader of the team's own posts its verdicts
INLINE = "static"
LOOKED_AT = 16  # groups of one run; of those that are graded in a moment a few do
A_FEW = 4
BY_BUDGET, BY_WORTH = "policy:budget", "policy:worth"
RUNNING = Grading.State.RUNNING
ASKED = Q(state=RUNNING) & ~Q(asked_by="")  # by a person: begun, or queued
QUEUED = ASKED & Q(attempt=0)
pauses = Pauses()


def is_networked(grader: str) -> bool:
    """Whether a grader waits for a model; the others are done in a moment, failures of an unknown name too."""
    return grader in GRADERS and grader != INLINE


def has_endpoint() -> bool:
    """Whether a model can be asked at all; without one, gradings by a model fail at once, here or anywhere."""
    return bool(settings.GAGAR_GRADER_URL or settings.GAGAR_GRADER_KEY)


def endpoint_of(grader: str, model: str = "") -> str:
    """Where a grading waits: host and port of the operator's endpoint, or the vendor; "" for one without a model."""
    if not is_networked(grader):
        return ""
    if url := settings.GAGAR_GRADER_URL:
        return urlsplit(url).netloc.rpartition("@")[2][:200]
    return (model or settings.GAGAR_GRADER_MODEL).partition(":")[0] or grader


def next_claim(*, networked: bool) -> Grading | None:
    """The next grading for this process, its group claimed; None where nothing waits or no endpoint has room."""
    for run in _runs_in_turn(networked=networked):
        if claimed := _claim_of(run, networked=networked):
            return claimed
    return _claim_extra(networked=networked)


def _runs_in_turn(*, networked: bool) -> list[Run]:
    """Runs with waiting groups: those with the fewest gradings under way first, equals in random order."""
    waiting = RolloutGroup.objects.gradable(clock.now()).exclude(run__grader=EXTERNAL)
    runs = list(Run.objects.filter(pk__in=waiting.values("run")))
    if len(runs) < 2:
        return runs
    random.shuffle(runs)
    if not networked:
        return runs
    busy = Counter(Grading.objects.filter(state=RUNNING, attempt__gt=0).values_list("group__run", flat=True))
    return sorted(runs, key=lambda run: busy[run.pk])


def _claim_of(run: Run, *, networked: bool) -> Grading | None:
    try:
        options = GradingOptions.from_json(run.grading)
    except WrongShape:  # the grading itself will say so; one run's options stop no other run
        options = GradingOptions()
    waiting = RolloutGroup.objects.gradable(clock.now()).filter(run=run).select_related("task", "rubric")
    for group in waiting.order_by("step", "grade_by", "pk")[: LOOKED_AT if networked else A_FEW]:
        group.run = run
        asked = Grading.objects.filter(ASKED, group=group).last() if group.graded_at else None
        grader, model = (asked.grader, asked.model) if asked else (run.grader, options.model)
        if is_networked(grader) != networked:
            continue
        endpoint = endpoint_of(grader, model)
        if pauses.lasts(endpoint, now=time.monotonic()):
            continue
        if networked and group.state == GroupState.COMPLETE and (words := why_skipped(group)):
            skip(group, words, by=BY_WORTH)
            continue
        try:
            if claimed := _claim(group, asked, grader, endpoint, options):
                return claimed
        except (Full, spending.Later):
            return None
    return None


class Full(Exception):
    """So many gradings as are allowed wait at this endpoint."""


@transaction.atomic
def _claim(group: RolloutGroup, asked: Grading | None, grader: str, endpoint: str, options) -> Grading | None:
    """Count, then claim, alone: two workers must not take the last place both."""
    _alone(endpoint or f"run {group.run_id}")
    _refuse_full(endpoint)
    if endpoint and group.grading_attempts == ATTEMPTS - 1 and _under_way(endpoint).filter(attempt=ATTEMPTS).exists():
        return None  # last tries go one by one: a group that kills its worker takes no other along for good
    if group.grading_attempts == 0 and not asked and (words := spending.spent_out(group, options)):
        skip(group, words, by=BY_BUDGET)
        return None
    run, task, rubric = group.run, group.task, group.rubric
    if not group.claim(by=worker(), lease_s=settings.GAGAR_LEASE_S):
        return None  # another worker was faster
    group.run, group.task, group.rubric = run, task, rubric  # what a fresh look at the row forgot
    return begin(group, asked, grader=grader, endpoint=endpoint)


def begin(group: RolloutGroup, asked: Grading | None = None, *, grader: str = "", endpoint: str = "") -> Grading:
    """The row of a claimed group's grading. Those whose lease had run out before have died."""
    if group.grading_attempts > 1:
        dead = Grading.objects.filter(group=group, state=RUNNING, attempt__gt=0, fencing__lt=group.fencing)
        dead.update(state=Grading.State.DIED, ended_at=clock.now())
    fields = {"attempt": group.grading_attempts, "fencing": group.fencing, "endpoint": endpoint, "duration_s": 0.0}
    if asked and Grading.objects.filter(QUEUED, pk=asked.pk).update(started_at=clock.now(), **fields):
        for name, value in fields.items():
            setattr(asked, name, value)
        asked.group = group
        return asked
    if asked:  # whoever worked at it has died
        fields |= {"model": asked.model, "asked_by": asked.asked_by, "round_id": asked.round_id}
    return Grading.objects.create(group=group, grader=grader or group.run.grader, **fields)


def queue_again(grading: Grading) -> None:
    """What a person asked for still waits to be done; the row of the attempt stays for what it cost."""
    Grading.objects.filter(pk=grading.pk, state=RUNNING).update(state=Grading.State.DIED, ended_at=clock.now())
    fields = {"grader": grading.grader, "model": grading.model, "asked_by": grading.asked_by}
    Grading.objects.create(group=grading.group, attempt=0, round_id=grading.round_id, **fields)


def bury() -> int:
    """Close the rows of workers that died and whose group went on without them. Returns how many."""
    count, now, lease_s = 0, clock.now(), settings.GAGAR_LEASE_S
    for row in Grading.objects.filter(state=RUNNING, attempt__gt=0).select_related("group"):
        is_ours = row.fencing and row.group.state == GroupState.GRADING and row.group.fencing == row.fencing
        beaten_at = row.started_at + timedelta(seconds=row.duration_s or 0.0)
        if is_ours or now < beaten_at + timedelta(seconds=2 * lease_s):
            continue  # the group's own lease decides, or a heartbeat may still come
        with transaction.atomic():
            if Grading.objects.filter(pk=row.pk, state=RUNNING, attempt=row.attempt).update(
                state=Grading.State.DIED, ended_at=now
            ):
                count += 1
                died = Grading.objects.filter(group=row.group, asked_by=row.asked_by, fencing=0, state="died")
                if row.asked_by and not row.fencing and died.count() < ATTEMPTS:
                    queue_again(row)
    return count


def _claim_extra(*, networked: bool) -> Grading | None:
    """A grading that a person asked for of a group that is decided: its verdict is one more to read."""
    rows = Grading.objects.filter(QUEUED, group__state__in=ENDED)
    for asked in rows.select_related("group__run", "group__task", "group__rubric")[:LOOKED_AT]:
        endpoint = endpoint_of(asked.grader, asked.model)
        if is_networked(asked.grader) != networked or pauses.lasts(endpoint, now=time.monotonic()):
            continue
        with transaction.atomic():
            try:
                _alone(endpoint)
                _refuse_full(endpoint)
            except Full:
                continue
            fields = {"attempt": 1, "endpoint": endpoint, "duration_s": 0.0, "started_at": clock.now()}
            if Grading.objects.filter(QUEUED, pk=asked.pk).update(**fields):
                for name, value in fields.items():
                    setattr(asked, name, value)
                return asked
    return None


def _alone(name: str) -> None:
    """Until the transaction ends, nobody else counts and claims there. SQLite has one writer anyway."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [crc32(f"gagar claims at {name}".encode())])


def _refuse_full(endpoint: str) -> None:
    """Raises Full. A dead worker's claim counts as long as its lease lasts."""
    if endpoint and _under_way(endpoint).count() >= settings.GAGAR_GRADER_CONCURRENCY:
        raise Full


def has_room(endpoint: str) -> bool:
    """Whether fewer gradings than allowed wait at an endpoint; for work that has time, which counts none of its own."""
    return not endpoint or _under_way(endpoint).count() < settings.GAGAR_GRADER_CONCURRENCY


def _under_way(endpoint: str):
    lives = Q(group__state=GroupState.GRADING, group__fencing=F("fencing"), group__claimed_until__gte=clock.now())
    return Grading.objects.filter(lives | Q(fencing=0), state=RUNNING, attempt__gt=0, endpoint=endpoint)


def why_skipped(group: RolloutGroup) -> str:
    """Why no ranking of a complete group could change an advantage; "" if one could, or if a signal is to be judged.

    Asked before a model is paid; a grade without one costs no more than this question.
    """
    if group.grading_attempts or group.graded_at:
        return ""
    only = (*gather.COUNTING, "patch", "event_count")
    trajectories = list(group.trajectories.counted().only(*only))
    tied = {t.external_id: t.external_id if t.event_count else f"patch {t.patch}" for t in trajectories}
    rows = gather.effective(group, trajectories)
    if decisions.end_kind(rows.status):
        return ""
    words = worth.why_unchanged(
        rows.rows,
        tied,
        method=group.method,
        rubric=(group.rubric or group.run.rubric).rubric,
        neutral_when_equal=group.neutral_when_equal,
    )
    if words and group.inspected_at is None:
        inspect(group)
    return "" if words and Signal.objects.filter(trajectory__group=group, is_strong=True).exists() else words


def skip(group: RolloutGroup, words: str, *, by: str) -> None:
    """Decide a group without a grade: outcome advantages, reason `skipped`, the words in its history."""
    try:
        with transaction.atomic():
            group.note(group.state, by=by, reason=f"not graded: {words}")
            decisions.decide(group, DecisionKind.FALLBACK, by=by, reason=decisions.SKIPPED)
    except WrongState as lost:
        log.info("group %s was not skipped: %s", group.key, lost)


def worker() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"[:100]
