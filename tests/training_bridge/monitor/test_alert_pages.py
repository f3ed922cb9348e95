"""Alerts as people meet them: lists, one alert, the banner, rules, marks, and the webhook."""

import base64
import hmac
import json
import threading
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from django.urls import reverse

from grading import clock
from grading.review import webhook
from tests.factories import make_run, make_team, make_user
from tests.training_bridge.monitor.steps import Steps
from training_bridge.models import Alert, AlertCall, AlertMessage
from training_bridge.monitor import alert_calls, alerting

pytestmark = pytest.mark.django_db


def ill_run(**fields):
    """The cap binds in every group: one alert."""
    run = make_run(**fields)
    Steps(run, groups=2, size=2).add(6, bounded=1.0)
    alerting.watch()
    return run


@pytest.fixture
def reviewer(client):
    user = make_user(username="rita", role="reviewer", team=make_team())
    client.force_login(user)
    user.team = user.memberships.get().team
    return user


def text(client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, path
    return answer.content.decode()


def test_an_alert_is_met_on_every_page_and_acknowledged_with_a_note(client, reviewer):
    run = ill_run(team=reviewer.team)
    alert = Alert.objects.get()
    banner = text(client, reverse("run-banner", args=[run.public_id]))
    assert "The cap on lambda binds often" in banner and f'data-notice="alert-{alert.pk}"' in banner
    page = text(client, reverse("monitor", args=[run.public_id]))
    assert "1 firing" in page and reverse("run-banner", args=[run.public_id]) in page
    assert "1 firing" in text(client, "/runs/") and "1 alert" in text(client, "/runs/")
    assert "100 % over 10 steps (76 to 100 %, n = 12 groups)" in text(client, reverse("alerts"))
    assert "None is resolved" in text(client, reverse("alerts") + "?state=resolved")
    assert client.post(reverse("alert-acknowledge", args=[alert.pk]), {"note": "a new rubric"}).status_code == 302
    page = text(client, reverse("alert", args=[alert.pk]))
    assert "a new rubric" in page and "rita" in page and "acknowledged" in page
    assert client.post(reverse("alert-acknowledge", args=[alert.pk])).status_code == 409
    assert "data-notice" not in text(client, reverse("run-banner", args=[run.public_id]))
    assert "1 known" in text(client, "/runs/")


def test_marks_of_the_charts_come_with_the_series(client, reviewer):
    run = ill_run(team=reviewer.team)
    said = client.get(reverse("run-series", args=[run.public_id])).json()["marks"]
    assert [(mark["step"], mark["rule"], mark["state"], mark["panel"]) for mark in said] == [
        (4, "cap_share", "firing", "regimes")
    ]
    assert client.get(reverse("run-series", args=[run.public_id]) + "?from=5").json()["marks"] == []


def test_another_teams_alerts_are_not_there(client, reviewer):
    run = ill_run()
    alert = Alert.objects.get()
    assert run.name not in text(client, reverse("alerts"))
    for name in ("run-alerts", "run-banner"):
        assert client.get(reverse(name, args=[run.public_id])).status_code == 404
    assert client.get(reverse("alert", args=[alert.pk])).status_code == 404
    assert client.post(reverse("alert-acknowledge", args=[alert.pk])).status_code == 404
    client.force_login(make_user(role="viewer", team=run.team))
    assert client.get(reverse("alert", args=[alert.pk])).status_code == 200
    assert client.post(reverse("alert-acknowledge", args=[alert.pk])).status_code == 403


def test_only_an_admin_edits_rules_and_sees_the_secret(client, reviewer):
    run = ill_run(team=reviewer.team, webhook_url="http://hooks.example/")
    path = reverse("alert-rule", args=[run.public_id, "cap_share"])
    rule = {"is_on": "1", "threshold": "0.9", "window": "5", "least": "4"}
    assert client.post(path, rule).status_code == 403
    assert "whsec_" not in text(client, reverse("run-alerts", args=[run.public_id]))
    client.force_login(make_user(username="ada", role="admin", team=run.team))
    assert client.post(path, rule).status_code == 302
    assert client.post(path, rule | {"window": "a week"}).status_code == 400
    assert client.post(reverse("alert-rule", args=[run.public_id, "nothing"]), rule).status_code == 404
    page = text(client, reverse("run-alerts", args=[run.public_id]))
    assert 'value="0.9"' in page and "changed" in page
    secret = webhook.secret_of(run)
    assert secret in page
    client.post(reverse("webhook-secret", args=[run.public_id]))
    run.refresh_from_db()
    assert webhook.secret_of(run) != secret
    settings = text(client, reverse("run-settings", args=[run.public_id]))
    assert "binds often, threshold: 0.75 → 0.9" in settings and "ada" in settings


# ---- the webhook ----


class Receiver:
    """A webhook's host: keeps headers and bodies, answers with the next of `statuses`, then 204."""

    def __init__(self):
        self.heard, self.statuses = [], []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                owner.heard.append((self.headers, self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(owner.statuses.pop(0) if owner.statuses else 204)
                self.end_headers()

            def log_message(self, *args):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()


@pytest.fixture
def receiver(settings):
    receiver = Receiver()
    settings.GAGAR_WEBHOOK_HOSTS = [receiver.host]
    yield receiver
    receiver.http.shutdown()
    receiver.http.server_close()


def wait_out(message: AlertMessage) -> None:
    AlertMessage.objects.filter(pk=message.pk).update(due_at=clock.now() - timedelta(seconds=1))


def assert_signed(run, headers, body: bytes) -> None:
    """As any receiver of Standard Webhooks checks it, from the secret that the page shows."""
    key = base64.b64decode(webhook.secret_of(run).removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
    assert hmac.compare_digest(headers["webhook-signature"], expected)
    assert abs(int(headers["webhook-timestamp"]) - clock.now().timestamp()) < 60


def test_a_webhook_hears_of_an_alert_signed_and_can_check_it(receiver):
    run = ill_run(webhook_url=f"http://{receiver.host}/hook")
    assert alert_calls.send_due() == 1 and alert_calls.send_due() == 0
    [(headers, body)] = receiver.heard
    said = json.loads(body)
    assert (said["type"], said["sign"], said["state"], said["step"]) == ("alert", "cap_share", "firing", 4)
    assert_signed(run, headers, body)


def test_a_test_is_sent_at_once_and_signed_and_its_answer_is_shown(receiver, client):
    run = make_run(webhook_url=f"http://{receiver.host}/hook")
    client.force_login(make_user(username="ada", role="admin", team=run.team))
    assert "Send a test" in text(client, reverse("run-alerts", args=[run.public_id]))
    receiver.statuses = [204, 500]
    address = reverse("webhook-test", args=[run.public_id])
    page = client.post(address, follow=True).content.decode()
    [(headers, body)] = receiver.heard
    said = json.loads(body)
    assert (said["type"], said["run"], said["by"]) == ("test", run.public_id, "ada")
    assert_signed(run, headers, body)
    assert f"The test arrived: answered 204 ({headers['webhook-id']})." in page
    assert "The test did not arrive: answered 500" in client.post(address, follow=True).content.decode()
    assert not AlertMessage.objects.exists(), "a test is no alert"


def test_a_test_goes_nowhere_without_a_webhook_or_to_a_host_that_is_not_allowed(client, settings):
    settings.GAGAR_WEBHOOK_HOSTS = []
    run = make_run()
    client.force_login(make_user(role="admin", team=run.team))
    address = reverse("webhook-test", args=[run.public_id])
    assert client.post(address).status_code == 409
    type(run).objects.filter(pk=run.pk).update(webhook_url="http://hooks.example/")
    assert "not one that the operator allows" in client.post(address, follow=True).content.decode()


def test_a_webhook_that_fails_is_tried_again_with_growing_pauses_and_every_try_is_kept(receiver, client):
    receiver.statuses = [500, 302]
    run = ill_run(webhook_url=f"http://{receiver.host}/hook")
    message = AlertMessage.objects.get()
    assert alert_calls.send_due() == 0 and alert_calls.send_due() == 0
    assert len(receiver.heard) == 1, "the pause is not over"
    wait_out(message)
    alert_calls.send_due()
    wait_out(message)
    assert alert_calls.send_due() == 1
    assert list(AlertCall.objects.values_list("words", "is_sent")) == [
        ("answered 500", False), ("answered 302", False), ("answered 204", True),
    ]  # fmt: skip
    assert len({headers["webhook-id"] for headers, _ in receiver.heard}) == 1, "the receiver knows a repetition"
    pauses = [alert_calls.pause_s(n) for n in range(1, 9)]
    assert pauses == sorted(pauses) and pauses[0] == 5 and pauses[-1] == 600
    client.force_login(make_user(role="viewer", team=run.team))
    assert "answered 302" in text(client, reverse("alert", args=[Alert.objects.get().pk]))


def test_a_webhook_that_never_answers_is_given_up_and_later_messages_keep_their_order(settings):
    settings.GAGAR_WEBHOOK_HOSTS = ["127.0.0.1:9"]
    ill_run(webhook_url="http://127.0.0.1:9/")
    first = AlertMessage.objects.get()
    alerting.acknowledge(Alert.objects.get(), user=make_user(), note="")
    for _ in range(alert_calls.TRIES):
        wait_out(first)
        alert_calls.send_due()
    first.refresh_from_db()
    assert first.state == "given_up" and AlertCall.objects.count() == alert_calls.TRIES
    assert "ConnectError" in AlertCall.objects.first().words
    second = AlertMessage.objects.exclude(pk=first.pk).get()
    assert second.tries == 0
    alert_calls.send_due()
    second.refresh_from_db()
    assert second.tries == 1
