"""Any series out, whole, step by step: as rows of CSV, as rows of JSON, with its history, in constant memory."""

import csv
import heapq
import io
from collections.abc import Iterator, Sequence
from itertools import groupby

from grading.models import Run
from training_bridge.models import MetricPoint
from training_bridge.monitor import derived, metrics

AT_ONCE = 2000
STEPS_AT_ONCE = 500
FORMULA = ("=", "+", "-", "@", "\t", "\r")
Row = tuple[int, str, float | str]  # step, name, value; a word where it is not finite


def names_of(run: Run) -> list[str]:
    """Every series that can be asked for: what the job reported, then what the rows say."""
    reported = metrics.names_of(run)
    return [*reported, *(name for name in derived.NAMES if name not in reported)]


def rows(run: Run, names: Sequence[str], first: int, last: int) -> Iterator[tuple[int, dict[str, float | str]]]:
    """(step, values by name), every step once, those without any of the names left out."""
    reported = metrics.names_of(run)
    streams = [_points(run, name, first, last) for name in names if name in reported]
    ours = [name for name in names if name not in reported]
    streams += [_derived(run, ours, first, last)] if ours else []
    for step, found in groupby(heapq.merge(*streams, key=lambda row: row[0]), key=lambda row: row[0]):
        yield step, {name: value for _, name, value in found}


def _points(run: Run, name: str, first: int, last: int) -> Iterator[Row]:
    newest = MetricPoint.objects.filter(run=run, name=name, is_newest=True, step__lte=last).order_by("step")
    while found := list(newest.filter(step__gte=first).values_list("step", "value", "non_finite")[:AT_ONCE]):
        for step, value, word in found:
            yield step, name, word if value is None else value
        first = found[-1][0] + 1


def _derived(run: Run, names: Sequence[str], first: int, last: int) -> Iterator[Row]:
    while found := derived.some(run, first, last, STEPS_AT_ONCE):
        for step in sorted({step for points in found.values() for step in points}):
            for name in names:
                if found.get(name, {}).get(step) is not None:
                    yield step, name, found[name][step]
        first = max(max(points) for points in found.values()) + 1


def csv_lines(run: Run, names: Sequence[str], first: int, last: int) -> Iterator[str]:
    """A head line, then a line a step; NaN and Infinity as words, nothing where there is no number."""
    yield _line(["step", *names])
    for step, values in rows(run, names, first, last):
        yield _line([step, *(values.get(name, "") for name in names)])


def _line(cells: list) -> str:
    text = io.StringIO()
    csv.writer(text).writerow([_harmless(cell) for cell in cells])
    return text.getvalue()


def _harmless(cell):
    """A spreadsheet must not run a metric's name as a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) and cell != "-Infinity" else cell


def history(run: Run, name: str, step: int) -> list[dict]:
    """Every value that was told of a step, the newest first."""
    found = MetricPoint.objects.filter(run=run, name=name, step=step).select_related("life").order_by("-pk")[:AT_ONCE]
    return [
        {
            "value": point.non_finite or point.value, "counts": point.is_newest, "at": point.at,
            "life": point.life.n if point.life else None, "n": point.n,
        }
        for point in found
    ]  # fmt: skip
