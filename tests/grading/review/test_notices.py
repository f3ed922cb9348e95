"""A held group that nears its deadline is told once: on the page of the queue, and to the webhook of its run."""

import json
import threading
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from django.urls import reverse

from grading import clock
from grading.models import Notice, Role, RolloutGroup
from grading.review import notices, webhook
from tests.factories import make_run, make_user
from tests.verdicts import held_group

pytestmark = pytest.mark.django_db


class Listener:
    """A webhook's host: keeps what it was sent and answers with `status`."""

    def __init__(self):
        self.heard, self.status = [], 204
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                owner.heard.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(owner.status)
                self.send_header("Location", "http://127.0.0.1:9/elsewhere")
                self.end_headers()

            def log_message(self, *args):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()


@pytest.fixture
def listener(settings):
    listener = Listener()
    settings.GAGAR_WEBHOOK_HOSTS = [listener.host]
    yield listener
    listener.http.shutdown()
    listener.http.server_close()


def near_group(*, url: str = "", left_s: float = 60, total_s: float = 600, **fields) -> RolloutGroup:
    now = clock.now()
    run = fields.pop("run", None) or make_run(policy="manual", webhook_url=url)
    times = {"graded_at": now - timedelta(seconds=total_s - left_s), "review_by": now + timedelta(seconds=left_s)}
    return held_group(run=run, outcomes="PPF", hold_reason="policy manual", **times | fields)


def test_the_webhook_hears_of_all_near_groups_of_a_run_in_one_message_once(listener):
    first = near_group(url=f"http://{listener.host}/hook")
    second = near_group(run=first.run)
    near_group(run=first.run, left_s=599)  # far away
    assert notices.send_due() == 2 and notices.send_due() == 0
    [said] = listener.heard
    assert (said["type"], said["run"], said["count"]) == ("deadline_near", first.run.public_id, 2)
    assert [one["key"] for one in said["groups"]] == [first.key, second.key]
    notice = Notice.objects.get()
    assert (notice.is_sent, notice.groups, notice.words) == (True, 2, "answered 204")


def test_near_is_a_quarter_of_the_time_that_the_review_has_and_five_minutes_at_most():
    now = clock.now()
    for left, total, expected in ((24, 100, True), (26, 100, False), (299, 7200, True), (301, 7200, False)):
        assert notices.is_near(near_group(left_s=left, total_s=total), now) is expected, (left, total)
    assert not notices.is_near(held_group(outcomes="PF"), now)  # no deadline


@pytest.mark.parametrize("status", [302, 500])
def test_a_failure_is_kept_followed_nowhere_and_not_tried_again(listener, status):
    listener.status = status
    near_group(url=f"http://{listener.host}/hook")
    notices.send_due()
    notices.send_due()
    notice = Notice.objects.get()
    assert len(listener.heard) == 1 and not notice.is_sent and notice.words == f"answered {status}"


def test_a_host_that_is_not_there_stops_nothing(settings):
    settings.GAGAR_WEBHOOK_HOSTS = ["127.0.0.1:9"]
    near_group(url="http://127.0.0.1:9/")
    assert notices.send_due() == 1
    assert not Notice.objects.get().is_sent and "ConnectError" in Notice.objects.get().words


def test_only_hosts_that_the_operator_named_are_called(settings, listener):
    settings.GAGAR_WEBHOOK_HOSTS = []
    near_group(url=f"http://{listener.host}/hook")
    notices.send_due()
    assert listener.heard == [] and "not one that the operator allows" in Notice.objects.get().words


@pytest.mark.parametrize(
    "url",
    [
        "ftp://good/x",
        "good/x",
        "http://",
        "http://u:p@good/",
        "http://good:99999/",
        "http://evil/",
        "http://good.evil/",
    ],
)
def test_an_address_is_judged_before_it_is_saved(settings, client, url):
    settings.GAGAR_WEBHOOK_HOSTS = ["good", "other:8080"]
    assert webhook.why_not("https://good/hook") == "" and webhook.why_not("http://other:8080/") == ""
    assert webhook.why_not("http://other/") != "" and webhook.why_not(url) != ""
    run = make_run()
    client.force_login(make_user(role=Role.ADMIN, team=run.team))
    policy = {"policy": "manual", "hold_share": 0.1, "hold_budget": 4, "webhook_url": url}
    assert client.post(reverse("run-settings", args=[run.public_id]), policy).status_code == 400
    saved = policy | {"webhook_url": "https://good/hook"}
    assert client.post(reverse("run-settings", args=[run.public_id]), saved).status_code == 302
    run.refresh_from_db()
    assert run.webhook_url == "https://good/hook"


def test_who_may_decide_hears_of_groups_near_their_deadline_and_the_run_shows_what_failed(client, settings):
    group = near_group(url="http://nowhere/")
    notices.send_due()
    client.force_login(make_user(role=Role.REVIEWER, team=group.run.team))
    said = client.get(reverse("queue-near")).content.decode()
    assert "1 group near its deadline" in said and f'data-near="{group.pk}"' in said
    page = client.get(reverse("run-reviews", args=[group.run.public_id])).content.decode()
    assert "failed" in page and "not one that the operator allows" in page
    assert f'hx-get="{reverse("queue-near")}"' in page
    for person in (make_user(role=Role.REVIEWER), make_user(role=Role.VIEWER, team=group.run.team)):
        client.force_login(person)
        assert "data-near" not in client.get(reverse("queue-near")).content.decode()


def test_the_page_of_a_group_near_its_deadline_names_the_others_only(client):
    group, other = near_group(), near_group()
    client.force_login(make_user(role=Role.REVIEWER, team=group.run.team))
    address = f"{reverse('queue-near')}?but={group.pk}"
    assert f'hx-get="{address}"' in client.get(reverse("group", args=[group.pk])).content.decode()
    said = client.get(address).content.decode()
    assert f'data-near="{group.pk}"' not in said
    client.force_login(make_user(role=Role.REVIEWER, team=other.run.team))
    assert f'data-near="{other.pk}"' in client.get(address).content.decode()
    assert client.get(reverse("queue-near"), {"but": "x" * 40}).status_code == 200
