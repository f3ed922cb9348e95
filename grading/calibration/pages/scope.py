"""The run a calibration page looks at: the one asked for, else the newest that has verdicts."""

from collections.abc import Mapping

from grading.models import Run, Verdict
from grading.storable import storable

LISTED = 200  # runs to choose from


def scope_of(user, query: Mapping[str, str]) -> dict:
    """`run` and `runs` of a calibration page. `run` is None where this user sees none, or none of that id."""
    visible = Run.objects.visible_to(user).select_related("team", "rubric")
    asked = storable(query.get("run", ""))
    if asked:
        run = visible.filter(public_id=asked).first()
    else:
        graded = Verdict.objects.visible_to(user).order_by("-pk").values_list("group__run", flat=True).first()
        run = visible.filter(pk=graded).first() or visible.order_by("-pk").first()
    return {"run": run, "runs": visible.order_by("-pk")[:LISTED], "asked_run": asked}
