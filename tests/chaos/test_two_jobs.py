"""Two jobs report at once while somebody watches both: no point lost, none twice, the server's memory flat."""

import threading
import time

import httpx
from django.test import Client

from tests.chaos.counts import reached, times
from tests.conftest import wait_for
from tests.factories import make_run, make_token, make_user
from training_bridge.client import GagarClient
from training_bridge.models import MetricPoint, MetricSeries
from training_bridge.monitor import curves

NAMES = ("pass_rate", "turns", "tokens", "pg_loss", "entropy", "kl")
STEPS_A_SECOND = 20
MOST_GROWTH_MB = 40  # of connections and caches that fill once; a leak of a point's row would be more in ten minutes


class Watcher(threading.Thread):
    """A browser as the server sees it: the page, its numbers, then what changed since."""

    def __init__(self, url: str, user, runs):
        super().__init__(daemon=True)
        client = Client()
        client.force_login(user)
        self.http = httpx.Client(base_url=url, cookies={"sessionid": client.cookies["sessionid"].value}, timeout=60)
        self.runs, self.seen, self.is_done = [run.public_id for run in runs], {}, threading.Event()
        self.refused = []

    def run(self):
        cursors = {}
        while not self.is_done.wait(0.3):
            for run in self.runs:
                asked = {"after": cursors[run]} if run in cursors else {}
                answer = self.http.get(f"/runs/{run}/series.json", params={"name": "entropy", **asked})
                if answer.status_code != 200:
                    self.refused.append(answer.status_code)
                    continue
                told = answer.json()
                cursors[run] = told["cursor"]
                for grid, _ in told["series"].values():
                    self.seen.setdefault(run, set()).update(told["grids"][grid])
                self.http.get(f"/runs/{run}/").raise_for_status()


def report(url: str, run, token: str, seconds: float, told: dict) -> None:
    step, until = 0, time.monotonic() + seconds
    with GagarClient(url, run.public_id, token) as gagar:
        while time.monotonic() < until:
            gagar.log(step, {name: step + n / 10 for n, name in enumerate(NAMES)})
            step += 1
            time.sleep(1 / STEPS_A_SECOND)
    told[run.pk] = step


def test_two_jobs_report_at_once_and_nothing_is_lost(site):
    seconds, told, memory_mb = times(4, 600), {}, []
    other = make_run(team=site.run.team, method="outcome", policy="auto")
    tokens = {site.run: site.token, other: make_token(run=other)[1]}
    watcher = Watcher(site.wire.url, make_user(role="viewer", team=site.run.team), list(tokens))
    watcher.start()
    jobs = [
        threading.Thread(target=report, args=(site.wire.url, run, token, seconds, told), daemon=True)
        for run, token in tokens.items()
    ]
    for job in jobs:
        job.start()
    while any(job.is_alive() for job in jobs):
        time.sleep(1)
        memory_mb.append(site.web.rss_mb)
    wait_for(lambda: MetricPoint.objects.count() == len(NAMES) * sum(told.values()))
    wait_for(lambda: all(len(watcher.seen.get(run.public_id, ())) == told[run.pk] for run in tokens))
    watcher.is_done.set()
    watcher.join(30)
    for run in tokens:
        assert set(MetricSeries.objects.filter(run=run).values_list("points", flat=True)) == {told[run.pk]}
        found, _ = curves.read(run, NAMES, most=10**6)
        for n, name in enumerate(NAMES):
            steps_N, values_N = found[name]
            if len(steps_N) == told[run.pk]:  # not thinned: a short form
                assert values_N.tolist() == [step + n / 10 for step in range(told[run.pk])]
    grown_mb = memory_mb[-1] - memory_mb[len(memory_mb) // 4]
    assert watcher.refused == [] and grown_mb < MOST_GROWTH_MB
    points = len(NAMES) * sum(told.values())
    reached("two jobs", seconds=seconds, points=points, lost=0, doubled=0, grown_mb=round(grown_mb, 1))
