"""Calibration: what each knob moves, what other numbers would do, and the versions of the rubric."""

from django.contrib import messages
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from grading.access import admin_required, viewer_required
from grading.calibration import publish
from grading.calibration.pages.knobs import knobs_page
from grading.calibration.pages.scope import scope_of
from grading.calibration.pages.versions import versions_page
from grading.calibration.rubric_form import read_rubric
from grading.errors import BadInput
from grading.models import Role, RubricVersion, Run
from grading.review.posted import posted_text


@viewer_required
@require_GET
def knobs(request):
    scope = scope_of(request.user, request.GET)
    context = scope | (knobs_page(scope["run"], request.GET) if scope["run"] else {})
    context["may_publish"] = _may_publish(request.user)
    refused = scope["run"] and context["typed"].error
    return render(request, "grading/calibration.html", context, status=BadInput.status if refused else 200)


def _may_publish(user) -> bool:
    return user.is_superuser or user.memberships.filter(role=Role.ADMIN).exists()


@viewer_required
@require_GET
def versions(request):
    scope = scope_of(request.user, request.GET)
    return render(request, "grading/rubric_versions.html", scope | versions_page(request.user, scope, request.GET))


@admin_required
@require_POST
def publish_version(request):
    """The numbers of the what-if form become the next version."""
    parent = _version(request, "parent")
    typed = read_rubric(request.POST, parent.rubric)
    if typed.rubric is None:
        raise BadInput(typed.error)
    said = {name: posted_text(request, name) for name in ("name", "reason")}
    made = publish.publish(typed.definition, **said, parent=parent, user=request.user)
    messages.success(request, f"{made} is published and frozen. No run uses it yet: choose it for one.")
    run = posted_text(request, "run")
    return redirect(f"{reverse('rubric-versions')}?right={made.number}{f'&run={run}' if run else ''}")


@admin_required
@require_POST
def choose_version(request, public_id):
    runs = Run.objects.visible_to(request.user, Role.ADMIN).select_related("rubric")
    run = get_object_or_404(runs, public_id=public_id)
    version = _version(request, "version")
    if publish.choose(run, version, user=request.user):
        messages.success(request, f"{run.name} uses {version} for groups that become complete from now on.")
    else:
        messages.success(request, f"{run.name} uses {version} already.")
    return redirect("run-settings", public_id)


def _version(request, name: str) -> RubricVersion:
    return get_object_or_404(RubricVersion, number=_number(posted_text(request, name)))


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 9 else 0
