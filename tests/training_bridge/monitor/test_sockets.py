"""The sockets of pages, over the wire: they hint that something changed, and only to who may see it."""

import json

import pytest
from django.conf import settings
from django.test import Client
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from grading import wake
from tests.factories import make_run, make_team, make_user


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
