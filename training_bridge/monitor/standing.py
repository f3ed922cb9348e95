"""Where runs stand now, many at once: heard or silent, newest step, what waits. A constant number of queries."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Case, Count, F, OuterRef, Q, Subquery, When

from grading import clock
from grading.models import Grading, Life, RolloutGroup, Run, RunEvent
from grading.review.decisions import PAUSED
from training_bridge import intake
from training_bridge.models import Delivery, JobCursor, MetricPoint, Payout, Receipt
from training_bridge.monitor import derived
from training_bridge.monitor.metrics import KNOWN
from training_bridge.monitor.spans import from_steps

LIVE, SILENT, ENDED, IMPORTED, UNHEARD = "live", "silent", "ended", "imported", "no job yet"
HEARD_WITHIN = timedelta(minutes=2)  # of a job whose socket is closed
BUSY_WITHIN = timedelta(minutes=30)  # of one whose socket is open: a long step says nothing
ENDED_AFTER = timedelta(hours=1)
LAST_STEPS = 10  # shares and alerts are of these
UNSENT_AFTER = timedelta(seconds=30)


@dataclass(frozen=True)
class Standing:
    """One run now. `sums` and `receipts` are of the last steps; empty before the first delivery."""

    run: Run
    now: datetime
    state: str
    step: int | None
    life: int | None
    heard_at: datetime | None
    waiting: int  # for a person
    undecided: int
    unsent: int  # stored for longer than a moment while the job listens
    sums: dict = field(default_factory=dict)
    receipts: dict = field(default_factory=dict)  # status -> n
    paused_receipts: dict = field(default_factory=dict)  # those of them whose outcome advantages a pause asked for
    broken_metrics: tuple = ()  # (name, word) at the newest reported step
    dead_letters: int = 0  # groups of the last steps whose graders died until nobody tried again
    group_step: int | None = None  # the newest step of a group, and of a metric
    metric_step: int | None = None
    is_connected: bool = False
    has_ended: bool = False  # its newest life said so

    @property
    def fallback_share(self) -> float | None:
        """Of the groups of the last steps that train and may be graded."""
        return self.sums["fallback"] / self.sums["trained"] if self.sums.get("trained") else None


def standings(runs: Sequence[Run]) -> list[Standing]:
    """Where each of these runs stands."""
    now = clock.now()
    facts = {row["pk"]: row for row in _facts(runs)}
    paid = {pk: row["paid_step"] for pk, row in facts.items() if row["paid_step"] is not None}
    sums = derived.recent(paid, LAST_STEPS)
    groups, receipts, unsent = _groups(runs), _receipts(facts), _unsent(runs, now)
    broken, dead = _broken_metrics(facts), _dead_letters(facts)
    found = []
    for run in runs:
        row, waits = facts[run.pk], groups.get(run.pk, {})
        heard_at = max((at for at in (row["seen_at"], row["started_at"], row["declared_at"]) if at), default=None)
        steps = [step for step in (row["metric_step"], row["group_step"]) if step is not None]
        has_ended = row["ended_by"] == intake.life_name(row["life"])
        state = ENDED if has_ended else _state(run, heard_at, connected=bool(row["connected"]), now=now)
        found.append(
            Standing(
                run, now, state, max(steps, default=None), row["life"], heard_at, waits.get("people", 0),
                waits.get("undecided", 0), unsent.get(run.pk, 0) if row["connected"] else 0, sums.get(run.pk, {}),
                broken_metrics=tuple(broken.get(run.pk, ())), dead_letters=dead.get(run.pk, 0),
                group_step=row["group_step"], metric_step=row["metric_step"],
                is_connected=bool(row["connected"]), has_ended=has_ended, **receipts.get(run.pk, {}),
            )
        )  # fmt: skip
    return found


def _state(run: Run, heard_at: datetime | None, *, connected: bool, now: datetime) -> str:
    if not run.is_live:
        return IMPORTED
    if heard_at is None:
        return UNHEARD
    if now - heard_at < (BUSY_WITHIN if connected else HEARD_WITHIN):
        return LIVE
    return SILENT if now - heard_at < ENDED_AFTER else ENDED


def _facts(runs: Sequence[Run]):
    """The newest rows of each run, each found through an index."""
    life = Life.objects.filter(run=OuterRef("pk")).order_by("-n")
    cursor = JobCursor.objects.filter(life__run=OuterRef("pk")).order_by("-life__n")
    group = RolloutGroup.objects.filter(run=OuterRef("pk"))
    point = MetricPoint.objects.filter(run=OuterRef("pk")).order_by("-pk")
    ended = RunEvent.objects.filter(run=OuterRef("pk"), by__startswith=intake.life_name("")).order_by("-pk")
    paid = Payout.objects.filter(run=OuterRef("pk")).order_by("-step")
    newest = {
        "life": life.values("n"),
        "started_at": life.values("started_at"),
        "ended_by": ended.values("by"),
        "seen_at": cursor.values("seen_at"),
        "connected": cursor.values("connected"),
        "declared_at": group.order_by("-pk").values("created_at"),
        "group_step": group.order_by("-step").values("step"),
        "metric_step": point.values("step"),
        "paid_step": paid.values("step"),
    }
    rows = Run.objects.filter(pk__in=[run.pk for run in runs])
    return rows.annotate(**{name: Subquery(found[:1]) for name, found in newest.items()}).values("pk", *newest)


def _groups(runs: Sequence[Run]) -> dict[int, dict]:
    people = RolloutGroup.objects.awaiting_review().filter(pk=OuterRef("pk")).values("pk")
    rows = RolloutGroup.objects.open().filter(run__in=runs).values("run").order_by()
    counted = rows.annotate(undecided=Count("pk"), people=Count("pk", filter=Q(pk__in=Subquery(people))))
    return {row["run"]: row for row in counted}


def _recent(facts: dict[int, dict]):
    """The groups of the last steps."""
    first = {pk: row["group_step"] - LAST_STEPS + 1 for pk, row in facts.items() if row["group_step"] is not None}
    return RolloutGroup.objects.filter(from_steps(first)).values("pk")


def _dead_letters(facts: dict[int, dict]) -> dict[int, int]:
    dead = Grading.objects.dead_letters().filter(group__in=_recent(facts)).order_by()
    return dict(dead.values_list("group__run").annotate(Count("group", distinct=True)))


def _receipts(facts: dict[int, dict]) -> dict[int, dict[str, Counter]]:
    """Statuses of the receipts for the groups of the last steps, and of those among them that a pause sent."""
    counted = Receipt.objects.filter(group__in=_recent(facts)).order_by()
    found: dict[int, dict[str, Counter]] = {}
    by_pause = Case(When(group__payout__reason=PAUSED, then=True), default=False)
    rows = counted.annotate(by_pause=by_pause).values_list("run", "status", "by_pause")
    for run, status, is_paused, n in rows.annotate(Count("group", distinct=True)):
        told = found.setdefault(run, {"receipts": Counter(), "paused_receipts": Counter()})
        told["receipts"][status] += n
        told["paused_receipts"][status] += n if is_paused else 0
    return found


def _unsent(runs: Sequence[Run], now: datetime) -> dict[int, int]:
    """Rows that no socket took. Only the rows without a receipt are looked at."""
    rows = Delivery.objects.filter(stream__run__in=runs, epoch=F("stream__epoch"), receipt="", sent_at=None)
    rows = rows.filter(created_at__lt=now - UNSENT_AFTER)
    return dict(rows.order_by().values_list("stream__run").annotate(Count("pk")))


def _broken_metrics(facts: dict[int, dict]) -> dict[int, list[tuple[str, str]]]:
    """What the job reported as NaN or infinite at its newest step, and has not corrected since."""
    newest = {pk: row["metric_step"] for pk, row in facts.items() if row["metric_step"] is not None}
    points = MetricPoint.objects.filter(from_steps(newest, name__in=KNOWN, is_newest=True)).exclude(non_finite="")
    found: dict[int, list[tuple[str, str]]] = {}
    for run, name, word in points.values_list("run", "name", "non_finite"):
        found.setdefault(run, []).append((name, word))
    return found
