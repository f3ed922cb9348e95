"""The delivery ledger: how far each numbered row came on its way into an optimiser step."""

from django.core.paginator import Paginator
from django.db.models import Count, Q, QuerySet

from training_bridge.models import Delivery, JobCursor, Receipt, Stream

WAITING, SENT, RECEIVED, DURABLE = "waiting", "sent", "received", "durable"
ON_THE_WAY = (WAITING, SENT, RECEIVED, DURABLE)
STATUSES = (*ON_THE_WAY, *Receipt.Status.values)
PAGE = 25
CSS = {Receipt.Status.APPLIED: "applied", Receipt.Status.TOO_LATE: "late", Receipt.Status.EXPIRED: "late"}


class KnownLength(Paginator):
    """A paginator that was told how many rows there are: the ledger has counted them already."""

    def __init__(self, rows, per_page: int, count: int):
        super().__init__(rows, per_page)
        self.count = count


def acknowledged(stream: Stream) -> tuple[int, int]:
    """(received, durable) of the newest life, 0 where it has not begun on this epoch."""
    cursor = JobCursor.objects.filter(life__run=stream.run_id).order_by("-life__n").first()
    if cursor is None or cursor.epoch != stream.epoch:
        return 0, 0
    return cursor.received_seq, cursor.durable_seq


def reached(status: str, received: int, durable: int) -> Q:
    """The rows that came so far and no further; a receipt ends the way."""
    if status not in ON_THE_WAY:
        return Q(receipt=status)
    at = {
        WAITING: Q(sent_at=None, seq__gt=received),
        SENT: Q(sent_at__isnull=False, seq__gt=received),
        RECEIVED: Q(seq__lte=received, seq__gt=durable),
        DURABLE: Q(seq__lte=min(durable, received)),
    }
    return Q(receipt="") & at[status]


def ledger(stream: Stream | None, *, status: str = "", page: int | str = 1) -> dict:
    """Counts by status, and one page of rows, the newest first."""
    if stream is None:
        return {"received": 0, "durable": 0, "counts": [], "rows": [], "page": None}
    received, durable = acknowledged(stream)
    rows = Delivery.objects.filter(stream=stream, epoch=stream.epoch)
    counts = count_by_status(rows, received, durable)
    chosen = status if status in STATUSES else ""
    shown = rows.filter(reached(chosen, received, durable)) if chosen else rows
    shown = shown.select_related("group", "decision").defer("text").order_by("-seq")
    found = KnownLength(shown, PAGE, counts[chosen] if chosen else sum(counts.values())).get_page(page)
    return {
        "received": received,
        "durable": durable,
        "counts": [_count(name, counts[name], chosen) for name in STATUSES if counts[name] or name == chosen],
        "rows": [_row(row, received, durable) for row in found],
        "page": found,
    }


def count_by_status(rows: QuerySet, received: int, durable: int) -> dict[str, int]:
    """Two counts over one narrow index; no stored text is read."""
    counts = dict.fromkeys(STATUSES, 0)
    counts |= dict(rows.exclude(receipt="").order_by().values_list("receipt").annotate(Count("pk")))
    named = {status: Count("pk", filter=reached(status, received, durable)) for status in ON_THE_WAY}
    return counts | rows.filter(receipt="").order_by().aggregate(**named)


def _count(status: str, n: int, chosen: str) -> dict:
    is_set = status == chosen
    return {"words": status.replace("_", " "), "n": n, "is_set": is_set, "url": "?" if is_set else f"?status={status}"}


def _row(row: Delivery, received: int, durable: int) -> dict:
    status = status_of(row, received, durable)
    return {
        "seq": row.seq,
        "group": row.group,
        "words": row.reason,
        "version": row.version if row.group else "",
        "regime": row.regime,
        "reason": _why(row) if row.group else "",
        "by": row.decision.by if row.decision else "",
        "sent_at": row.sent_at,
        "receipt": status,
        "receipt_css": CSS.get(status, "waiting"),
        "used_at": row.used_at,
    }


def _why(row: Delivery) -> str:
    """The reason without the regime, which stands beside it."""
    return row.reason.removeprefix(f"{row.regime}_").replace("_", " ")


def status_of(row: Delivery, received: int, durable: int) -> str:
    """How far one row came."""
    if row.receipt:
        return row.receipt
    if row.seq <= received:
        return DURABLE if row.seq <= durable else RECEIVED
    return SENT if row.sent_at else WAITING
