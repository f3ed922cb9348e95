"""Graders as processes of their own, killed, frozen and told to stop in the middle of calls to a real endpoint.

`GAGAR_CHAOS=4 pytest tests/test_killed_graders.py` runs four times as many groups and kills.
"""

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from tests.conftest import wait_for
from tests.model_scripts import good
from tests.model_server import ModelServer
from tests.real_processes import ROOT, Site

pytestmark = [pytest.mark.timeout(400), pytest.mark.alone]
TIMES = int(os.environ.get("GAGAR_CHAOS", "1"))
LEASE_S = 3
MAKE = """
import sys, django; django.setup()
from grading.states import GroupState, Policy
from tests.factories import make_group, make_run, make_team
name, many = sys.argv[1], int(sys.argv[2])
run = make_run(team=make_team(slug=name), public_id=name, policy=Policy.AUTO, grader="single_pass", kind="imported")
for n in range(many):
    make_group(run=run, state=GroupState.COMPLETE, outcomes="PPF", key=f"{name}-{n}", step=n)
"""


class GradingSite(Site):
    """A site whose graders ask a scripted endpoint."""

    def __init__(self, folder, model: ModelServer):
        super().__init__(folder)
        self.model = model
        self.env |= {
            "GAGAR_GRADER_URL": model.url, "GAGAR_GRADER_MODEL": "openai:scripted", "GAGAR_LEASE_S": str(LEASE_S),
            "GAGAR_GRADER_CONCURRENCY": "4", "DJANGO_SETTINGS_MODULE": "gagar_web.settings", "PYTHONPATH": str(ROOT),
        }  # fmt: skip

    def serve(self):
        server = self.manage("serve", "--concurrency", "1")
        server.wait_to_say("Gagar is at")
        return server

    def start_grader(self):
        """Beside the one that the server started: any number may run."""
        return self.start("manage.py", "grade")

    def make_groups(self, run: str, many: int) -> None:
        subprocess.run([sys.executable, "-c", MAKE, run, str(many)], cwd=ROOT, env=self.env, check=True, timeout=120)

    def graders(self) -> list[int]:
        """Processes that hold a claim."""
        held = "SELECT DISTINCT claimed_by FROM grading_rolloutgroup WHERE state = 'grading' AND claimed_by != ''"
        return [int(by.rpartition(":")[2]) for (by,) in self.rows(held)]

    def open_groups(self, run: str) -> list[tuple]:
        sql = "SELECT g.key, g.state FROM grading_rolloutgroup g JOIN grading_run r ON r.id = g.run_id"
        return self.rows(f"{sql} WHERE r.public_id = ? AND g.state NOT IN ('decided', 'delivered')", run)

    def gradings(self, run: str) -> dict[str, list[tuple]]:
        sql = "SELECT g.key, a.state, a.attempt, a.output_tokens FROM grading_grading a JOIN grading_rolloutgroup g"
        sql += " ON g.id = a.group_id JOIN grading_run r ON r.id = g.run_id WHERE r.public_id = ? ORDER BY a.id"
        found: dict[str, list[tuple]] = {}
        for key, *row in self.rows(sql, run):
            found.setdefault(key, []).append(tuple(row))
        return found

    def all_once(self, run: str) -> dict[str, list[tuple]]:
        """Every group of the run has one verdict and one decision, and its attempts are all there."""
        for table in ("verdict", "decision"):
            sql = "SELECT count(t.id) FROM grading_rolloutgroup g JOIN grading_run r ON r.id = g.run_id LEFT JOIN"
            sql += f" grading_{table} t ON t.group_id = g.id WHERE r.public_id = ? GROUP BY g.id"
            assert {n for (n,) in self.rows(sql, run)} == {1}, table
        return self.gradings(run)


@pytest.fixture(scope="module")
def model():
    with ModelServer(lambda asked: replace(good(asked), delay_s=0.4)) as server:
        yield server


@pytest.fixture(scope="module")
def site(tmp_path_factory, model):
    made = GradingSite(tmp_path_factory.mktemp("graders"), model).with_tables()
    made.server = made.serve()
    made.extra = [made.start_grader()]
    yield made
    made.stop()


def test_workers_killed_at_random_lose_no_group_and_write_no_verdict_twice(site):
    jobs, kills = 30 * TIMES, 6 * TIMES
    site.make_groups("killed", jobs)
    killed, draw = [], random.Random(7)
    while len(killed) < kills and site.open_groups("killed"):
        alive = [pid for pid in site.graders() if pid in site.running()]
        if alive:
            os.kill(draw.choice(alive), signal.SIGKILL)
            killed.append(alive)
            if all(one.process.poll() is not None for one in site.extra):
                site.extra.append(site.start_grader())
        time.sleep(draw.uniform(0.3, 1.2))
    assert len(killed) >= kills // 2, "a grader at work was killed again and again"
    wait_for(lambda: not site.open_groups("killed"), within_s=120)
    rows = site.all_once("killed")
    died = sum(row[0] == "died" for one in rows.values() for row in one)
    assert died, "some worker was killed in the middle of a grading"
    for attempts in rows.values():
        assert [state for state, *_ in attempts[:-1]] == ["died"] * (len(attempts) - 1)
        assert attempts[-1][0] in ("valid", "failed") and attempts[-1][1] == len(attempts)


def test_a_frozen_worker_wakes_up_to_a_refusal_and_its_spend_is_booked(site, model):
    model.play(lambda asked: replace(good(asked), delay_s=6))
    site.make_groups("frozen", 2 * TIMES)
    site.extra.append(site.start_grader())  # whoever froze is not alone
    wait_for(lambda: model.calls == 2 * TIMES, within_s=60)  # it waits for the model, and holds no lock
    frozen = site.graders()
    os.kill(frozen[0], signal.SIGSTOP)
    model.play("good")
    try:
        wait_for(lambda: not site.open_groups("frozen"), within_s=60)
    finally:
        os.kill(frozen[0], signal.SIGCONT)
    refused = "SELECT count(*) FROM grading_groupevent WHERE reason LIKE 'verdict refused%'"
    wait_for(lambda: site.value(refused), within_s=60)
    assert any(row[0] == "refused" for one in site.gradings("frozen").values() for row in one)
    site.all_once("frozen")


def test_a_worker_told_to_stop_ends_what_it_can_gives_back_the_rest_and_loses_nothing(site, model):
    hanging = []

    def script(asked):
        hanging.append(asked)
        return replace(good(asked), delay_s=60 if len(hanging) % 2 else 0.5)

    model.play(script)
    site.make_groups("stopped", 6)
    wait_for(site.graders, within_s=60)
    began = time.monotonic()
    for one in (*site.extra, site.server):
        one.signal(signal.SIGTERM)
    for one in site.extra:
        one.ended()
    assert site.server.ended() == 0, site.server.said
    assert time.monotonic() - began < 30 and site.running() == {}
    states = {state for _, state in site.open_groups("stopped")}
    assert states == {"complete"}, "nothing is claimed by nobody"
    assert not any(row[0] == "running" for one in site.gradings("stopped").values() for row in one)
    model.play("good")
    site.server = site.serve()
    wait_for(lambda: not site.open_groups("stopped"), within_s=60)
    for attempts in site.all_once("stopped").values():
        assert attempts[-1][:2] == ("valid", 1), "what was given back does not count as an attempt"
