"""Versions of the rubric, newest first, and two of them side by side."""

from collections.abc import Mapping

from django.db.models import Count, Q

from grading.calibration.pages.knobs import named
from grading.models import Gate, RubricVersion, Run
from grading.scoring.criteria import CONSTANTS, CRITERIA, THRESHOLDS, Rubric

LISTED = 100


def versions_page(user, scope: Mapping, query: Mapping[str, str]) -> dict:
    """Context of grading/rubric_versions.html. Runs are counted where this user sees them."""
    mine = Run.objects.visible_to(user)
    found = RubricVersion.objects.select_related("parent", "published_by").order_by("-number")
    found = list(found.annotate(used_by=Count("runs", filter=Q(runs__in=mine), distinct=True))[:LISTED])
    gates = Gate.objects.visible_to(user).in_bulk([version.gate_id for version in found if version.gate_id])
    pair = [_asked(query.get(side, ""), found) for side in ("left", "right")]
    right = pair[1] or found[0]
    left = pair[0] or right.parent or next((v for v in found if v.pk != right.pk), right)
    run = scope["run"]
    return {
        "rows": [{"version": v, "gate": gates.get(v.gate_id), "is_theirs": bool(v.gate_id)} for v in found],
        "versions": found,
        "left": left,
        "right": right,
        "compared": compared(left.rubric, right.rubric),
        "may_choose": bool(run) and user.may("admin", run.team_id),
    }


def _asked(text: str, found: list[RubricVersion]) -> RubricVersion | None:
    return next((version for version in found if str(version.number) == text), None)


def compared(left: Rubric, right: Rubric) -> list[dict]:
    """Every number of two rubrics, with what differs."""
    return [
        {
            "part": part,
            "rows": [{"name": n, "named": named(n), "left": a, "right": b, "differs": a != b} for n, a, b in rows],
        }
        for part, rows in (
            ("Weights", [(c, left.weights[i], right.weights[i]) for i, c in enumerate(CRITERIA)]),
            ("Tier thresholds", [(t, getattr(left, t), getattr(right, t)) for t in THRESHOLDS]),
            ("Factors", [(f, getattr(left, f), getattr(right, f)) for f in CONSTANTS.values()]),
            ("Cap", [("lambda_max", left.lambda_max, right.lambda_max)]),
        )
    ]
