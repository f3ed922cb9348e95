"""Fit the rubric to people's orders, and look at held-out groups, which spends them."""

from urllib.parse import urlencode

from django.contrib import messages
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from grading.access import admin_required, reviewer_required, viewer_required
from grading.calibration import fitting, gates
from grading.calibration.pages.fit import fit_page as page_of
from grading.calibration.pages.scope import scope_of
from grading.calibration.rubric_form import FIELDS, read_rubric
from grading.errors import BadInput
from grading.models import Role, Run
from grading.review.posted import posted_text


@viewer_required
@require_GET
def fit_page(request):
    scope = scope_of(request.user, request.GET)
    context = scope | (page_of(scope["run"], request.user, request.GET) if scope["run"] else {})
    status = BadInput.status if context.get("refused") else 200
    return render(request, "grading/calibration_fit.html", context, status=status)


def _run(request, public_id: str, role: str) -> Run:
    runs = Run.objects.visible_to(request.user, role).select_related("team", "rubric")
    return get_object_or_404(runs, public_id=public_id)


@reviewer_required
@require_POST
def fit_now(request, public_id):
    run = _run(request, public_id, Role.REVIEWER)
    made = fitting.fit(run, by=request.user.username, grader=posted_text(request, "grader"))
    if made.definition:
        messages.success(request, "Fitted. Nothing is published: the gate looks at held-out groups first.")
    else:
        messages.warning(request, "Nothing could be fitted: the page says why.")
    return redirect(_back(request, public_id))


def _back(request, public_id: str, **numbers) -> str:
    """The fit page, of the same grader."""
    grader = posted_text(request, "grader")
    said = {"run": public_id} | ({"grader": grader} if grader else {}) | numbers
    return f"{reverse('calibration-fit')}?{urlencode(said)}"


@admin_required
@require_POST
def gate_now(request, public_id):
    run = _run(request, public_id, Role.ADMIN)
    typed = read_rubric(request.POST, run.rubric.rubric)
    if typed.rubric is None:
        raise BadInput(typed.error)
    grader = posted_text(request, "grader")
    _say(request, gates.look_at_rubric(run, typed.rubric, by=request.user.username, grader=grader))
    return redirect(_back(request, public_id, **{name: typed.fields[name] for name in FIELDS}))


@admin_required
@require_POST
def gate_grader(request, public_id):
    run = _run(request, public_id, Role.ADMIN)
    said = {name: posted_text(request, name) for name in ("other", "grader")}
    _say(request, gates.look_at_grader(run, **said, by=request.user.username))
    return redirect(_back(request, public_id))


def _say(request, made) -> None:
    words = f"{made.groups} groups are spent. The gain is "
    words += "undefined" if made.gain is None else f"{100 * made.gain:+.1f} points"
    say = messages.success if made.passed else messages.warning
    say(request, f"{words}: the gate is {'passed' if made.passed else 'not passed'}.")
