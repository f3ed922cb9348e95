"""Packed segments of a series: made as it grows, mended where a point comes late."""

import math
from collections import defaultdict

import numpy as np

from training_bridge.models import MetricPoint, MetricSegment, MetricSeries
from training_bridge.monitor.packing import BINS, CHILDREN, SIZE, from_bytes, joined, placed, thin, to_bytes


def pack(series: MetricSeries) -> None:
    """Pack what is older than the newest SIZE points, and the levels above where they are full. Saves no series."""
    full = series.tail // SIZE - 1  # the newest stay unpacked: most of what comes late is late by little
    if full < 1:
        return
    rows = MetricPoint.objects.filter(run=series.run_id, name=series.name, is_newest=True)
    if series.packed:
        rows = rows.filter(step__gt=series.packed[0])
    found = list(rows.order_by("step").values_list("step", "value")[: full * SIZE])
    steps_N = np.array([step for step, _ in found], np.int64)
    values_N = np.array([math.nan if value is None else value for _, value in found], float)
    parts = [(steps_N[at : at + SIZE], values_N[at : at + SIZE]) for at in range(0, len(found), SIZE)]
    series.tail -= len(found)
    level = 0
    while parts:
        MetricSegment.objects.bulk_create(_segment(series, level, *part) for part in parts)
        last = int(parts[-1][0][-1])
        series.packed = [*series.packed[:level], last, *series.packed[level + 1 :]]
        level += 1
        parts = _parents(series, level)


def _segment(series: MetricSeries, level: int, steps_N: np.ndarray, values_N: np.ndarray) -> MetricSegment:
    return MetricSegment(
        series=series, level=level, first_step=int(steps_N[0]), last_step=int(steps_N[-1]),
        packed=to_bytes(steps_N, values_N),
    )  # fmt: skip


def _parents(series: MetricSeries, level: int) -> list:
    """Points of the segments of this level that the one below has filled."""
    below = MetricSegment.objects.filter(series=series, level=level - 1).order_by("last_step")
    if len(series.packed) > level:
        below = below.filter(last_step__gt=series.packed[level])
    children = [from_bytes(packed) for packed in below.values_list("packed", flat=True)]
    whole = len(children) - len(children) % CHILDREN
    return [thin(*joined(children[at : at + CHILDREN]), BINS) for at in range(0, whole, CHILDREN)]


def patch(series: MetricSeries, late: dict[int, float]) -> None:
    """Put late points, step -> value, into the packed segments where they belong, at every level."""
    for level, packed_to in enumerate(series.packed):
        mended: dict[int, dict[int, float]] = defaultdict(dict)
        rows = MetricSegment.objects.filter(series=series, level=level)
        for step in [step for step in late if step <= packed_to]:
            at = rows.filter(last_step__gte=step).order_by("last_step").values_list("pk", flat=True).first()
            mended[at][step] = late[step]
        for row in rows.filter(pk__in=mended):
            if level == 0:
                points = placed(*from_bytes(row.packed), mended[row.pk])
            else:
                below = MetricSegment.objects.filter(series=series, level=level - 1, last_step__lte=row.last_step)
                below = below.filter(last_step__gte=min(row.first_step, *mended[row.pk])).order_by("last_step")
                points = thin(*joined([from_bytes(packed) for packed in below.values_list("packed", flat=True)]), BINS)
            row.packed, row.first_step = to_bytes(*points), int(points[0][0])
            row.save(update_fields=["packed", "first_step"])
