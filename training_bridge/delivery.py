"""From decisions to numbered rows: dense per run and epoch, allotted under the stream's lock, stored as sent."""

import logging
import time
from collections.abc import Callable, Iterable
from datetime import timedelta

from django.db import transaction
from msgspec import structs

from grading import clock, wake
from grading.models import Decision, GroupEvent, RolloutGroup, Run
from grading.models.rows import insert_all
from grading.states import GroupState
from training_bridge import due, paying
from training_bridge.decided import reason_of
from training_bridge.due import Made
from training_bridge.errors import NoStream
from training_bridge.models import Delivery, Receipt, Stream
from training_bridge.payload import Numbers
from training_bridge.protocol.messages import AdvantageRow, Advantages, ProtocolError
from training_bridge.protocol.wire import encode_row
from training_bridge.redistribution.regimes import EXCLUDED

log = logging.getLogger(__name__)
BATCH = 128
BY = "bridge"
UNSENDABLE = "row_too_large"
DONE = (Receipt.Status.APPLIED, Receipt.Status.TOO_LATE, Receipt.Status.EXPIRED, Receipt.Status.NOT_USED)


def stream_of(run: Run) -> Stream:
    """The run's stream; made on first use. NoStream for an imported run."""
    if not run.is_live:
        raise NoStream(f"run {run.public_id} was imported: no job waits for it")
    return Stream.objects.get_or_create(run=run)[0]


def rows_stored(run_pk: int) -> str:
    """The layer group in which the job's socket hears of new rows, a new life or a lost token."""
    return f"run.{run_pk}.stream"


def sweep() -> int:
    """Deliver and count whatever is left over, of every run: a doorbell was lost, or a process killed."""
    waiting = RolloutGroup.objects.filter(state=GroupState.DECIDED, run__kind=Run.Kind.LIVE)
    delivered = sum(_tried(deliver, run) or 0 for run in Run.objects.filter(pk__in=waiting.values("run")))
    for run in Run.objects.filter(stream__owes=True):
        _tried(paying.pay, run)
    return delivered


def _tried(step: Callable[[Run], int | None], run: Run) -> int | None:
    try:
        return step(run)
    except Exception:  # one run must not hold up the others
        log.exception("run %s: %s", run.public_id, step.__name__)
        return None


def deliver(run: Run) -> int:
    """Give every decided group of the run its row, and count what they pay. Returns how many rows were stored."""
    made = store(run)
    paying.pay(run, made)
    return len(made)


def store(run: Run) -> Made:
    """Give every decided group of the run its row and ring for the sockets. What the rows pay is for `paying.pay`."""
    made = stored = _store_batch(run)
    while len(stored) == BATCH:
        stored = _store_batch(run)
        made |= stored
    return made


def _store_batch(run: Run) -> Made:
    made = _deliver_batch(run)
    if made:
        wake.ring(rows_stored(run.pk), "rows.stored")
    return made


@transaction.atomic
def _deliver_batch(run: Run) -> Made:
    """Lock order everywhere: the stream, then groups. An older undelivered version is superseded: it gets no row."""
    stream = Stream.objects.select_for_update(no_key=True).filter(run=run).first()
    if stream is None:  # the run's first delivery
        stream = Stream.objects.select_for_update(no_key=True).get(pk=stream_of(run).pk)
    groups = list(due.locked(run).filter(state=GroupState.DECIDED)[:BATCH])
    if not groups:
        return {}
    rows, made = _rows_of(stream, run, groups, first_seq=stream.head_seq + 1)
    Stream.objects.filter(pk=stream.pk).update(head_seq=stream.head_seq + len(rows), owes=True)
    keys = [group.pk for group in groups]
    RolloutGroup.objects.filter(pk__in=keys, state=GroupState.DECIDED).update(state=GroupState.DELIVERED)
    insert_all([
        GroupEvent(
            group_id=row.group_id, old=GroupState.DECIDED, new=GroupState.DELIVERED, by=BY, reason=row.regime,
            details={"epoch": row.epoch, "seq": row.seq, "version": row.version},
        )
        for row in rows
    ])  # fmt: skip
    return made


def _rows_of(stream: Stream, run: Run, groups: list[RolloutGroup], *, first_seq: int) -> tuple[list[Delivery], Made]:
    """Store one row a group, of its newest decision. What is paid out is read here, after the locks."""
    made = due.made(run, groups)
    rows = [_row(stream, seq, of.decision, n) for seq, (of, n) in enumerate(made.values(), first_seq)]
    insert_all(rows)
    return rows, made


def _row(stream: Stream, seq: int, decision: Decision, numbers: Numbers) -> Delivery:
    message = advantages_message(seq, decision, numbers)
    try:
        text, sha256 = encode_row(message)
    except ProtocolError:
        # A group of thousands fits into no message: its row says so, and the stream goes on.
        log.exception("group %s, decision %s cannot be sent", decision.group.key, decision.version)
        message = structs.replace(message, rows=(), regime=EXCLUDED, reason=UNSENDABLE, train=False)
        text, sha256 = encode_row(message)
    return Delivery(
        stream=stream, epoch=stream.epoch, seq=seq, decision=decision, group=decision.group, version=decision.version,
        regime=message.regime, reason=message.reason or "", train=message.train, text=text, sha256=sha256,
    )  # fmt: skip


def advantages_message(seq: int, decision: Decision, numbers: Numbers) -> Advantages:
    group, credit = decision.group, numbers.credit
    rubric = decision.verdict.rubric if decision.verdict else None
    return Advantages(
        seq=seq,
        group=group.key,
        life=group.life.n,
        version=decision.version,
        step=group.step,
        policy_version=group.policy_version or None,
        regime=credit.regime,
        reason=reason_of(decision, numbers),
        train=credit.train,
        lambda_=credit.lambda_,
        capped=credit.capped,
        inverted_by_reward=credit.inverted_by_reward,
        rows=tuple(
            AdvantageRow(
                trajectory=row.trajectory, outcome=row.outcome, integrity=row.integrity, reward=row.reward,
                equivalent_reward=row.equivalent_reward, advantage=row.advantage, factor=row.factor,
            )
            for row in numbers.rows
        ),
        verdict=decision.verdict_id,
        rubric=str(rubric) if rubric else None,
        method=group.method or group.run.method,
        neutral_when_equal=group.neutral_when_equal,
        decided_by=decision.by,
    )  # fmt: skip


@transaction.atomic
def open_epoch(run: Run, *, reason: str, above: int = 0) -> Stream:
    """The job's cursor is not of this stream: a new epoch, whose rows 1..k are the groups it may still use.

    Its number is above `above`: a job that outlived a restored database may have seen later epochs than the database.
    """
    stream = Stream.objects.select_for_update(no_key=True).get(run=run)
    stream.epoch = max(stream.epoch, above) + 1
    log.warning("run %s: new epoch %s: %s", run.public_id, stream.epoch, reason)
    delivered = due.locked(run).filter(state=GroupState.DELIVERED, life=run.lives.order_by("-n").first())
    groups = list(delivered.exclude(pk__in=Receipt.objects.filter(run=run, status__in=DONE).values("group")))
    rows, _ = _rows_of(stream, run, groups, first_seq=1)
    stream.head_seq, stream.owes = len(rows), True
    stream.save(update_fields=["epoch", "head_seq", "owes"])
    wake.pages(run.pk)
    return stream


def peek(run: Run, epoch: int, seq: int, limit: int) -> list[tuple[int, str]]:
    """The next stored rows in order, as (seq, text)."""
    rows = Delivery.objects.filter(stream__run=run, epoch=epoch, seq__gt=seq).order_by("seq")
    return list(rows.values_list("seq", "text")[:limit])


@transaction.atomic
def mark_sent(run: Run, epoch: int, passed_on: Iterable[tuple[int, int, float]]) -> None:
    """Say that the job's own socket took the rows after one seq up to another, at a time of this process's clock.

    Called afterwards: no row waits for a disk to hear it was sent.
    """
    stream = Stream.objects.filter(run=run).values("pk")
    now, now_s = clock.now(), time.monotonic()
    for after, to, at_s in passed_on:
        sent = Delivery.objects.filter(stream__in=stream, epoch=epoch, seq__gt=after, seq__lte=to, sent_at=None)
        sent.update(sent_at=now - timedelta(seconds=now_s - at_s))
