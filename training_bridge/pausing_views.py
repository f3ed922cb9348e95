"""The page of the pause: how a run stands, what a switch would mean, and who switched it before."""

from django.contrib import messages
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from grading.access import admin_required, viewer_required
from grading.errors import BadInput
from grading.models import Role, Run
from grading.review.posted import posted_text
from training_bridge import pausing


def _run(request, public_id: str, role: str = Role.VIEWER) -> Run:
    runs = Run.objects.visible_to(request.user, role).select_related("team", "stream")
    return get_object_or_404(runs, public_id=public_id)


@viewer_required
@require_GET
def pause(request, public_id):
    run = _run(request, public_id)
    may_admin = request.user.may(Role.ADMIN, run.team_id)
    return render(request, "training_bridge/pause.html", pausing.page(run) | {"may_admin": may_admin})


@admin_required
@require_POST
def switch(request, public_id):
    """Only outcome advantages from now on, or redistribution again; the job hears it in its stream."""
    run = _run(request, public_id, Role.ADMIN)
    paused, reason = request.POST.get("paused"), posted_text(request, "reason")
    if paused not in ("0", "1"):
        raise BadInput("paused is neither on nor off", got=paused, expected="1 or 0", where="paused")
    pausing.switch(run, paused=paused == "1", reason=reason, by=request.user.username)
    said = "Only outcome advantages go out from now on." if paused == "1" else "Redistribution goes on."
    messages.success(request, said)
    return redirect("run-pause", public_id=run.public_id)
