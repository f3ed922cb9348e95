"""The process that grades with models: a thread for each claim, none that waits for work.

A process of its own (`manage.py grade`): a Celery pool whose idle child is killed may wait for its lock for ever.
"""

import logging
import signal
import time
from threading import Event, Lock, Thread, current_thread

from django.conf import settings
from django.db import DatabaseError, connections, transaction

from grading import clock, heartbeat, wake
from grading.audit import job as audits
from grading.errors import LeaseLost, WrongState
from grading.grader import claims, job, keeper
from grading.models import Grading, RolloutGroup
from grading.states import GroupState

log = logging.getLogger(__name__)
GRACE_S = 8.0  # of a shutdown: what ends by then counts, the rest is given back
BOOKING_S = 2.0  # after that, to write down what it cost
CONNECTIONS_LEFT = 3  # of the database pool, to this thread and to heartbeats
LOOK_EVERY_S = 0.5

_lock = Lock()
_at_work: dict[Thread, Grading | None] = {}
_stopping = False


def run() -> None:
    """Grade until SIGTERM or SIGINT, then end within the grace. A database that is away for a while is waited for."""
    told = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: told.set())
    while not told.wait(LOOK_EVERY_S):
        try:
            start()
            audits.start()
            heartbeat.beat()
        except DatabaseError:
            log.warning("the database does not answer: looking again", exc_info=True)
            connections.close_all()
    log.warning("stopping: %s gradings end within %g s or are given back", len(_at_work), GRACE_S)
    stop()


def start() -> int:
    """Claim as much as the endpoints have room for, each in a thread of its own. Returns how many were started."""
    started = 0
    while not _is_full() and (grading := claims.next_claim(networked=True)):
        thread = Thread(target=_work, args=[grading], name=f"grading {grading.pk}", daemon=True)
        with _lock:
            _at_work[thread] = grading
        thread.start()
        started += 1
    return started


def _is_full() -> bool:
    pool = settings.DATABASES["default"].get("OPTIONS", {}).get("pool")
    most = max(pool["max_size"] - CONNECTIONS_LEFT, 1) if isinstance(pool, dict) else 64
    return _stopping or len(_at_work) >= most


def _work(grading: Grading | None) -> None:
    """Grade, then claim the next one at once: a place at an endpoint is not left empty until somebody rings."""
    me = current_thread()
    try:
        while grading:
            job.grade(grading)
            with _lock:
                _at_work[me] = None
            grading = None if _stopping else claims.next_claim(networked=True)
            with _lock:
                _at_work[me] = grading
    except Exception:  # the database is gone, or a mistake of ours: the lease runs out and the group is tried again
        log.exception("a grading broke off; its group is taken over when its lease runs out")
    finally:
        with _lock:
            _at_work.pop(me, None)
        connections.close_all()


def wait(within_s: float) -> bool:
    """Wait until no thread grades. Returns whether that came true in time."""
    until = time.monotonic() + within_s
    while (threads := list(_at_work)) and time.monotonic() < until:
        threads[0].join(max(0.0, min(0.5, until - time.monotonic())))
    return not _at_work


def stop(grace_s: float = GRACE_S) -> int:
    """End with the process: finish what ends within the grace, give the rest back. Returns how many were given back."""
    global _stopping
    _stopping = True
    wait(grace_s)
    with _lock:
        left = [grading for grading in _at_work.values() if grading]
    given = sum(give_back(grading) for grading in left)
    for grading in left:
        keeper.cancel(grading, "its worker stops")
    wait(BOOKING_S)
    silent = Grading.objects.filter(pk__in=[grading.pk for grading in left], state=Grading.State.RUNNING, attempt__gt=0)
    silent.update(state=Grading.State.DIED, ended_at=clock.now())  # they die with the process, wherever they hang
    return given


def give_back(grading: Grading) -> bool:
    """Let another worker take the group at once, as if this one had never begun. False where the claim is gone."""
    try:
        with transaction.atomic():
            group = RolloutGroup.objects.locked().get(pk=grading.group_id)
            if grading.fencing:
                _refuse_foreign(group, grading)
                group.move(
                    GroupState.COMPLETE, by=claims.worker(), reason="given back: the worker stops", claimed_until=None,
                    claimed_by="", fencing=group.fencing + 1, grading_attempts=max(group.grading_attempts - 1, 0),
                )  # fmt: skip
            if grading.asked_by:
                claims.queue_again(grading)
            wake.grading()
    except (LeaseLost, WrongState) as lost:
        log.info("group %s is not given back: %s", grading.group.key, lost)
        return False
    return True


def _refuse_foreign(group: RolloutGroup, grading: Grading) -> None:
    if group.fencing != grading.fencing:
        raise LeaseLost(f"group {group.key} is claimed with token {group.fencing}", got=grading.fencing)
