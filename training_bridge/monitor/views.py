"""The pages that watch runs, and the numbers behind their curves."""

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from grading.access import admin_required, viewer_required
from grading.errors import BadInput
from grading.models import Role, Run, Team
from grading.review.posted import posted_text
from training_bridge import delivery
from training_bridge.models import Stream
from training_bridge.monitor import metrics, panels, run_rows
from training_bridge.monitor.alerts import alerts_of
from training_bridge.monitor.headline import figures
from training_bridge.monitor.ledger import ledger
from training_bridge.monitor.series import series_of
from training_bridge.monitor.standing import standings

RUNS_A_PAGE = 50
OTHER_RUNS = 100


def _run(request, public_id: str, role: str = Role.VIEWER) -> Run:
    runs = Run.objects.visible_to(request.user, role).select_related("team", "rubric", "stream")
    return get_object_or_404(runs, public_id=public_id)


@viewer_required
@require_GET
def runs(request):
    """Every run of one's teams, the newest first."""
    found = Run.objects.visible_to(request.user).select_related("team").order_by("-pk")
    page = Paginator(found, RUNS_A_PAGE).get_page(request.GET.get("page"))
    rows = run_rows.run_rows(list(page))
    may_make_run = Team.objects.visible_to(request.user, Role.ADMIN).exists()
    said = run_rows.summary(rows, page.paginator.count)
    shown = {"rows": rows, "page": page, "summary": said, "may_make_run": may_make_run}
    return render(request, "training_bridge/runs.html", shown)


@viewer_required
@require_GET
def monitor(request, public_id):
    """One run: figures, curves, the delivery ledger, alerts."""
    run = _run(request, public_id)
    [here] = standings([run])
    alerts = alerts_of(here)
    stream = getattr(run, "stream", None)
    others = Run.objects.visible_to(request.user).exclude(pk=run.pk).order_by("-pk")
    shown = {
        "run": run,
        "watch_path": f"/ws/v1/runs/{run.public_id}/watch" if run.is_live else "",
        "other_runs": others[:OTHER_RUNS],
        "figures": figures(here),
        "stream": stream,
        "panels": [*panels.PANELS, *map(panels.other_panel, metrics.other_names(metrics.recent_names(run)))],
        "ledger": ledger(stream, status=request.GET.get("status", ""), page=request.GET.get("page", 1)),
        "alerts": alerts,
        "open_alerts": len(alerts),
    }
    return render(request, "training_bridge/monitor.html", shown)


@viewer_required
@require_GET
def series(request, public_id):
    """The curves as JSON; `?from=N` gives the steps from N on."""
    first = request.GET.get("from", "0")
    if not (first.isascii() and first.isdigit() and len(first) <= 9):
        raise BadInput("from is not a step", got=first[:40], expected="a whole number from 0 on", where="from")
    return JsonResponse(series_of(_run(request, public_id), int(first)))


@admin_required
@require_POST
def pause(request, public_id):
    """Only outcome advantages from now on, or redistribution again; the job hears it in its stream."""
    run = _run(request, public_id, Role.ADMIN)
    paused, reason = request.POST.get("paused"), posted_text(request, "reason")
    if paused not in ("0", "1"):
        raise BadInput("paused is neither on nor off", got=paused, expected="1 or 0", where="paused")
    mode = Stream.Mode.OUTCOME_ONLY if paused == "1" else Stream.Mode.NORMAL
    delivery.set_mode(run, mode=mode, reason=reason, by=request.user.username)
    said = "Only outcome advantages go out from now on." if paused == "1" else "Redistribution goes on."
    messages.success(request, said)
    return redirect("run-settings", public_id=run.public_id)


@viewer_required
@require_GET
def only_a_socket(request, public_id=""):
    """The address of a page's websocket; over plain HTTP there is nothing to see."""
    return HttpResponse("This address speaks websocket only.\n", status=426, headers={"Upgrade": "websocket"})
