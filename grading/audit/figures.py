"""A revealed audit as tables and pictures: each figure with its interval, n, and why there is none."""

from collections.abc import Sequence

from grading.audit.reading import Result
from grading.audit.results import Estimate
from grading.scoring.criteria import CRITERIA

HEADLINE = (
    ("W", "Mean W", "weighted score of all candidates, failures included", "points"),
    ("win_rate", "Win rate", "of passing candidates against passing ones of the others, ties half", "share"),
    ("group_first", "Group first", "share of groups in which it stands first, cross-method ties split", "share"),
    ("T1", "T1 share", "candidates in the best tier", "share"),
)
MORE = (
    ("W_passing", "Mean W, passing", "of candidates whose tests passed", "points"),
    ("T1_passing", "T1 share, passing", "of candidates whose tests passed", "share"),
    ("pass_rate", "Passed", "of the pooled rollouts, which are a drawn few", "share"),
    ("found", "Leak or hack", "found by the audit; not ranked", "share"),
)
BY_CRITERION = tuple((c, c.replace("_", " ").capitalize(), "mean of 1 to 5", "points") for c in CRITERIA)
SPANS = {"points": (1.0, 5.0), "share": (0.0, 1.0)}


def tables(result: Result) -> list[dict]:
    """The three tables of a result: what counts, by criterion, and beside it."""
    named = (("What counts", HEADLINE), ("By criterion", BY_CRITERION), ("Beside it", MORE))
    return [{"title": title, "rows": [_row(result, *about) for about in some]} for title, some in named]


def _row(result: Result, key: str, label: str, title: str, unit: str) -> dict:
    cells = [
        {**cell(estimate, unit), "arm": arm.name, "number": n}
        for n, (arm, estimate) in enumerate(zip(result.arms, result.overall[key], strict=True))
    ]
    against = [difference(estimate, unit) for estimate in result.against_first[key][1:]]
    return {
        "key": key,
        "label": label,
        "title": title,
        "cells": cells,
        "against": against,
        "picture": _dots(cells, unit),
    }


def cell(estimate: Estimate, unit: str) -> dict:
    """One figure in words: "-" with the reason where it is not defined."""
    said = {"value": estimate.value, "low": estimate.low, "high": estimate.high, "n": estimate.n, "why": estimate.why}
    if estimate.value is None:
        return said | {"words": "-", "interval": ""}
    has = estimate.low is not None
    interval = f"{number(estimate.low, unit)} to {number(estimate.high, unit)}" if has else estimate.why
    return said | {"words": number(estimate.value, unit), "interval": interval, "tasks": estimate.tasks}


def difference(estimate: Estimate, unit: str) -> dict:
    """The gain over the first arm, and whether its interval leaves 0 out."""
    found = cell(estimate, unit)
    if estimate.value is None:
        return found | {"is_clear": False}
    words = signed(estimate.value, unit)
    if estimate.low is None:
        return found | {"words": words, "is_clear": False}
    interval = f"{signed(estimate.low, unit)} to {signed(estimate.high, unit)}"
    return found | {"words": words, "interval": interval, "is_clear": estimate.low > 0 or estimate.high < 0}


def number(value: float, unit: str) -> str:
    return f"{100 * value:.1f} %" if unit == "share" else f"{value:.2f}"


def signed(value: float, unit: str) -> str:
    text = number(abs(value), unit)
    sign = "" if float(text.split()[0]) == 0 else "+" if value > 0 else "\N{MINUS SIGN}"
    return sign + text.replace(" %", " pp")


def _dots(cells: Sequence[dict], unit: str) -> dict:
    low, high = SPANS[unit]
    return {"cells": cells, "low": low, "high": high, "unit": unit}


def lines(result: Result) -> list[dict]:
    """Fig. 3: each headline figure over the checkpoints, a line an arm; nothing for fewer than two checkpoints."""
    if len(result.by_window) < 2:
        return []
    labels = [f"{first}-{last}" if first != last else str(first) for (first, last), _ in result.by_window]
    found = []
    for key, label, title, unit in HEADLINE:
        series = [
            {"name": arm.name, "number": n, "points": [cell(summary[key][n], unit) for _, summary in result.by_window]}
            for n, arm in enumerate(result.arms)
        ]
        found.append({"label": label, "title": title, "unit": unit, "labels": labels, "series": series})
    return found
