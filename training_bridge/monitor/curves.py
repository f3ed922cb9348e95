"""Reported series read for a panel: from the level of segments that is about as fine as the panel is wide."""

import math
from collections import defaultdict
from collections.abc import Collection

import numpy as np
from django.db.models import Count, Q

from grading.models import Run
from training_bridge.models import MetricPoint, MetricSegment, MetricSeries
from training_bridge.monitor.packing import Points, from_bytes, joined, thin

ENOUGH = 4  # segments of one level; the level below then has about 8 times as many, more points than a panel is wide
LAST = 2**31 - 1


def read(
    run: Run, names: Collection[str], *, first: int = 0, last: int | None = None, most: int
) -> tuple[dict[str, Points], bool]:
    """Points of each series between two steps, thinned to about `most`, and whether any of them is.

    The work grows with `most` and with the number of names, not with the run: at most 2 levels of 40 segments a name
    and 256 unpacked points.
    """
    last = LAST if last is None else last
    series = list(MetricSeries.objects.filter(run=run, name__in=names))
    found: dict[str, list[Points]] = defaultdict(list)
    level = _levels([row for row in series if row.packed], first, last)
    for name, points in _packed(series, level, first, last):
        found[name].append(points)
    for name, points in _tails(run, series, first, last):
        found[name].append(points)
    whole = {row.name: _within(joined(found[row.name]), first, last) for row in series}
    thinned = {name: thin(*points, max(1, most // 2)) for name, points in whole.items()}
    lost = any(level.values()) or any(len(thinned[name][0]) < len(whole[name][0]) for name in whole)
    return thinned, lost


def _levels(series: list[MetricSeries], first: int, last: int) -> dict[int, int]:
    """The level to read for each series: down from the top while there are few segments in the range."""
    level = {row.pk: len(row.packed) - 1 for row in series}
    for coarser in range(max(level.values(), default=0), 0, -1):
        here = [pk for pk, at in level.items() if at == coarser]
        if not here:
            continue
        rows = MetricSegment.objects.filter(series__in=here, level=coarser, last_step__gte=first, first_step__lte=last)
        many = dict(rows.values_list("series").annotate(Count("pk")))
        level |= {pk: coarser - 1 for pk in here if many.get(pk, 0) <= ENOUGH}
    return level


def _packed(series: list[MetricSeries], level: dict[int, int], first: int, last: int):
    """Segments in order: of the chosen level, and of the finer ones what that level does not reach yet."""
    alike: dict[tuple, list[int]] = defaultdict(list)
    for row in series:
        if row.packed:
            reach = (*row.packed[: level[row.pk] + 1], -1)
            alike[level[row.pk], tuple(reach)].append(row.pk)
    where = Q(pk__in=())
    for (top, reach), keys in alike.items():
        for at in range(top, -1, -1):
            beyond = Q(first_step__gt=reach[at + 1]) if at < top else Q()
            where |= Q(series__in=keys, level=at, last_step__gte=first, first_step__lte=last) & beyond
    names = {row.pk: row.name for row in series}
    rows = MetricSegment.objects.filter(where).values_list("series", "last_step", "packed") if alike else ()
    return [(names[key], from_bytes(packed)) for key, _, packed in sorted(rows, key=lambda row: row[:2])]


def _tails(run: Run, series: list[MetricSeries], first: int, last: int):
    """What is not packed yet."""
    alike: dict[int, list[str]] = defaultdict(list)
    for row in series:
        alike[max(first, row.packed[0] + 1) if row.packed else first].append(row.name)
    where = Q(pk__in=())
    for begin, names in alike.items():
        where |= Q(name__in=names, step__gte=begin, step__lte=last)
    rows = MetricPoint.objects.filter(where, run=run, is_newest=True).order_by()
    by_name: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for name, step, value in rows.values_list("name", "step", "value"):
        by_name[name].append((step, math.nan if value is None else value))
    for name, points in by_name.items():
        points.sort(key=lambda point: point[0])
        yield name, (np.array([step for step, _ in points], np.int64), np.array([value for _, value in points], float))


def _within(points: Points, first: int, last: int) -> Points:
    steps_N, values_N = points
    inside = (steps_N >= first) & (steps_N <= last)
    return steps_N[inside], values_N[inside]
