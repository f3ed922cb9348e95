"""What the job says back: where it stands, what it did with each version, its metrics, its own deadline."""

import logging
from collections.abc import Iterable

from django.db import transaction
from django.db.models import Case, F, PositiveBigIntegerField, Value, When

from grading import clock, wake
from grading.errors import Fenced, NotFound, WrongShape
from grading.ingest.completing import unfenced
from grading.models import GroupEvent, Life, RolloutGroup, Run, RunEvent
from grading.models.rows import insert_all
from training_bridge.delivery import open_epoch, stream_of
from training_bridge.errors import OutOfOrder
from training_bridge.models import Delivery, JobCursor, Receipt, Stream
from training_bridge.monitor import store, told
from training_bridge.protocol import messages
from training_bridge.protocol.sessions import ServerSession, StreamFacts

log = logging.getLogger(__name__)
AT_ONCE = 1000  # messages of one statement
ENDED = "ended"


def newest_life(run: Run) -> Life | None:
    return run.lives.order_by("-n").first()


def live(run: Run, n: int) -> Life:
    """The job's life. Fenced when a newer one took over, NotFound when it was never issued."""
    newest = newest_life(run)
    if newest is None or n > newest.n:
        raise NotFound(f"run {run.public_id} has no life {n}", got=n, expected="POST …/lives first", where="life")
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
        cap=None if run.rubric.rubric.lambda_max is None else float(run.rubric.rubric.lambda_max),
    )


def begin(run: Run, session: ServerSession, resume: messages.Resume) -> tuple[Life, int]:
    """Answer a resume: where the stream starts, in a new epoch if the job's cursor is not of this one.

    Returns the life and the epoch. Raises ProtocolError where the session refuses.
    """
    found = facts(run, resume)
    if misplaced := session.answer(found):
        open_epoch(run, reason=misplaced.reason, above=misplaced.above)
        found = facts(run, resume)
        session.answer(found)
    life = Life.objects.get(run=run, n=resume.life)
    estimator = {name: getattr(resume.estimator, name) for name in resume.estimator.__struct_fields__}
    acknowledge(life, epoch=found.epoch, received=session.sent, estimator=estimator)
    return life, found.epoch


@transaction.atomic
def end_life(run: Run, n: int, *, why: str) -> None:
    """The job says that it ends, `why` empty for a clean end. Its open groups stay: people may still look at them."""
    life = live(Run.objects.select_for_update(no_key=True).get(pk=run.pk), n)
    said = RunEvent.objects.filter(run=run, by=life_name(n))
    if not said.exists():
        RunEvent.objects.create(run=run, by=life_name(n), changes={"life": [n, f"failed: {why}" if why else ENDED]})
    JobCursor.objects.filter(life=life).update(connected=False)
    wake.pages(run.pk)


def life_name(n: int | str) -> str:
    """Who says so, in a run's history."""
    return f"life:{n}"


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

    Raises OutOfOrder at a gap: the job sends again from the first one that is not noted. Raises Fenced: what a killed
    process had said must not come after the words of its successor, who knows what the restored parameters hold.
    """
    unfenced(Life.objects.select_for_update(no_key=True).get(pk=life.pk))  # a new life waits until we are done
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
    numbers = [message for message in fresh if isinstance(message, messages.Metrics)]
    points = [
        store.point(name, message.step, value, run=life.run_id, n=message.n, life=life)
        for message in numbers
        for name, value in sorted(message.values.items())
    ]
    units = {name: unit for message in numbers for name, unit in (message.units or {}).items()}
    store.add(life.run_id, points, units)
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
    return {(group.life.n, group.key): group for group in found.only("key", "state", "step", "life__n")}


def _store_receipts(life: Life, placed: list[tuple[RolloutGroup, messages.Receipt]]) -> None:
    told.count(life.run_id, placed)
    insert_all([
        Receipt(
            run_id=life.run_id, life=life, n=said.n, group=group, version=said.version, status=said.status,
            step=said.step,
        )
        for group, said in placed
    ])  # fmt: skip
    insert_all([
        GroupEvent(
            group=group, old=group.state, new=group.state, by="job", reason=f"{said.status} at step {said.step}",
            details={"version": said.version, "status": said.status},
        )
        for group, said in placed
    ])  # fmt: skip
    newest = {(group.pk, said.version): (said.status, said.step) for group, said in placed}
    alike: dict[tuple[int, str, int], list[int]] = {}
    for (group, version), (status, step) in newest.items():
        alike.setdefault((version, status, step), []).append(group)
    for (version, status, step), groups in alike.items():
        Delivery.objects.filter(group__in=groups, version=version).update(receipt=status, used_at=step)


def rolled_back(receipts: Iterable[Receipt]) -> bool:
    """Whether a use of the job's own numbers was undone with its parameters. Version 0 has no row to answer again.

    A later life says `not_used` of a group only if its parameters do not hold the group at all, whatever the version:
    what an earlier life said to have applied is gone.
    """
    said = sorted(receipts, key=lambda receipt: receipt.pk)
    used = [r for r in said if r.version == 0 and r.status == Receipt.Status.APPLIED]
    return bool(used) and any(
        r.status == Receipt.Status.NOT_USED and r.life_id > used[-1].life_id and r.pk > used[-1].pk for r in said
    )
