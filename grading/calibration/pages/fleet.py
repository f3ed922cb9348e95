"""The fleet page: how often the grader is right over everything it graded, and what that rests on."""

from collections.abc import Mapping

import numpy as np

from grading.calibration import answers, drawn, fleet
from grading.calibration.agreement import FIGURES, measure, sums_by_group
from grading.calibration.estimate import Estimate
from grading.calibration.intervals import ratio
from grading.calibration.pages.behind import behind
from grading.calibration.pages.people import people_scope

THIRDS = ("hardest to get an answer for", "in between", "easiest to get an answer for")
NOBODY = "no graded group could be drawn for a person"
TRUTHS = {
    drawn.BLIND: "orders given before the verdict was shown",
    drawn.ANY: "any answer; a blind order where there is one",
}


def fleet_page(user, query: Mapping[str, str]) -> dict:
    """Context of grading/calibration_fleet.html."""
    context = people_scope(user, query)
    scope = {"run": context["run"], "team": context["team"]}
    groups = drawn.visible_groups(user, **scope)
    ceiling = answers.compared(answers.reviews_of(user, **scope))
    columns = []
    for truth, words in TRUTHS.items():
        people = ceiling["people_blind"] if truth == drawn.BLIND else ceiling["people_blind"] + ceiling["people_shown"]
        found = drawn.drawn_of(groups, truth=truth, by=context["graders"])
        column = _column(found) | {"ceiling": measure(people, FIGURES["pairs"]), "people": people}
        columns.append({"words": words, "truth": truth, **column})
    return context | {
        "columns": columns,
        "counted": [_counted(columns, name) for name in COUNTS],
        "chosen": _chosen(user, columns, query),
        "rows": [_line(columns, *row) for row in LINES],
        "is_empty": not columns[-1]["counts"].graded,
    }


CEILING = "ceiling"
COUNTS = {
    "graded": ("graded groups with a valid verdict", ""),
    "never": ("could never be drawn", "policy auto or shadow, a share of 0: the figure says nothing of them"),
    "forced": ("held for a signal or flips", "chosen for what they are: their answers are not counted"),
    "drawn": ("drawn", ""),
    "answered": ("answered", ""),
}


def _counted(columns: list[dict], name: str) -> dict:
    title, words = COUNTS[name]
    cells = [{"n": len(getattr(column["counts"], name)), "truth": column["truth"]} for column in columns]
    return {"name": name, "title": title, "words": words, "cells": cells}


def _chosen(user, columns: list[dict], query: Mapping[str, str]) -> dict | None:
    """The groups behind a count; of those that are answered also how often the grader is right in each."""
    count, truth = query.get("count", ""), query.get("truth", "")
    column = next((one for one in columns if one["truth"] == truth), None)
    if column and count == CEILING:
        sums = sums_by_group(column["people"], FIGURES["pairs"].adds)
        adds = {group: (float(ratio(one)) if one[1] else None, float(one[1])) for group, one in sums.items()}
        return behind(user, adds, query, words=f"people with people: {column['words']}", shown="share")
    if column is None or count not in COUNTS:
        return None
    adds = dict.fromkeys(getattr(column["counts"], count), (None, 0)) | (column["right"] if count == "answered" else {})
    return behind(user, adds, query, words=f"{COUNTS[count][0]}: {column['words']}", shown="share")


LINES = (
    ("powered", "Accuracy over all graded groups", "prediction-powered; the figure to report"),
    ("weighted", "by 1 / probability alone", "each answer weighs as many groups as it stands for"),
    ("naive", "answers as they came", "flattering where the easy is answered first"),
    ("ceiling", "People with people", "the ceiling: pairs alike of two who answered alone"),
)


def _line(columns: list[dict], name: str, title: str, words: str) -> dict:
    of, count = ("pairs", CEILING) if name == CEILING else ("answered", "answered")
    cells = [{"found": column[name], "of": of, "truth": column["truth"], "count": count} for column in columns]
    return {"name": name, "title": title, "words": words, "cells": cells}


def _column(found: drawn.Drawn) -> dict:
    if found.frame is None:
        nothing = Estimate.undefined(NOBODY)
        return {
            "powered": nothing,
            "weighted": nothing,
            "naive": nothing,
            "counts": found,
            "thirds": [],
            "effective": 0,
            "right": {},
        }
    made = fleet.fleet(found.frame)
    return {
        "powered": made.powered, "weighted": made.weighted, "naive": made.naive, "counts": found,
        "thirds": _thirds(found.frame, made.response_G), "effective": made.effective,
        "gap": _gap(made), "right": _right(found),
    }  # fmt: skip


def _right(found: drawn.Drawn) -> dict[int, tuple[float | None, float]]:
    """Group -> (how often the grader is right in it, decided pairs), of those that are answered."""
    frame = found.frame
    credit_G, decided_G = frame.sums(frame.credit_P), frame.sums(frame.decided_P)
    at_G = np.flatnonzero(frame.answered_G)
    return {found.groups[g]: (credit_G[g] / decided_G[g] if decided_G[g] else None, float(decided_G[g])) for g in at_G}


def _gap(made: fleet.Fleet) -> float | None:
    """How much better the answers that came look than the estimate over all."""
    known = made.naive.value is not None and made.powered.value is not None
    return made.naive.value - made.powered.value if known else None


def _thirds(frame: fleet.Frame, response_G: np.ndarray) -> list[dict]:
    """Drawn groups by the modelled probability of an answer: how many came back, and how often the grader was right."""
    at = np.flatnonzero(frame.drawn_G)
    if len(at) < len(THIRDS):
        return []
    order = at[np.argsort(response_G[at], kind="stable")]
    credit_G, decided_G = frame.sums(frame.credit_P), frame.sums(frame.decided_P)
    rows = []
    for words, part in zip(THIRDS, np.array_split(order, len(THIRDS)), strict=True):
        came = part[frame.answered_G[part]]
        decided = decided_G[came].sum()
        rows.append({
            "words": words, "drawn": len(part), "answered": len(came), "modelled": float(response_G[part].mean()),
            "right": float(credit_G[came].sum() / decided) if decided else None,
        })  # fmt: skip
    return rows
