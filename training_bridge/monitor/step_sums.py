"""The sums by step, kept up to date with each delivery and each receipt, in every span."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from django.db.models import Count, Q

from grading.models import RolloutGroup, Run
from grading.states import OPEN
from training_bridge.due import REFUSED
from training_bridge.models import Payout, StepSum
from training_bridge.monitor.sums import SPANS, Sums, added, of_payout, total

Change = tuple[int, Sums, Sums]  # step, what is added, what is taken away


def pay(run: int, new: Iterable[Payout], old: Mapping[int, Payout]) -> None:
    """Count payouts in place of the older ones of their groups, by group. The stream's row is locked."""
    new = list(new)
    changes = [
        (row.step, of_payout(row, REFUSED), of_payout(old[row.group_id], REFUSED) if row.group_id in old else {})
        for row in new
    ]
    rows = _change(run, "paid", changes)
    for row in rows.values():
        if row.span == 1:
            _sample_queue(row)
    for row in rows.values():
        if row.span > 1:
            inside = [other.paid for other in rows.values() if other.span == 1 and covers(row, other.step)]
            row.paid = added(row.paid, _queue_of(inside))
    _save(rows, "paid")


def tell(run: int, changes: Iterable[tuple[int, Sums]]) -> None:
    """Count what the job said of groups of these steps. The life's row is locked."""
    _save(_change(run, "told", [(step, more, {}) for step, more in changes]), "told")


def covers(row: StepSum, step: int) -> bool:
    return row.step <= step < row.step + row.span


def _places(step: int) -> list[tuple[int, int]]:
    return [(span, step - step % span) for span in SPANS]


def _change(run: int, kind: str, changes: list[Change]) -> dict[tuple[int, int], StepSum]:
    """The rows with the changes in them, by span and step, not saved."""
    wanted = {place for step, _, _ in changes for place in _places(step)}
    by_span = [Q(span=span, step__in={step for other, step in wanted if other == span}) for span in SPANS]
    where = by_span[0] | by_span[1] | by_span[2] | by_span[3]
    rows = {(row.span, row.step): row for row in StepSum.objects.filter(where, run=run)} if wanted else {}
    for span, step in wanted - set(rows):
        rows[span, step] = StepSum(run_id=run, span=span, step=step)
    by_step: dict[int, list[Change]] = {}
    for change in changes:
        by_step.setdefault(change[0], []).append(change)
    for step, alike in by_step.items():  # together first: a row of each span for every group would cost as much again
        more, less = total(more for _, more, _ in alike), total(less for _, _, less in alike)
        for place in _places(step):
            setattr(rows[place], kind, added(getattr(rows[place], kind), more, less=less))
    return rows


def _save(rows: dict[tuple[int, int], StepSum], kind: str) -> None:
    """In one order, so that a delivery and a receipt never wait for each other in a circle."""
    unsaved = [StepSum(run_id=r.run_id, span=r.span, step=r.step, **{kind: getattr(r, kind)}) for r in rows.values()]
    StepSum.objects.bulk_create(
        sorted(unsaved, key=lambda row: (row.span, row.step)), update_conflicts=True,
        unique_fields=["run", "span", "step"], update_fields=[kind, "changed_at"],
    )  # fmt: skip


def _queue_of(paid: list[Sums]) -> Sums:
    names = ("max_undecided", "max_people")
    return {name: max(found) for name in names if (found := [sums[name] for sums in paid if name in sums])}


def _sample_queue(row: StepSum) -> None:
    """How many groups waited when the step's last group was declared. Asked anew only while that moment moves."""
    if row.paid.get("sampled_at") == row.paid.get("max_declared") or "max_declared" not in row.paid:
        return
    at = datetime.fromtimestamp(row.paid["max_declared"]).astimezone()
    undecided, people = waiting_at(row.run_id, at)
    row.paid |= {"max_undecided": undecided, "max_people": people, "sampled_at": row.paid["max_declared"]}


def waiting_at(run: int, at: datetime) -> tuple[int, int]:
    """Groups of the run that had no decision at a moment, and those of them that waited for a person.

    Only those that are open, or were decided since, are looked at: few, as the moment is near.
    """
    since = Payout.objects.filter(run=run, decided_at__gt=at, declared_at__lte=at)
    still = RolloutGroup.objects.filter(run=run, state__in=OPEN, created_at__lte=at)
    was = since.aggregate(n=Count("pk"), held=Count("pk", filter=Q(held_at__lte=at)))
    now = still.aggregate(n=Count("pk"), held=Count("pk", filter=Q(held=True, graded_at__lte=at)))
    return was["n"] + now["n"], was["held"] + now["held"]


def add_up(run: Run) -> None:
    """Build the sums of payouts anew from the rows; what the job said stays as it was told."""
    StepSum.objects.filter(run=run).update(paid={})
    for step in Payout.objects.filter(run=run).order_by("step").values_list("step", flat=True).distinct():
        pay(run.pk, Payout.objects.filter(run=run, step=step), {})
