"""Webhooks hear of alerts: one message an event, tried again with growing pauses, each attempt kept."""

import logging
import uuid
from datetime import timedelta

from django.db.models import F, Min

from grading import clock
from grading.errors import WrongState
from grading.models import Run
from grading.review import webhook
from training_bridge.models import AlertCall, AlertEvent, AlertMessage
from training_bridge.monitor.alert_signs import SIGNS

log = logging.getLogger(__name__)
TRIES = 8
FIRST_PAUSE_S = 5.0
LONGEST_PAUSE_S = 600.0
LEASE_S = 30.0  # a worker that dies in mid-call leaves the message to the next one
AT_ONCE = 20  # calls a round, one a run: a slow host delays only its own run


def put(event: AlertEvent) -> AlertMessage | None:
    """Queue what the webhook is to hear; None where the run has none."""
    run = event.alert.run
    return AlertMessage.objects.create(event=event, run=run, due_at=event.at) if run.webhook_url else None


def pause_s(tries: int) -> float:
    """Seconds to the next try, after so many."""
    return min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 3 ** (tries - 1))


def send_due() -> int:
    """Try what is due: of each run its oldest message, so that they arrive in order. Returns how many arrived."""
    waiting = AlertMessage.objects.filter(state=AlertMessage.State.WAITING)
    oldest = waiting.order_by().values("run").annotate(first=Min("pk")).values("first")
    due = waiting.filter(pk__in=oldest, due_at__lte=clock.now()).select_related("event__alert", "run")
    return sum(_try(message) for message in due.order_by("due_at")[:AT_ONCE])


def _try(message: AlertMessage) -> bool:
    now = clock.now()
    mine = AlertMessage.objects.filter(pk=message.pk, state=AlertMessage.State.WAITING, tries=message.tries)
    if not mine.update(tries=F("tries") + 1, due_at=now + timedelta(seconds=LEASE_S)):
        return False  # another worker took it
    is_sent, words = webhook.call(message.run, body_of(message.event), id=f"alert-{message.event_id}")
    AlertCall.objects.create(message=message, url=message.run.webhook_url, is_sent=is_sent, words=words[:300])
    tries, state = message.tries + 1, AlertMessage.State
    if is_sent:
        said = {"state": state.SENT}
    elif tries >= TRIES:
        said = {"state": state.GIVEN_UP}
        log.warning("the webhook of run %s never heard of alert event %s", message.run.public_id, message.event_id)
    else:
        said = {"due_at": clock.now() + timedelta(seconds=pause_s(tries))}
    AlertMessage.objects.filter(pk=message.pk, tries=tries).update(**said)
    return is_sent


def send_test(run: Run, *, by: str) -> tuple[str, bool, str]:
    """Call the webhook now, about nothing. Returns the message's id, whether it arrived, and the answer in words."""
    if not run.webhook_url:
        raise WrongState(f"run {run.public_id} has no webhook to test: set one in its settings first")
    id = f"test-{uuid.uuid4()}"
    said = {"type": "test", "run": run.public_id, "by": by, "at": clock.now().isoformat()}
    return id, *webhook.call(run, said, id=id)


def body_of(event: AlertEvent) -> dict:
    """What a webhook is sent."""
    alert = event.alert
    return {
        "type": "alert",
        "run": alert.run.public_id,
        "alert": alert.pk,
        "sign": alert.sign,
        "title": SIGNS[alert.sign].title if alert.sign in SIGNS else alert.sign,
        "state": event.new,
        "by": event.by,
        "note": event.note,
        "value": event.value,
        "threshold": alert.threshold,
        "step": event.step,
        "at": event.at.isoformat(),
    }
