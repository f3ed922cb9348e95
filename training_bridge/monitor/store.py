"""Where scalars by (run, step, name) are put: the newest point of a step counts, the rest is history."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from training_bridge.models import MetricPoint, MetricSeries
from training_bridge.monitor import segments

AT_ONCE = 500  # steps of one question to the database
UNIT_CHARS = 20


def point(name: str, step: int, value, *, run: int, n: int = 0, life=None) -> MetricPoint:
    """A point not saved yet. A value that is not finite is kept as a word and drawn as a gap."""
    finite = not isinstance(value, str) and math.isfinite(value)
    return MetricPoint(
        run_id=run, life=life, n=n, step=step, name=name[:80], value=value if finite else None,
        non_finite="" if finite else word(value),
    )  # fmt: skip


def word(value) -> str:
    """What is not finite, in the words that travel."""
    number = float(value)
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def add(run: int, points: Sequence[MetricPoint], units: Mapping[str, str] | None = None) -> None:
    """Store points in the order in which they came. Call inside a transaction; writers of a run wait for each other."""
    if not points:
        return
    series = _series(run, {point.name for point in points}, units or {})
    newest = {(point.name, point.step): point for point in points}  # of several with one step the last one
    for one in points:
        one.is_newest = newest[one.name, one.step] is one
    replaced = _replace(run, [key for key in newest if key[1] <= series[key[0]].last_step and series[key[0]].points])
    MetricPoint.objects.bulk_create(points, batch_size=5000)
    late: dict[str, dict[int, float]] = defaultdict(dict)
    fresh, tails, heads = Counter(), Counter(), Counter()
    for (name, step), one in newest.items():
        packed_to = series[name].packed[0] if series[name].packed else -1
        is_new = (name, step) not in replaced
        fresh[name] += is_new
        heads[name] = max(heads[name], step)
        tails[name] += is_new and step > packed_to
        if step <= packed_to:
            late[name][step] = math.nan if one.value is None else one.value
    for name, row in series.items():
        row.points += fresh[name]
        row.tail += tails[name]
        row.last_step = max(row.last_step, heads[name])
        if late[name]:
            segments.patch(row, late[name])
        segments.pack(row)
    MetricSeries.objects.bulk_update(series.values(), ["points", "tail", "last_step", "packed", "unit", "heard_at"])


def _series(run: int, names: set[str], units: Mapping[str, str]) -> dict[str, MetricSeries]:
    """The rows of these names, made where they are new, locked in one order."""
    mine = MetricSeries.objects.filter(run=run, name__in=names).order_by("name").select_for_update(no_key=True)
    found = {row.name: row for row in mine}
    if missing := sorted(names - set(found)):
        made = [MetricSeries(run_id=run, name=name) for name in missing]
        MetricSeries.objects.bulk_create(made, ignore_conflicts=True)
        found = {row.name: row for row in mine.all()}
    for name, row in found.items():
        row.unit = units.get(name, row.unit)[:UNIT_CHARS]
    return found


def _replace(run: int, keys: Iterable[tuple[str, int]]) -> set[tuple[str, int]]:
    """Make history of the points at these names and steps. Returns: where there was one."""
    steps: dict[str, list[int]] = defaultdict(list)
    for name, step in keys:
        steps[name].append(step)
    found: set[tuple[str, int]] = set()
    for name, wanted in steps.items():
        for start in range(0, len(wanted), AT_ONCE):
            old = MetricPoint.objects.filter(
                run=run, name=name, step__in=wanted[start : start + AT_ONCE], is_newest=True
            )
            there = list(old.values_list("pk", "step"))
            MetricPoint.objects.filter(pk__in=[pk for pk, _ in there]).update(is_newest=False)
            found |= {(name, step) for _, step in there}
    return found
