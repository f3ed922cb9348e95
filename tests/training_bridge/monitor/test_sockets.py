"""The sockets of pages, over the wire: they hint that something changed, and only to who may see it."""

import json

import pytest
from django.conf import settings
from django.test import Client
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from grading import wake
from grading.models import Run
from tests.factories import make_life, make_run, make_team, make_token, make_user
from training_bridge.models import JobCursor


def listen(server: str, path: str, user=None):
    """A browser's socket, signed in as `user`."""
    headers = {}
    if user:
        client = Client()
        client.force_login(user)
        headers["Cookie"] = f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"
    return connect(server.replace("http", "ws", 1) + path, origin=server, additional_headers=headers)


def heard(socket) -> dict:
    return json.loads(socket.recv(timeout=10))


@pytest.mark.parametrize("path", ["/ws/v1/runs/watched/watch", "/ws/v1/queue/watch"])
def test_a_page_hears_at_once_and_after_every_change(server, path):
    run = make_run(public_id="watched")
    with listen(server, path, make_user(role="viewer", team=run.team)) as socket:
        assert heard(socket) == {"type": "changed"}, "what happened before it listened"
        wake.ring(wake.pages_of(run.pk), "page.changed")
        assert heard(socket) == {"type": "changed"}


def test_the_queue_hears_of_imported_runs_too(server):
    run = make_run(kind=Run.Kind.IMPORTED)
    with listen(server, "/ws/v1/queue/watch", make_user(role="viewer", team=run.team)) as socket:
        assert heard(socket) == {"type": "changed"}, "what happened before it listened"
        wake.ring(wake.pages_of(run.pk), "page.changed")
        assert heard(socket) == {"type": "changed"}


def test_a_page_hears_that_a_job_came_and_that_it_went(server):
    run = make_run(public_id="watched")
    make_life(run=run)
    job = {"Authorization": f"Bearer {make_token(run=run)[1]}"}
    resume = {"type": "resume", "life": 1, "epoch": 0, "after_seq": 0, "digest": None, "estimator": {}}
    address = server.replace("http", "ws", 1) + "/ws/v1/runs/watched/advantages"
    with listen(server, "/ws/v1/runs/watched/watch", make_user(role="viewer", team=run.team)) as page:
        assert heard(page) == {"type": "changed"}
        with connect(address, subprotocols=["gagar.v1"], additional_headers=job) as socket:
            socket.send(json.dumps(resume))
            assert heard(socket)["type"] == "welcome" and heard(page) == {"type": "changed"}
            assert JobCursor.objects.get(life__run=run).connected
        assert heard(page) == {"type": "changed"}
        assert not JobCursor.objects.get(life__run=run).connected


def test_a_run_of_another_team_cannot_be_listened_to(server):
    run = make_run(public_id="watched")
    for user in (make_user(role="admin", team=make_team()), None):
        with listen(server, "/ws/v1/runs/watched/watch", user) as socket, pytest.raises(ConnectionClosed) as closed:
            heard(socket)
        assert closed.value.rcvd.code == 4404
    with listen(server, "/ws/v1/queue/watch", make_user(role="admin", team=make_team())) as socket:
        assert heard(socket) == {"type": "changed"}
        wake.ring(wake.pages_of(run.pk), "page.changed")
        with pytest.raises(TimeoutError):
            socket.recv(timeout=0.5)


def test_nobody_signed_in_hears_no_queue(server):
    with listen(server, "/ws/v1/queue/watch") as socket, pytest.raises(ConnectionClosed) as closed:
        heard(socket)
    assert closed.value.rcvd.code == 4404
