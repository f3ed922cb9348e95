"""The agreement page: every figure for every kind of comparison, the pictures, and the groups behind a figure."""

from collections.abc import Mapping, Sequence

import numpy as np

from grading.calibration import agreement, answers, curves
from grading.calibration.agreement import BY_CRITERION, FIGURES, RANKING, TIER, Compared, Figure, measure_all
from grading.calibration.estimate import Estimate
from grading.calibration.intervals import estimate, ratio
from grading.calibration.pages.behind import behind
from grading.calibration.pages.people import people_scope

BINS = 6
OF = {"tau_b": "rankings", "top_1": "rankings"}


def agreement_page(user, query: Mapping[str, str]) -> dict:
    """Context of grading/calibration_agreement.html."""
    context = people_scope(user, query)
    reviews = answers.reviews_of(user, run=context["run"], team=context["team"])
    found = answers.compared(reviews, context["graders"])
    best = _plotted(found, "grader"), _plotted(found, "people")
    made = {kind: measure_all(found[kind], list(FIGURES.values())) for kind in answers.KINDS}
    return context | {
        "kinds": [{"name": kind, "words": words, "n": len(found[kind])} for kind, words in answers.KINDS.items()],
        "parts": [
            {"title": "Ranking", "rows": _rows(made, RANKING)},
            {"title": "Tiers", "rows": _rows(made, TIER)},
            *({"title": name, "rows": _rows(made, every)} for name, every in BY_CRITERION.items()),
        ],
        "plot": _plot(made, *best),
        "plotted": [answers.KINDS[kind] for kind in best],
        "tied_all": {kind: agreement.undefined_groups(found[kind]) for kind in answers.KINDS},
        "confusion": _confusion(found),
        "curve": _curve(found),
        "chosen": _chosen(user, found, query),
        "is_empty": not any(found.values()),
    }


def _rows(made: Mapping[str, Mapping[str, Estimate]], figures: Sequence[Figure]) -> list[dict]:
    return [
        {
            "words": figure.words,
            "cells": [
                {
                    "kind": kind,
                    "figure": figure.name,
                    "found": made[kind][figure.name],
                    "shown": "share" if figure.is_share else "number",
                    "of": OF.get(figure.name, "pairs" if figure in RANKING else "candidates"),
                }
                for kind in answers.KINDS
            ],
        }
        for figure in figures
    ]


def _plotted(found: Mapping[str, Sequence[Compared]], who: str) -> str:
    """The kind that a picture is of: with scores, the one with the most comparisons."""
    kinds = [kind for kind in answers.KINDS if kind.startswith(who) and not kind.endswith("blind")]
    return max(kinds, key=lambda kind: len(found[kind]))


def _plot(made: Mapping[str, Mapping[str, Estimate]], grader: str, people: str) -> list[dict]:
    """Pairs blind and shown, then criteria and tier by weighted kappa."""
    chosen = [("pairs, blind", FIGURES["pairs"], "grader_blind", "people_blind"),
              ("pairs, shown", FIGURES["pairs"], grader, people)]  # fmt: skip
    chosen += [(c.replace("_", " "), every[0], grader, people) for c, every in BY_CRITERION.items()]
    chosen.append(("tier", TIER[0], grader, people))
    return [
        {"label": label, "grader": made[a][figure.name], "people": made[b][figure.name]}
        for label, figure, a, b in chosen
    ]


def _confusion(found: Mapping[str, Sequence[Compared]]) -> list[dict]:
    """Tier by tier, people in rows and the grader in columns, for each kind that has tiers."""
    tables = []
    for kind in ("grader_blind", "grader_then", "grader_shown"):
        table_KK = agreement.tier_confusion(found[kind])
        if table_KK.sum():
            rows = [
                {"tier": tier, "cells": [{"n": int(n), "heat": _heat(n, row.sum()), "share": n / row.sum() if row.sum()
                 else None, "is_same": at == tier} for at, n in enumerate(row, 1)], "n": int(row.sum())}
                for tier, row in enumerate(table_KK, 1)
            ]  # fmt: skip
            tables.append({"words": answers.KINDS[kind], "rows": rows, "kind": kind})
    return tables


def _heat(n: float, whole: float) -> int:
    """0 to 9, the class of a cell."""
    return min(9, int(10 * n / whole)) if whole else 0


def _curve(found: Mapping[str, Sequence[Compared]]) -> dict | None:
    """P(people prefer the higher W) by how far W is apart: bins of equal size with intervals, isotonic line."""
    for kind in ("grader_blind", "grader_shown", "grader_then"):
        group_P, apart_P, prefers_P = agreement.preferences(found[kind])
        if len(apart_P) >= 2 and apart_P.max() > 0:
            break
    else:
        return None
    steps = curves.preference(apart_P, prefers_P)
    most = float(apart_P.max())
    grid = np.unique(np.concatenate([steps.x[steps.x >= 0], [0.0, most]]))
    p_P = steps.at(apart_P)
    return {
        "words": answers.KINDS[kind],
        "most": most,
        "steps": list(zip(grid.tolist(), steps.at(grid).tolist(), strict=True)),
        "bins": _bins(group_P, apart_P, prefers_P),
        "brier": curves.brier(prefers_P, p_P),
        "pairs": len(apart_P),
        "groups": len(set(group_P.tolist())),
    }


def _bins(group_P: np.ndarray, apart_P: np.ndarray, prefers_P: np.ndarray) -> list[dict]:
    parted = apart_P > 0  # where W is equal the share is one half by its making
    group_P, apart_P, prefers_P = group_P[parted], apart_P[parted], prefers_P[parted]
    edges = np.unique(np.quantile(apart_P, np.linspace(0, 1, BINS + 1)))
    at_P = np.clip(np.searchsorted(edges, apart_P, side="right") - 1, 0, max(len(edges) - 2, 0))
    found = []
    for at in np.unique(at_P):
        here = at_P == at
        groups, of = np.unique(group_P[here], return_inverse=True)
        sums = np.stack([np.bincount(of, prefers_P[here]), np.bincount(of)], axis=-1)
        share = estimate(sums, ratio, n=int(here.sum()), undefined="no pair", is_share=True, resamples=1000)
        found.append({"at": float(apart_P[here].mean()), "found": share, "groups": len(groups)})
    return found


def _chosen(user, found: Mapping[str, Sequence[Compared]], query: Mapping[str, str]) -> dict | None:
    """The groups behind one figure, the lowest first."""
    figure, kind = FIGURES.get(query.get("figure", "")), query.get("kind", "")
    if figure is None or kind not in found:
        return None
    sums = agreement.sums_by_group(found[kind], figure.adds)
    adds = {group: (float(figure.statistic(one)), figure.counted(one)) for group, one in sums.items()}
    words = f"{figure.words} · {answers.KINDS[kind]}"
    return behind(user, adds, query, words=words, shown="share" if figure.is_share else "number")
