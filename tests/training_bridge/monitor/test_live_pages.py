"""R13: a page that refetches only when it is hinted shows what a fresh page shows, after every kind of event."""

import re
import threading
from random import Random

import pytest
from django.conf import settings
from django.test import Client
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from grading.errors import GradingError
from grading.models import GroupEvent, RolloutGroup
from grading.states import Method, Policy
from tests.conftest import wait_for
from tests.factories import make_user
from tests.training_bridge.test_any_order import STEPS, Nobody, World
from training_bridge import delivery, intake
from training_bridge.models import Delivery
from training_bridge.protocol import messages

TIMES = re.compile(
    r"<time[^>]*>[^<]*</time>"
    r"|data-[\w-]*(?:until|at|clock|due|deadline)[\w-]*=\"[^\"]*\"|\b\d+(?:\.\d+)? ?(?:s|min|h)\b"
    r"|csrfmiddlewaretoken\" value=\"\w+\"|hx-headers='[^']*'|heard (?:now|[^<]* ago)"
    r"|stroke-dasharray=\"[^\"]*\"|\b\d\d:\d\d\b"
)  # what changes while nothing happens
# What htmx takes out of a refetched page, see hx-select in the templates.
PARTS = re.compile(r'id="headline".*?</dl>|<div class="monitor-rest">.*?</main>|id="queue-rows".*?</main>', re.DOTALL)
TRIES = 6
# The clock itself; a grader's work as a whole, whose parts are here; and a death, after which the sweep gives the hint.
NOT_AN_EVENT = {"pass_time", "drain", "be_killed_while_delivering"}


class LivePage:
    """A browser's page: its parts as they were fetched after the newest hint."""

    def __init__(self, server: str, paths: list[str], socket: str, user):
        self.client, self.paths = Client(), paths
        self.client.force_login(user)
        cookie = f"{settings.SESSION_COOKIE_NAME}={self.client.cookies[settings.SESSION_COOKIE_NAME].value}"
        url = server.replace("http", "ws", 1) + socket
        self.socket = connect(url, origin=server, additional_headers={"Cookie": cookie})
        self.hints, self.seen = 0, ""
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()
        wait_for(lambda: self.seen)  # the first hint comes with the connection

    def fetch(self) -> str:
        pages = [self.client.get(path) for path in self.paths]
        assert [page.status_code for page in pages] == [200] * len(pages)
        texts = [page.content.decode() for page in pages]
        live = [text if text.startswith("{") else "\n".join(PARTS.findall(text)) for text in texts]
        assert all(live), "a page has the parts that it refetches"
        return "\n".join(TIMES.sub("", text) for text in live)

    def _listen(self) -> None:
        from django.db import connection

        try:
            while True:
                self.socket.recv()
                self.hints += 1
                self.seen = self.fetch()
        except ConnectionClosed:
            pass
        finally:
            connection.close()

    def close(self) -> None:
        self.socket.close()
        self.thread.join(10)


class Told(World):
    """The same world with what a job says on its socket."""

    def receipt(self):
        rows = list(Delivery.objects.filter(stream__run=self.run, kind="advantages").select_related("group__life"))
        if not rows:
            raise Nobody
        row = self.random.choice(rows)
        status = self.random.choice(["applied", "too_late", "superseded", "not_used", "expired"])
        said = {"life": row.group.life.n, "group": row.group.key, "version": row.version, "status": status, "step": 3}
        intake.note(intake.newest_life(self.run), [messages.Receipt(n=self.next_n(), **said)])

    def metrics(self):
        n = self.next_n()
        intake.note(intake.newest_life(self.run), [messages.Metrics(n=n, step=n, values={"entropy": 1.0 / n})])

    def job_ends(self):
        intake.end_life(self.run, intake.newest_life(self.run).n, why=self.random.choice(["", "KeyboardInterrupt"]))

    def next_n(self) -> int:
        return intake.cursor_of(intake.newest_life(self.run)).noted + 1


EVENTS = sorted({*STEPS, "receipt", "metrics", "job_ends"} - NOT_AN_EVENT)


@pytest.fixture
def world(server):
    made = Told(3)
    made.run.policy, made.run.method = Policy.MANUAL, Method.REDISTRIBUTE  # a person is waited for
    made.run.save()
    delivery.stream_of(made.run)
    for name in (*["declare"] * 6, *["roll"] * 4, "drain", "deliver"):
        getattr(made, name)()
    assert RolloutGroup.objects.filter(run=made.run, held=True).exists()
    return made


@pytest.mark.parametrize("where", ["monitor", "queue"])
def test_after_every_kind_of_event_a_hinted_page_shows_what_a_fresh_one_does(server, world, where):
    user = make_user(role="viewer", team=world.run.team)
    run = world.run.public_id
    paths = {"monitor": [f"/runs/{run}/", f"/runs/{run}/series.json"], "queue": ["/queue/"]}[where]
    socket = {"monitor": f"/ws/v1/runs/{run}/watch", "queue": "/ws/v1/queue/watch"}[where]
    page, stale = LivePage(server, paths, socket, user), []
    changed = set()
    try:
        for name in Random(1).sample(EVENTS, k=len(EVENTS)):
            for _ in range(TRIES):
                before, hints = page.fetch(), page.hints
                try:
                    getattr(world, name)()
                except (GradingError, Nobody):
                    world.roll()
                    continue
                fresh = page.fetch()
                if fresh != before:
                    changed.add(name)
                    try:
                        wait_for(lambda: page.hints > hints and page.seen == page.fetch(), within_s=20)  # noqa: B023
                    except AssertionError:
                        stale.append(name)
                        page.seen = fresh
                break
    finally:
        page.close()
    assert not stale, f"no hint after {stale}"
    assert len(changed) >= {"monitor": 5, "queue": 3}[where], changed
    assert GroupEvent.objects.exists() and RolloutGroup.objects.filter(run=world.run).exists()
