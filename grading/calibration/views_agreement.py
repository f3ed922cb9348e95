"""What people say about the grader: agreement, fleet accuracy, drift, bias."""

from django.contrib import messages
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from grading.access import admin_required, viewer_required
from grading.calibration import anchors
from grading.calibration.pages.agreement import agreement_page
from grading.calibration.pages.bias import bias_page
from grading.calibration.pages.drift import drift_page
from grading.calibration.pages.fleet import fleet_page
from grading.errors import BadInput
from grading.models import Anchor, Role, RolloutGroup, Run, Team

PK_DIGITS = 15


@viewer_required
@require_GET
def agreement(request):
    return render(request, "grading/calibration_agreement.html", agreement_page(request.user, request.GET))


@viewer_required
@require_GET
def fleet(request):
    return render(request, "grading/calibration_fleet.html", fleet_page(request.user, request.GET))


@viewer_required
@require_GET
def drift(request):
    return render(request, "grading/calibration_drift.html", drift_page(request.user, request.GET))


@admin_required
@require_POST
def anchor_choose(request):
    """A group by the number in its address."""
    said = request.POST.get("group", "").strip().rstrip("/").rpartition("/")[2]
    groups = RolloutGroup.objects.visible_to(request.user, Role.ADMIN).select_related("run__team")
    group = groups.filter(pk=int(said)).first() if said.isdecimal() and len(said) < PK_DIGITS else None
    if group is None:
        raise BadInput("no such group", got=said[:80], expected="the number or the address of a group of your team")
    anchors.choose(group, user=request.user)
    messages.success(request, f"{group.task.key} is an anchor from the next round on.")
    return _to_drift(group.run.team)


@admin_required
@require_POST
def anchor_draw(request, slug):
    team = get_object_or_404(Team.objects.visible_to(request.user, Role.ADMIN), slug=slug)
    said = {name: request.POST.get(name, "").strip() for name in ("n", "seed")}
    for name, value in said.items():
        if not value.isdecimal() or len(value) >= PK_DIGITS:
            raise BadInput(f"no {name}", got=value[:80], expected="a whole number from 0")
    drawn = anchors.draw(team, n=int(said["n"]), seed=int(said["seed"]), user=request.user)
    messages.success(request, f"{len(drawn)} anchors drawn with seed {said['seed']}.")
    return _to_drift(team)


@admin_required
@require_POST
def anchor_retire(request, pk):
    anchor = get_object_or_404(
        Anchor.objects.visible_to(request.user, Role.ADMIN).select_related("group__run__team"), pk=pk
    )
    anchors.retire(anchor)
    return _to_drift(anchor.group.run.team)


@admin_required
@require_POST
def anchor_round(request, public_id):
    run = get_object_or_404(Run.objects.visible_to(request.user, Role.ADMIN), public_id=public_id)
    round = anchors.start(run, why="asked for", by=request.user.username)
    messages.success(request, f"{round.gradings.count()} anchors are graded again by the grader of {run.name}.")
    return redirect(f"{reverse('drift')}?run={run.public_id}")


def _to_drift(team):
    return redirect(f"{reverse('drift')}?team={team.slug}")


@viewer_required
@require_GET
def bias(request):
    return render(request, "grading/calibration_bias.html", bias_page(request.user, request.GET))
