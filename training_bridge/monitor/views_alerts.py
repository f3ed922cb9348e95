"""Pages of alerts: over all runs, of one run with its rules, and one alert; and the banner of every page of a run."""

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from grading import people
from grading.access import admin_required, reviewer_required, viewer_required
from grading.models import Role, Run
from grading.review import webhook
from grading.review.posted import posted_text
from training_bridge.models import Alert, AlertCall
from training_bridge.monitor import alert_calls, alert_rules, alerting, alerts
from training_bridge.monitor.alert_signs import SIGNS

CALLS = 20


def _run(request, public_id: str, role: str = Role.VIEWER) -> Run:
    runs = Run.objects.visible_to(request.user, role).select_related("team", "stream")
    return get_object_or_404(runs, public_id=public_id)


def _page_of(request, rows, **filters) -> dict:
    asked = {name: request.GET.get(name, "") for name in ("state", "sign", "run")} | filters
    page = Paginator(alerts.listed(rows, **asked), alerts.PAGE).get_page(request.GET.get("page"))
    rows = [alerts.shown(alert) for alert in page]
    return {"page": page, "rows": rows, "filters": asked, "signs": SIGNS.values(), "states": tuple(alerts.STATES)}


@viewer_required
@require_GET
def all_alerts(request):
    """Of every run of one's teams; the open ones unless asked otherwise."""
    return render(request, "training_bridge/alerts.html", _page_of(request, Alert.objects.visible_to(request.user)))


@viewer_required
@require_GET
def run_alerts(request, public_id):
    """One run: its alerts, the rules that make them, and what its webhook heard."""
    run = _run(request, public_id)
    may_admin = request.user.may(Role.ADMIN, run.team_id)
    calls = AlertCall.objects.visible_to(request.user).filter(message__run=run).select_related("message__event__alert")
    shown = {
        "run": run,
        "may_admin": may_admin,
        "rules": alerts.rule_rows(run),
        "calls": calls.order_by("-pk")[:CALLS],
        "secret": webhook.secret_of(run) if may_admin and run.webhook_url else "",
    }
    rows = Alert.objects.visible_to(request.user).filter(run=run)
    state = request.GET.get("state") or "all"
    return render(request, "training_bridge/run_alerts.html", _page_of(request, rows, run="", state=state) | shown)


def _alert(request, pk: int, role: str = Role.VIEWER) -> Alert:
    return get_object_or_404(Alert.objects.visible_to(request.user, role).select_related("run__team"), pk=pk)


@viewer_required
@require_GET
def alert(request, pk):
    found = _alert(request, pk)
    may = request.user.may(Role.REVIEWER, found.run.team_id)
    context = alerts.history(found) | {"run": found.run, "may_acknowledge": may}
    return render(request, "training_bridge/alert.html", context)


@reviewer_required
@require_POST
def acknowledge(request, pk):
    """Somebody looks after it; the note says how."""
    found = _alert(request, pk, Role.REVIEWER)
    note = posted_text(request, "note")[: alerting.MOST_NOTE]
    alerting.acknowledge(found, user=request.user, note=note)
    messages.success(request, "The alert is yours. It ends by itself once the numbers are well again.")
    return redirect("alert", pk)


@viewer_required
@require_GET
def banner(request, public_id):
    """The part of every page of a run that says what fires."""
    return render(request, "training_bridge/_run_banner.html", alerts.banner(_run(request, public_id)))


@admin_required
@require_POST
def rule(request, public_id, sign):
    """Change how one sign of a run is judged."""
    if sign not in SIGNS:
        raise Http404("no such sign")
    run = _run(request, public_id, Role.ADMIN)
    changed = alert_rules.change_rule(run, sign, alert_rules.read_rule(request.POST), user=request.user)
    title = SIGNS[sign].title
    messages.success(request, f"{title}: the rule is saved." if changed else f"{title}: nothing was changed.")
    return redirect("run-alerts", run.public_id)


@admin_required
@require_POST
def test_webhook(request, public_id):
    """A signed message about nothing, and what its receiver answered."""
    run = _run(request, public_id, Role.ADMIN)
    id, is_sent, words = alert_calls.send_test(run, by=request.user.username)
    say = messages.success if is_sent else messages.warning
    say(request, f"The test {'arrived' if is_sent else 'did not arrive'}: {words} ({id}).")
    return redirect("run-alerts", run.public_id)


@admin_required
@require_POST
def new_secret(request, public_id):
    """Another signing secret; what is signed with the old one is refused by whoever checks."""
    run = _run(request, public_id, Role.ADMIN)
    people.new_webhook_secret(run, user=request.user)
    messages.success(request, "The webhook has a new secret. Give it to its receiver.")
    return redirect("run-alerts", run.public_id)
