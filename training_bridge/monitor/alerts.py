"""Alerts as pages show them: of one run, of all runs of one's teams, one with its history, and marks on charts."""

from collections.abc import Collection
from urllib.parse import urlencode

from django.db.models import Count, Q, QuerySet
from django.urls import reverse

from grading.models import Run
from training_bridge.models import Alert
from training_bridge.models_alerts import OPEN_STATES
from training_bridge.monitor.alert_rules import rules_of
from training_bridge.monitor.alert_signs import NOW, SIGNS, Rule
from training_bridge.monitor.alert_words import UNITS, number

PAGE = 50
ENDED_SHOWN = 5  # of the monitor's panel
MOST_MARKS = 200
NAMED = 3  # in a banner; the rest is counted
FIRING, ACKNOWLEDGED, RESOLVED = Alert.State.FIRING, Alert.State.ACKNOWLEDGED, Alert.State.RESOLVED
STATES = {"open": OPEN_STATES, "firing": (FIRING,), "resolved": (RESOLVED,), "all": tuple(Alert.State.values)}


def shown(alert: Alert) -> dict:
    """One alert in words. `groups_url`: the groups that made it, where they can be filtered."""
    sign = SIGNS.get(alert.sign)
    return {
        "pk": alert.pk,
        "run": alert.run,
        "title": sign.title if sign else alert.sign,
        "words": alert.words,
        "detail": sign.why if sign else "",
        "state": alert.state,
        "is_firing": alert.state == FIRING,
        "is_done": alert.state == RESOLVED,
        "is_danger": alert.is_danger,
        "step": alert.step,
        "at": alert.fired_at,
        "ended_at": alert.ended_at,
        "value": number(sign.unit, alert.value) if sign else f"{alert.value:g}",
        "worst": number(sign.unit, alert.worst) if sign else f"{alert.worst:g}",
        "threshold": number(sign.unit, alert.threshold) if sign else f"{alert.threshold:g}",
        "n": alert.n,
        "url": reverse("alert", args=[alert.pk]),
        "groups_url": _groups_url(alert),
        "anchors_url": _anchors_url(alert),
    }


def _anchors_url(alert: Alert) -> str:
    is_about_them = alert.sign in SIGNS and SIGNS[alert.sign].is_about_anchors
    return f"{reverse('drift')}?{urlencode({'run': alert.run.public_id})}" if is_about_them else ""


def _groups_url(alert: Alert) -> str:
    sign = SIGNS.get(alert.sign)
    if sign is None or alert.step is None or sign.is_about_anchors:
        return ""
    first = max(0, alert.step - sign.rule.window + 1)
    asked = {"run": alert.run.public_id, "step": f"{first}-{alert.step}"}
    return f"{reverse('groups')}?{urlencode(asked | ({'regime': sign.regime} if sign.regime else {}))}"


def panel(run: Run) -> dict:
    """What the monitor shows: the open ones, the gravest first, and the last that ended."""
    alerts = Alert.objects.filter(run=run).select_related("run")
    is_open = sorted(alerts.filter(state__in=OPEN_STATES), key=lambda a: (a.state != FIRING, not a.is_danger, -a.pk))
    ended = alerts.filter(state=RESOLVED).order_by("-pk")[:ENDED_SHOWN]
    firing = sum(alert.state == FIRING for alert in is_open)
    return {"alerts": [shown(alert) for alert in (*is_open, *ended)], "open_alerts": firing}


def firing_counts(runs: Collection[Run]) -> dict[int, dict[str, int]]:
    """Run pk -> how many of its alerts fire, and how many somebody has acknowledged."""
    rows = Alert.objects.filter(run__in=runs, state__in=OPEN_STATES).order_by().values("run")
    named = {name: Count("pk", filter=Q(state=name)) for name in (FIRING, ACKNOWLEDGED)}
    return {row["run"]: row for row in rows.annotate(**named)}


def listed(alerts: QuerySet, *, state: str, sign: str, run: str) -> QuerySet:
    """The list behind a page's filters, the newest first. What is no filter filters nothing."""
    alerts = alerts.filter(state__in=STATES.get(state, OPEN_STATES))
    alerts = alerts.filter(sign=sign) if sign in SIGNS else alerts
    return (alerts.filter(run__public_id=run) if run else alerts).select_related("run__team").order_by("-pk")


def banner(run: Run) -> dict:
    """What every page of a run says: what fires now, and whether somebody paused it."""
    firing = list(Alert.objects.filter(run=run, state=FIRING).select_related("run").order_by("-is_danger", "-pk"))
    stream = getattr(run, "stream", None)
    return {
        "run": run,
        "firing": [shown(alert) for alert in firing[:NAMED]],
        "more": max(0, len(firing) - NAMED),
        "is_danger": any(alert.is_danger for alert in firing),
        "paused_because": stream.mode_reason if run.paused and stream else "",
    }


def history(alert: Alert) -> dict:
    """One alert: its moves, and each try to tell the webhook."""
    events = alert.events.select_related("message").prefetch_related("message__calls")
    rows = [{"event": event, "message": getattr(event, "message", None)} for event in events]
    return {"alert": shown(alert), "events": rows}


def rule_rows(run: Run) -> list[dict]:
    """Every sign with the run's rule and the default."""
    rules = rules_of([run])[run.pk]
    return [
        {
            "sign": sign,
            "rule": rules[key],
            "unit": UNITS[sign.unit],
            "counted": sign.counted[0],
            "has_window": sign.kind != NOW,
            "default": default_words(sign.rule, has_window=sign.kind != NOW),
            "is_default": rules[key] == sign.rule,
        }
        for key, sign in SIGNS.items()
    ]


def default_words(rule: Rule, *, has_window: bool) -> str:
    return f"{rule.threshold:g}" + (f" over {rule.window}, of {rule.least}" if has_window else "")


def marks(run: Run, first: int = 0) -> list[dict]:
    """Where alerts fired, for the charts: the newest ones, in the order of their steps."""
    fired = Alert.objects.filter(run=run, step__gte=first).order_by("-pk")[:MOST_MARKS]
    found = [
        {
            "step": alert.step,
            "rule": alert.sign,
            "state": alert.state,
            "title": SIGNS[alert.sign].title,
            "panel": SIGNS[alert.sign].panel,
            "is_danger": alert.is_danger,
            "until": alert.ended_step,
            "url": reverse("alert", args=[alert.pk]),
        }
        for alert in fired
        if alert.sign in SIGNS
    ]
    return sorted(found, key=lambda mark: mark["step"])


def count_for(user) -> int:
    """How many alerts fire in one's teams, for the head of every page."""
    return Alert.objects.visible_to(user).filter(state=FIRING).count()
