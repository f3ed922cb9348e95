"""The pages that watch runs, and the numbers behind their curves."""

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from grading.access import viewer_required
from grading.models import Role, Run, Team
from training_bridge.monitor import alerts, group_ledger, metrics, panels, run_rows
from training_bridge.monitor.headline import figures
from training_bridge.monitor.ledger import ledger
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
    stream = getattr(run, "stream", None)
    also = request.GET.getlist("panel")
    more = [name for name in metrics.other_names(metrics.names_of(run))[metrics.OTHERS :] if name not in also]
    others = Run.objects.visible_to(request.user).exclude(pk=run.pk).order_by("-pk")
    shown = {
        "run": run,
        "watch_path": f"/ws/v1/runs/{run.public_id}/watch" if run.is_live else "",
        "other_runs": others[:OTHER_RUNS],
        "figures": figures(here),
        "stream": stream,
        "panels": panels.of_run(run.method, metrics.names_of(run), also),
        "more_names": more,
        "also_shown": also,
        "ledger": ledger(stream, status=request.GET.get("status", ""), page=request.GET.get("page", 1)),
        "places": group_ledger.places(run, stream),
    } | alerts.panel(run)
    return render(request, "training_bridge/monitor.html", shown)


@viewer_required
@require_GET
def only_a_socket(request, public_id=""):
    """The address of a page's websocket; over plain HTTP there is nothing to see."""
    return HttpResponse("This address speaks websocket only.\n", status=426, headers={"Upgrade": "websocket"})
