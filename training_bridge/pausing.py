"""The pause: from now on only outcome advantages, and back. A row of the job's stream, and one of the run's history."""

from django.db import transaction
from django.db.models import Count, Q

from grading import wake
from grading.errors import BadInput, Conflict
from grading.models import RolloutGroup, Run, RunEvent
from grading.review.decisions import PAUSED
from grading.states import AWAITING_REVIEW, OPEN, GroupState
from training_bridge.delivery import rows_stored, stream_of
from training_bridge.models import Delivery, Payout, Stream
from training_bridge.monitor.ledger import acknowledged, status_of
from training_bridge.protocol.messages import Control
from training_bridge.protocol.wire import encode_row

CHARS = 200  # of a reason: it travels in the stream
NEWEST = 50


@transaction.atomic
def switch(run: Run, *, paused: bool, reason: str, by: str) -> Delivery:
    """Pause or resume, with the reason. Of two people at once the second gets Conflict and the words of the first.

    Groups that are decided go out as they were decided; what is decided from now on follows the new mode. Deadlines
    keep running: a held group's ends in outcome advantages while the run is paused.
    """
    if not reason:
        raise BadInput("a pause needs a reason", expected="a sentence that the job's log can keep", where="reason")
    stream_of(run)
    stream = Stream.objects.select_for_update(no_key=True).get(run=run)
    mode = Stream.Mode.OUTCOME_ONLY if paused else Stream.Mode.NORMAL
    if stream.mode == mode:
        last = last_switch(run)
        who = f", by {last.by} at {last.at:%H:%M} UTC: {stream.mode_reason}" if last else ""
        raise Conflict(f"run {run} {'is paused' if paused else 'redistributes'} already{who}")
    reason, seq = reason[:CHARS], stream.head_seq + 1
    text, sha256 = encode_row(Control(seq=seq, mode=mode, reason=f"{reason} ({by})"))
    row = Delivery.objects.create(
        stream=stream, epoch=stream.epoch, seq=seq, kind=Delivery.Kind.CONTROL, reason=reason, text=text, sha256=sha256
    )
    Stream.objects.filter(pk=stream.pk).update(head_seq=seq, mode=mode, mode_reason=reason)
    Run.objects.filter(pk=run.pk).update(paused=paused)
    RunEvent.objects.create(run=run, by=by, changes={"paused": [not paused, paused], "reason": [None, reason]})
    transaction.on_commit(lambda: wake.ring(rows_stored(run.pk), "rows.stored"))
    wake.pages(run.pk)
    return row


def switches(run: Run):
    """The run's pauses and resumptions, the newest first."""
    return RunEvent.objects.filter(run=run, changes__has_key="paused").order_by("-pk")


def last_switch(run: Run) -> RunEvent | None:
    return switches(run).first()


def page(run: Run) -> dict:
    """How it stands, what a switch would mean for the groups that are under way, what the job has heard."""
    groups = RolloutGroup.objects.filter(run=run)
    held = Q(state__in=AWAITING_REVIEW, held=True)
    counts = groups.filter(state__in=(*OPEN, GroupState.DECIDED)).aggregate(
        for_people=Count("pk", filter=held),
        held_for_ever=Count("pk", filter=held & Q(review_by=None, wanted_by=None)),
        under_way=Count("pk", filter=Q(state__in=OPEN) & ~held),
        decided=Count("pk", filter=Q(state=GroupState.DECIDED)),
    )
    rows = [
        {"at": event.at, "by": event.by, "paused": event.changes["paused"][1], "reason": event.changes["reason"][1]}
        for event in switches(run)[:NEWEST]
    ]
    return {
        "run": run,
        "counts": counts,
        "rows": rows,
        "last": rows[0] if rows else None,
        "went_out": Payout.objects.filter(run=run, reason=PAUSED).count(),
        "heard": heard(run),
    }


def heard(run: Run) -> dict | None:
    """The newest word of a pause in the stream, and how far the job got with it; None where none was said."""
    rows = Delivery.objects.filter(stream__run=run, kind=Delivery.Kind.CONTROL).select_related("stream")
    row = rows.order_by("-epoch", "-seq").first()
    if row is None:
        return None
    is_current = row.epoch == row.stream.epoch
    status = status_of(row, *(acknowledged(row.stream) if is_current else (0, 0)))
    return {"seq": row.seq, "epoch": row.epoch, "status": status, "sent_at": row.sent_at, "is_current": is_current}
