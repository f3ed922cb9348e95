"""The numbers behind the curves: a snapshot of a range, thinned to the width of a panel, and what changed since."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from grading.errors import BadInput
from grading.models import Run
from training_bridge.models import MetricPoint
from training_bridge.monitor import curves, derived, metrics
from training_bridge.monitor.packing import Points

MOST = 1200  # points of a series, unless somebody asks for another number
MOST_CHANGES = 20_000  # a page that slept for longer gets a snapshot
OVERLAP = timedelta(seconds=5)  # a delivery and a receipt may commit in another order than they took their times


@dataclass(frozen=True)
class Cursor:
    """Up to where a page has seen a run: the newest point, and when the sums changed last."""

    point: int = 0
    at: datetime = datetime.fromtimestamp(0, UTC)

    def __str__(self) -> str:
        return f"{self.point}.{round(self.at.timestamp() * 1e6)}"

    @classmethod
    def of(cls, run: Run) -> "Cursor":
        """Where the run is now. Read it before the numbers: what comes between is then given twice, never lost."""
        point = MetricPoint.objects.filter(run=run).order_by("-pk").values_list("pk", flat=True).first()
        return cls(point or 0, derived.newest(run) or cls.at)

    @classmethod
    def read(cls, text: str) -> "Cursor":
        point, _, micros = text.partition(".")
        if not (point.isascii() and point.isdigit() and micros.isascii() and micros.isdigit() and len(text) < 40):
            raise BadInput("after is no cursor", got=text[:40], expected="`cursor` of an answer before", where="after")
        return cls(int(point), datetime.fromtimestamp(min(int(micros), 2**52) / 1e6, UTC))


def snapshot(
    run: Run, names: Collection[str] | None = None, *, first: int = 0, last: int | None = None, most: int = MOST
) -> dict:
    """A range of steps of the named series, or of all that have a panel.

    Returns:
        `{"cursor", "thinned", "grids": [[step, …], …], "series": {name: [which grid, [value, …]]}}`; a value is None
        where it was NaN or infinite: a gap. A series has points only where it has numbers.
    """
    cursor = Cursor.of(run)
    known = metrics.names_of(run)
    wanted = _all_names(known) if names is None else [name for name in names if name in known]
    found, thinned = curves.read(run, wanted, first=first, last=last, most=most)
    ours, pooled = derived.between(run, first, last)
    for name, points in ours.items():
        if (names is None or name in names) and name not in known:
            found[name] = _arrays(points)
    return {"cursor": str(cursor), "snapshot": True, "thinned": thinned or pooled} | _told(found)


def changes(run: Run, after: Cursor, names: Collection[str] | None = None) -> dict | None:
    """What came or changed after a cursor, at whatever step; None where that is so much that a snapshot is less."""
    cursor = Cursor.of(run)
    known = metrics.names_of(run)
    wanted = _all_names(known) if names is None else [name for name in names if name in known]
    rows = MetricPoint.objects.filter(run=run, pk__gt=after.point, pk__lte=cursor.point, is_newest=True)
    came = list(rows.order_by("pk").values_list("name", "step", "value")[: MOST_CHANGES + 1])
    if len(came) > MOST_CHANGES or after.point > cursor.point:
        return None
    found: dict[str, dict[int, float | None]] = {}
    for name, step, value in came:
        if name in wanted:
            found.setdefault(name, {})[step] = np.nan if value is None else value
    for name, points in derived.changed(run, after.at - OVERLAP).items():
        if (names is None or name in names) and name not in known:
            found[name] = points
    return {"cursor": str(cursor), "snapshot": False} | _told({name: _arrays(at) for name, at in found.items()})


def _all_names(known: Collection[str]) -> list[str]:
    return [*(name for name in metrics.KNOWN if name in known), *metrics.other_names(known)[: metrics.OTHERS]]


def _arrays(points: dict[int, float | None]) -> Points:
    """A curve from the rows: where there is nothing to divide by there is a gap."""
    steps = sorted(points)
    return np.array(steps, np.int64), np.array([np.nan if points[step] is None else points[step] for step in steps])


def _told(found: dict[str, Points]) -> dict:
    grids: dict[bytes, int] = {}
    lists: list[list[int]] = []
    series = {}
    for name, (steps_N, values_N) in found.items():
        key = steps_N.tobytes()
        if key not in grids:
            grids[key] = len(lists)
            lists.append(steps_N.tolist())
        series[name] = [grids[key], np.where(np.isnan(values_N), None, values_N).tolist()]
    return {"grids": lists, "series": series}
