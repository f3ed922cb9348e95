"""What the job says back: where it stands, what it did with each version, its metrics, its own deadline."""

import logging
import math
from collections.abc import Iterable

from django.db import transaction
from django.db.models import Case, F, PositiveBigIntegerField, Value, When

from grading import clock, wake
from grading.errors import Fenced, NotFound, WrongShape
from grading.models import GroupEvent, Life, RolloutGroup, Run
from training_bridge.delivery import stream_of
from training_bridge.errors import OutOfOrder
from training_bridge.models import Delivery, JobCursor, MetricPoint, Receipt, Stream
from training_bridge.protocol import messages
from training_bridge.protocol.sessions import StreamFacts

log = logging.getLogger(__name__)
AT_ONCE = 500  # messages of one statement


def newest_life(run: Run) -> Life | None:
    return run.lives.order_by("-n").first()


def live(run: Run, n: int) -> Life:
    """The job's life. Fenced when a newer one took over, NotFound when it was never issued."""
    newest = newest_life(run)
    if newest is None or n > newest.n:
        raise NotFound(f"run {run.public_id} has no life {n}", expected="POST …/lives first")
    if n < newest.n:
        raise Fenced(f"life {n} of run {run.public_id} was replaced by life {newest.n}", got=n, expected=newest.n)
    return newest


def cursor_of(life: Life) -> JobCursor:
    return JobCursor.objects.get_or_create(life=life)[0]


@transaction.atomic
def facts(run: Run, resume: messages.Resume) -> StreamFacts:
    """What a resume is answered from, read under the lock of the stream's row."""
    stream_of(run)
    stream = Stream.objects.select_for_update(no_key=True).get(run=run)
    newest = newest_life(run)
    row = Delivery.objects.filter(stream=stream, epoch=stream.epoch, seq=resume.after_seq).first()
    own = Life.objects.filter(run=run, n=resume.life).first()
    return StreamFacts(
        life=newest.n if newest else 0,
        epoch=stream.epoch,
        head_seq=stream.head_seq,
        mode=stream.mode,
        digest=row.sha256 if row else None,
        noted=cursor_of(own).noted if own else 0,
        mask_truncated=run.mask_truncated,
    )


def acknowledge_within(run: Run, n: int, *, epoch: int, received: int | None, durable: int | None) -> Stream:
    """Acks that came by REST: of the newest life, of the stream's own epoch, and of rows that are there."""
    life, stream = live(run, n), stream_of(run)
    if epoch != stream.epoch:
        raise WrongShape("an epoch that is not the stream's", got=epoch, expected=stream.epoch, where="epoch")
    for name, seq in (("received", received), ("durable", durable)):
        if (seq or 0) > stream.head_seq:
            raise WrongShape(f"{name} is beyond the stream", got=seq, expected=f"at most {stream.head_seq}", where=name)
    acknowledge(life, epoch=epoch, received=received, durable=durable)
    return stream


def acknowledge(life: Life, *, epoch: int, received: int | None = None, durable: int | None = None, **said) -> None:
    """Cumulative: they only grow within an epoch, whatever order they arrive in."""
    cursor_of(life)
    mine = JobCursor.objects.filter(life=life)
    fresh = {"epoch": epoch, "received_seq": 0, "durable_seq": 0}
    mine.exclude(epoch=epoch).filter(epoch__lt=epoch).update(**fresh)
    grown = {"seen_at": clock.now(), **said}
    for name, seq in (("received_seq", received), ("durable_seq", durable)):
        if seq is not None:
            grown[name] = Case(
                When(**{f"{name}__lt": seq}, then=Value(seq)), default=F(name), output_field=PositiveBigIntegerField()
            )
    mine.filter(epoch=epoch).update(**grown)


@transaction.atomic
def note(life: Life, numbered: Iterable[messages.Receipt | messages.Metrics]) -> int:
    """Store numbered messages in order, each once. Returns the n up to which all are stored.

    Raises OutOfOrder at a gap: the job sends again from the first one that is not noted.
    """
    cursor_of(life)
    cursor = JobCursor.objects.select_for_update(no_key=True).get(life=life)
    noted, fresh = cursor.noted, []
    for message in numbered:
        if message.n <= noted:
            continue
        if message.n != noted + 1:
            raise OutOfOrder("a numbered message is missing", got=message.n, expected=noted + 1)
        fresh.append(message)
        noted = message.n
    for start in range(0, len(fresh), AT_ONCE):
        _store(life, fresh[start : start + AT_ONCE])
    if fresh:
        JobCursor.objects.filter(pk=cursor.pk).update(noted=noted, seen_at=clock.now())
        wake.pages(life.run_id)
    return noted


def _store(life: Life, fresh: list[messages.Receipt | messages.Metrics]) -> None:
    """A few statements, however many messages."""
    MetricPoint.objects.bulk_create(
        _point(life, message, name, value)
        for message in fresh
        if isinstance(message, messages.Metrics)
        for name, value in sorted(message.values.items())
    )
    receipts = [message for message in fresh if isinstance(message, messages.Receipt)]
    groups = _groups_of(life, receipts)
    for receipt in receipts:
        if (receipt.life, receipt.group) not in groups:
            # A refusal would make the job send it for ever; its number is noted and the words are kept in the log.
            log.error("run %s: receipt %s names the unknown group %s", life.run_id, receipt.n, receipt.group)
    placed = [(groups[r.life, r.group], r) for r in receipts if (r.life, r.group) in groups]
    _store_receipts(life, placed)


def _groups_of(life: Life, receipts: list[messages.Receipt]) -> dict[tuple[int, str], RolloutGroup]:
    """Groups by (n of their life, key)."""
    lives, keys = {receipt.life for receipt in receipts}, {receipt.group for receipt in receipts}
    if not receipts:
        return {}
    found = RolloutGroup.objects.filter(run=life.run_id, life__n__in=lives, key__in=keys).select_related("life")
    return {(group.life.n, group.key): group for group in found.only("key", "state", "life__n")}


def _store_receipts(life: Life, placed: list[tuple[RolloutGroup, messages.Receipt]]) -> None:
    Receipt.objects.bulk_create(
        Receipt(
            run_id=life.run_id, life=life, n=said.n, group=group, version=said.version, status=said.status,
            step=said.step,
        )
        for group, said in placed
    )  # fmt: skip
    GroupEvent.objects.bulk_create(
        GroupEvent(
            group=group, old=group.state, new=group.state, by="job", reason=f"{said.status} at step {said.step}",
            details={"version": said.version, "status": said.status},
        )
        for group, said in placed
    )  # fmt: skip
    newest = {(group.pk, said.version): (said.status, said.step) for group, said in placed}
    alike: dict[tuple[int, str, int], list[int]] = {}
    for (group, version), (status, step) in newest.items():
        alike.setdefault((version, status, step), []).append(group)
    for (version, status, step), groups in alike.items():
        Delivery.objects.filter(group__in=groups, version=version).update(receipt=status, used_at=step)


def _point(life: Life, message: messages.Metrics, name: str, value) -> MetricPoint:
    finite = not isinstance(value, str) and math.isfinite(value)
    return MetricPoint(
        run_id=life.run_id, life=life, n=message.n, step=message.step, name=name[:80],
        value=value if finite else None, non_finite="" if finite else str(value),
    )  # fmt: skip
