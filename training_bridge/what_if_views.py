"""The bridge's half of calibration: panels of advantages that the page of grading asks for by URL."""

from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from grading.access import viewer_required
from grading.calibration.pages.asked import last_of
from grading.calibration.rubric_form import Typed, read_rubric
from grading.errors import BadInput
from grading.models import RolloutGroup, Run
from grading.review import blind
from training_bridge import what_if_panel


def _run(request, public_id: str) -> Run:
    return get_object_or_404(Run.objects.visible_to(request.user).select_related("rubric"), public_id=public_id)


def _page(request, part: str, context: dict, *, status: int = 200):
    context = {"part": part} | context
    return render(request, part if request.htmx else "training_bridge/what_if.html", context, status=status)


def _refused(request, part: str, run: Run, typed: Typed):
    return _page(request, part, {"run": run, "error": typed.error}, status=BadInput.status)


@viewer_required
@require_GET
def knobs(request, public_id):
    """What each knob of the run's version moves."""
    run = _run(request, public_id)
    return _page(request, "training_bridge/_knobs.html", what_if_panel.knobs(run, last=last_of(request.GET)))


@viewer_required
@require_GET
def effects(request, public_id):
    """What training would get under the numbers of a form."""
    run = _run(request, public_id)
    typed = read_rubric(request.GET, run.rubric.rubric)
    if typed.rubric is None:
        return _refused(request, "training_bridge/_effects.html", run, typed)
    shown = what_if_panel.effects(run, typed.rubric, last=last_of(request.GET))
    query = request.GET.copy()
    query.pop("group", None)
    return _page(request, "training_bridge/_effects.html", shown | {"query": query.urlencode()})


@viewer_required
@require_GET
def strip(request, public_id, group):
    """One group's credit before and after."""
    run = _run(request, public_id)
    found = get_object_or_404(
        RolloutGroup.objects.visible_to(request.user).filter(run=run).select_related("run"), pk=group
    )
    blind.refuse_hidden(found, request.user)
    typed = read_rubric(request.GET, run.rubric.rubric)
    if typed.rubric is None:
        return _refused(request, "training_bridge/_credit.html", run, typed)
    rows = what_if_panel.strip(run, typed.rubric, last=last_of(request.GET), group=found.pk)
    return _page(request, "training_bridge/_credit.html", {"run": run, "rows": rows, "group": found})
