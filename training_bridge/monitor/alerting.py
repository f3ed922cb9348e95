"""The watch: every few seconds each run that lives is looked at, and its alerts fire, go on or end. From rows alone."""

import logging
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q

from grading import clock, wake
from grading.errors import Conflict
from grading.models import Life, RolloutGroup, Run
from grading.states import OPEN
from training_bridge.models import Alert, AlertDesk, AlertEvent, JobCursor, Payout
from training_bridge.models_alerts import OPEN_STATES
from training_bridge.monitor import alert_anchors, alert_calls
from training_bridge.monitor.alert_looks import Look, Seen, look, newest
from training_bridge.monitor.alert_moves import FIRE
from training_bridge.monitor.alert_rules import rules_of
from training_bridge.monitor.alert_signs import SIGNS, Rule
from training_bridge.monitor.alert_values import is_bad, is_worse
from training_bridge.monitor.standing import Standing, standings

log = logging.getLogger(__name__)
AT_ONCE = 100  # runs a look: those that waited longest
HEARD_WITHIN = timedelta(hours=2)
BY = "rule"
MOST_NOTE = 500


def watched(now: datetime):
    """Runs of which something may be said: heard lately, with open groups, or with an open alert."""
    here, since = OuterRef("pk"), now - HEARD_WITHIN
    heard = Exists(JobCursor.objects.filter(life__run=here, seen_at__gte=since))
    started = Exists(Life.objects.filter(run=here, started_at__gte=since))
    decided = Exists(Payout.objects.filter(run=here, decided_at__gte=since))
    undecided = Exists(RolloutGroup.objects.filter(run=here, state__in=OPEN))
    alerted = Exists(Alert.objects.filter(run=here, state__in=OPEN_STATES))
    runs = Run.objects.filter(heard | started | decided | undecided | alerted, kind=Run.Kind.LIVE)
    return runs.order_by(F("alert_desk__looked_at").asc(nulls_first=True), "pk")


def watch() -> int:
    """Look at every run that is watched. Returns how many alerts moved."""
    now = clock.now()
    runs = list(watched(now)[:AT_ONCE])
    AlertDesk.objects.bulk_create([AlertDesk(run=run) for run in runs], ignore_conflicts=True)
    desks = {desk.run_id: desk for desk in AlertDesk.objects.filter(run__in=runs)}
    alerts: dict[int, dict[str, Alert]] = {}
    for alert in Alert.objects.filter(run__in=runs, state__in=OPEN_STATES):
        alerts.setdefault(alert.run_id, {})[alert.sign] = alert
    rules, rounds, moved = rules_of(runs), alert_anchors.rounds_of(runs), 0
    for here in standings(runs):
        pk = here.run.pk
        try:
            done = look(here, desks[pk], rules[pk], alerts.get(pk, {}), rounds.get(pk))
            moved += _keep(here, desks[pk], done, rules[pk])
        except Exception:  # one run must not blind the others
            log.exception("alerts of run %s were not looked at", here.run.public_id)
    AlertDesk.objects.filter(run__in=runs).update(looked_at=now)
    return moved


def _keep(here: Standing, desk: AlertDesk, done: Look, rules: dict[str, Rule]) -> int:
    """Write what a look found, unless another watcher was faster. Returns how many alerts moved."""
    off = [key for key, rule in rules.items() if not rule.is_on]
    ending = Alert.objects.filter(run=here.run, state__in=OPEN_STATES)
    ending = ending if here.has_ended else ending.filter(Q(sign__in=off) | ~Q(sign__in=SIGNS))
    remembered = {"memory": done.memory, "looked_step": done.looked_step, "life": done.life}
    is_same = all(getattr(desk, name) == value for name, value in remembered.items())
    if is_same and not done.seen and not ending.exists():
        return 0
    with transaction.atomic():
        mine = AlertDesk.objects.filter(pk=desk.pk, version=desk.version)
        if not mine.update(version=F("version") + 1, **remembered):
            return 0
        moves = [one for one in done.seen if one.move]
        for one in moves:
            _fire(here, one) if one.move == FIRE else _resolve_sign(here, one)
        for one in newest(done.seen):
            _go_on(here.run, one)
        why = "the job ended" if here.has_ended else "its rule was switched off"
        ended = [_end(alert, here.now, by=BY, note=why, step=here.step) for alert in ending]
        if moves or ended:
            wake.pages(here.run.pk)
    return len(moves) + len(ended)


def _fire(here: Standing, seen: Seen) -> None:
    value = seen.found.value
    alert = Alert.objects.create(
        run=here.run, sign=seen.sign.key, is_danger=seen.sign.is_danger, step=seen.step, value=value, worst=value,
        n=seen.found.n, threshold=seen.rule.threshold, words=seen.words[:300], fired_at=here.now,
    )  # fmt: skip
    _note(alert, "", by=BY, note=seen.words, step=seen.step, at=here.now)


def _resolve_sign(here: Standing, seen: Seen) -> None:
    alert = Alert.objects.filter(run=here.run, sign=seen.sign.key, state__in=OPEN_STATES).first()
    if alert:
        alert.value = seen.found.value
        _end(alert, here.now, by=BY, note=seen.words, step=seen.step)


def _go_on(run: Run, seen: Seen) -> None:
    """The newest value of an alert that stays open, and its worst."""
    alert = Alert.objects.filter(run=run, sign=seen.sign.key, state__in=OPEN_STATES).first()
    words, value = seen.words, seen.found.value
    if not is_bad(seen.sign, seen.rule, value):
        words += "; within its bounds now, ends if it stays there"
    words = words[:300]
    if alert is None or alert.words == words:
        return
    worst = value if is_worse(seen.sign, value, alert.worst) else alert.worst
    Alert.objects.filter(pk=alert.pk).update(value=value, worst=worst, n=seen.found.n, words=words)


def _end(alert: Alert, at: datetime, *, by: str, note: str, step: int | None) -> AlertEvent | None:
    """Resolve an open alert; None where somebody was faster."""
    open_ones = Alert.objects.filter(pk=alert.pk, state=alert.state)
    resolved = Alert.State.RESOLVED
    if not open_ones.update(state=resolved, ended_at=at, ended_step=step, value=alert.value):
        return None
    old, alert.state = alert.state, resolved
    return _note(alert, old, by=by, note=note, step=step, at=at)


def _note(alert: Alert, old: str, *, by: str, note: str, step: int | None, at: datetime) -> AlertEvent:
    """One line of the history, and a message for the webhook where the run has one."""
    event = AlertEvent.objects.create(
        alert=alert, old=old, new=alert.state, by=by, note=note[:MOST_NOTE], value=alert.value, step=step, at=at
    )
    alert_calls.put(event)
    return event


@transaction.atomic
def acknowledge(alert: Alert, *, user, note: str) -> AlertEvent:
    """Somebody knows and says what they do about it. It still ends by itself."""
    moved = Alert.objects.filter(pk=alert.pk, state=Alert.State.FIRING).update(state=Alert.State.ACKNOWLEDGED)
    if not moved:
        alert.refresh_from_db()
        raise Conflict(f"the alert {SIGNS[alert.sign].title} is {alert.state} already: reload the page")
    alert.state = Alert.State.ACKNOWLEDGED
    wake.pages(alert.run_id)
    return _note(alert, Alert.State.FIRING, by=user.username, note=note, step=alert.step, at=clock.now())
