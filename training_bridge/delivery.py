"""From decisions to numbered rows: dense per run and epoch, allotted under the stream's lock, stored as sent."""

import logging

from django.db import transaction
from django.db.models import F, Prefetch
from msgspec import structs

from grading import clock, wake
from grading.errors import BadInput
from grading.models import Decision, GroupEvent, RolloutGroup, Run, Trajectory, VerdictCandidate
from grading.states import GroupState
from training_bridge import payouts
from training_bridge.decided import decision_numbers, group_numbers, reason_of
from training_bridge.errors import NoStream
from training_bridge.models import Delivery, Receipt, Stream
from training_bridge.payload import Numbers
from training_bridge.protocol.messages import AdvantageRow, Advantages, Control, ProtocolError
from training_bridge.protocol.wire import encode_row
from training_bridge.redistribution.regimes import EXCLUDED

log = logging.getLogger(__name__)
BATCH = 64
BY = "bridge"
REFUSED = "numbers_refused"
UNSENDABLE = "row_too_large"
LARGE = ("verdict__reply", "verdict__problems", "verdict__ranking", "verdict__revisions", "verdict__notes")
READ = ("group_id", "external_id", "outcome", "reward", "is_truncated", "integrity", "counts")
PLACED = VerdictCandidate.objects.only("verdict_id", "tier", "factor", "trajectory__external_id")
PLACED = PLACED.select_related("trajectory")
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
    """Deliver whatever was decided and not delivered, of every run: what a lost doorbell leaves behind."""
    waiting = RolloutGroup.objects.filter(state=GroupState.DECIDED, run__kind=Run.Kind.LIVE)
    return sum(deliver(run) for run in Run.objects.filter(pk__in=waiting.values("run")))


def deliver(run: Run) -> int:
    """Give every decided group of the run its row. Returns how many rows were stored."""
    stream_of(run)
    total = stored = _deliver_batch(run)
    while stored == BATCH:
        stored = _deliver_batch(run)
        total += stored
    if total:
        wake.ring(rows_stored(run.pk), "rows.stored")
        wake.ring(wake.pages_of(run.pk), "page.changed")
    return total


@transaction.atomic
def _deliver_batch(run: Run) -> int:
    """Lock order everywhere: the stream, then groups. An older undelivered version is superseded: it gets no row."""
    stream = Stream.objects.select_for_update(no_key=True).get(run=run)
    decided = RolloutGroup.objects.filter(run=run, state=GroupState.DECIDED)
    decided = decided.locked().select_related("run", "life", "task", "rubric").defer("task__statement")
    groups = list(decided.order_by("pk")[:BATCH])
    if not groups:
        return 0
    rows = _store(stream, groups, first_seq=stream.head_seq + 1)
    Stream.objects.filter(pk=stream.pk).update(head_seq=stream.head_seq + len(rows))
    keys = [group.pk for group in groups]
    RolloutGroup.objects.filter(pk__in=keys, state=GroupState.DECIDED).update(state=GroupState.DELIVERED)
    GroupEvent.objects.bulk_create(
        GroupEvent(
            group_id=row.group_id, old=GroupState.DECIDED, new=GroupState.DELIVERED, by=BY, reason=row.regime,
            details={"epoch": row.epoch, "seq": row.seq, "version": row.version},
        )
        for row in rows
    )  # fmt: skip
    return len(rows)


def _store(stream: Stream, groups: list[RolloutGroup], *, first_seq: int) -> list[Delivery]:
    """One row a group, of its newest decision. What is paid out is read here, after the locks."""
    decisions = Decision.objects.filter(group__in=groups, version=F("group__version"))
    decisions = decisions.select_related("verdict__rubric").defer(*LARGE)
    newest = {d.group_id: d for d in decisions.prefetch_related(Prefetch("verdict__candidates", PLACED))}
    members: dict[int, list[Trajectory]] = {group.pk: [] for group in groups}
    for trajectory in Trajectory.objects.counted().filter(group__in=groups).only(*READ):
        members[trajectory.group_id].append(trajectory)
    rows, paid = [], []
    for seq, group in enumerate(groups, first_seq):
        decision, trajectories = newest[group.pk], members[group.pk]
        decision.group = group
        numbers = _numbers(decision, trajectories)
        rows.append(_row(stream, seq, decision, numbers))
        paid.append(payouts.payout(decision, numbers, trajectories))
    rows = Delivery.objects.bulk_create(rows)
    payouts.store(paid)
    return rows


def _numbers(decision: Decision, trajectories: list[Trajectory]) -> Numbers:
    group = decision.group
    try:
        return decision_numbers(decision, trajectories)
    except ValueError:
        # One group must never hold up the stream of a whole run.
        log.exception("group %s, decision %s: outcome advantages go out instead", group.key, decision.version)
        return group_numbers(group, None, trajectories=trajectories, fallback_reason=REFUSED)


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
        decided_by=decision.by,
    )  # fmt: skip


@transaction.atomic
def set_mode(run: Run, *, mode: str, reason: str, by: str) -> Delivery:
    """The pause button: a control row in the stream, and outcome advantages for every group decided from now on."""
    if not reason:
        raise BadInput("a pause needs a reason", expected="a sentence that the job's log can keep", where="reason")
    stream_of(run)
    stream = Stream.objects.select_for_update(no_key=True).get(run=run)
    seq = stream.head_seq + 1
    text, sha256 = encode_row(Control(seq=seq, mode=mode, reason=f"{reason} ({by})"))
    row = Delivery.objects.create(
        stream=stream, epoch=stream.epoch, seq=seq, kind=Delivery.Kind.CONTROL, reason=reason[:200], text=text,
        sha256=sha256,
    )  # fmt: skip
    Stream.objects.filter(pk=stream.pk).update(head_seq=seq, mode=mode, mode_reason=reason[:200])
    Run.objects.filter(pk=run.pk).update(paused=mode == Stream.Mode.OUTCOME_ONLY)
    transaction.on_commit(lambda: wake.ring(rows_stored(run.pk), "rows.stored"))
    wake.pages(run.pk)
    return row


@transaction.atomic
def open_epoch(run: Run, *, reason: str) -> Stream:
    """The job's cursor is not of this stream: a new epoch, whose rows 1..k are the groups it may still use."""
    stream = Stream.objects.select_for_update(no_key=True).get(run=run)
    log.warning("run %s: new epoch %s: %s", run.public_id, stream.epoch + 1, reason)
    stream.epoch += 1
    delivered = RolloutGroup.objects.filter(run=run, state=GroupState.DELIVERED, life=run.lives.order_by("-n").first())
    delivered = delivered.exclude(pk__in=Receipt.objects.filter(run=run, status__in=DONE).values("group"))
    groups = list(delivered.locked().select_related("run", "life", "task", "rubric").order_by("pk"))
    rows = _store(stream, groups, first_seq=1)
    stream.head_seq = len(rows)
    stream.save(update_fields=["epoch", "head_seq"])
    return stream


def peek(run: Run, epoch: int, seq: int, limit: int) -> list[tuple[int, str]]:
    """The next stored rows in order, as (seq, text)."""
    rows = Delivery.objects.filter(stream__run=run, epoch=epoch, seq__gt=seq).order_by("seq")
    return list(rows.values_list("seq", "text")[:limit])


def rows_after(run: Run, epoch: int, seq: int, limit: int) -> list[tuple[int, str]]:
    """What `peek` gives, marked as sent: for the job's own socket."""
    found = peek(run, epoch, seq, limit)
    if found:
        sent = Delivery.objects.filter(stream__run=run, epoch=epoch, seq__gt=seq, seq__lte=found[-1][0], sent_at=None)
        sent.update(sent_at=clock.now())
    return found
