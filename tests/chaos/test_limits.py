"""R5, R9, R12: a reader that stalls, a verdict of megabytes, and Redis gone."""

import shutil
import signal
import subprocess
import time
from dataclasses import replace
from random import Random

import pytest
from django.db import transaction

from grading.grader import gather, verdicts
from grading.grader.parse import check
from grading.review import decisions
from grading.scoring.criteria import CRITERIA
from grading.states import DecisionKind, GroupState
from tests.chaos.counts import reached, times
from tests.chaos.site import Forker, check_stream
from tests.chaos.trainer import roll_out
from tests.conftest import wait_for
from tests.factories import make_group, make_task
from tests.real_processes import free_port
from tests.verdicts import reply_for
from training_bridge import delivery
from training_bridge.client import GagarClient
from training_bridge.models import Delivery, Receipt
from training_bridge.protocol.messages import LIMIT_BYTES

pytestmark = [pytest.mark.alone, pytest.mark.timeout(3600)]


def round_trips(gagar, prefix: str, many: int) -> float:
    """Seconds from the submission of a group to its decision in the job's buffer: the 95th percentile."""
    took, draw = [], Random(5)
    gagar.task("t", statement="Return 2.")
    for n in range(many):
        group = roll_out(gagar, f"{prefix}{n}", n, draw)
        began = time.monotonic()
        [one] = gagar.freeze(n, [group], within_s=60).sets
        took.append(time.monotonic() - began)
        assert one.version == 1
    return sorted(took)[int(0.95 * len(took))]


def decide_many(site, life, many: int) -> None:
    """A backlog of decided groups that the job never heard of."""
    task = make_task(team=site.run.team)
    for start in range(0, many, 200):
        with transaction.atomic():
            for n in range(start, min(start + 200, many)):
                group = make_group(
                    run=site.run, life=life, task=task, state=GroupState.GRADED, outcomes="PF", key=f"backlog{n}"
                )
                decisions.decide(group, DecisionKind.FALLBACK, by="test", reason="test")
        delivery.deliver(site.run)


def test_r5_a_reader_that_stalls_costs_the_server_no_memory_and_nobody_else_time(sites, tmp_path):
    site, other = sites(), sites()
    other.wire.target = site.wire.target  # one server for both runs
    many, trips, stalled_s = times(400, 2000), times(10, 40), times(0, 300)
    job = site.listen(tmp_path / "listener.json")
    wait_for(site.connected)
    [life] = site.run.lives.all()
    with GagarClient(other.wire.url, other.run.public_id, other.token) as gagar:
        round_trips(gagar, "warm", 3)
        before, rss = round_trips(gagar, "before", trips), site.web.rss_mb
        site.wire.hold("down")
        stalled = time.monotonic()
        decide_many(site, life, many)
        during = round_trips(gagar, "during", trips)
        while time.monotonic() - stalled < stalled_s:
            during = max(during, round_trips(gagar, f"at{time.monotonic():.3f}-", trips))
        grown = site.web.rss_mb - rss
    site.wire.release()
    answered = Receipt.objects.filter(run=site.run)
    wait_for(lambda: answered.values("group").distinct().count() == many or not job.alive, within_s=300)
    (tmp_path / "listener.stay").unlink()
    job.ended()
    assert answered.count() == many == answered.values("group").distinct().count(), "each row arrived once"
    check_stream(site)
    assert grown < 50, f"{grown} MB"
    assert during < 3 * before + 1, (before, during)
    reached(
        "R5", backlog=many, stalled_s=stalled_s, server_grew_mb=round(grown, 1), p95_before_ms=round(1e3 * before),
        p95_during_ms=round(1e3 * during), lost=0, doubled=0,
    )  # fmt: skip


def test_r9_five_megabytes_of_rationale_travel_as_a_small_message(sites, tmp_path):
    site = sites(method="redistribute")
    many = times(3, 20)
    job = site.listen(tmp_path / "listener.json")
    wait_for(site.connected)
    [life] = site.run.lives.all()
    for n in range(many):
        group = make_group(run=site.run, life=life, state=GroupState.GRADED, outcomes="PPF", key=f"g{n}")
        verdict = long_verdict(group)
        decisions.decide(group, DecisionKind.VERDICT, by="test", verdict=verdict)
    delivery.deliver(site.run)
    rows = Delivery.objects.filter(stream__run=site.run)
    wait_for(lambda: rows.exclude(receipt="").count() == many or not job.alive)
    (tmp_path / "listener.stay").unlink()
    job.ended()
    largest = max(len(text.encode()) for text in rows.values_list("text", flat=True))
    assert rows.filter(regime="exact", train=True).count() == many and largest < LIMIT_BYTES
    assert "1009" not in job.said and "problem" not in job.said
    reached("R9", verdicts=many, largest_message_bytes=largest)


def long_verdict(group):
    """A valid one that argues for 5 MiB."""
    reply, material = reply_for(group, {"A": 5, "B": 4}), gather.material_of(group)
    reasons = dict.fromkeys(CRITERIA, "because " * 65_536)  # half a MiB for each of ten scores
    reply = replace(reply, candidates=tuple(replace(one, reasons=reasons) for one in reply.candidates))
    return verdicts.store(group, reply, check(reply, material, group.run.rubric.rubric), material, grader="scripted")


class Redis:
    """A server of our own on a free port."""

    def __init__(self, folder):
        self.port, self.folder = free_port(), folder
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.start()

    def start(self) -> None:
        said = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self.process = subprocess.Popen(
            ["redis-server", *said, "--dir", str(self.folder)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        ping = ["redis-cli", "-p", str(self.port), "ping"]
        wait_for(lambda: subprocess.run(ping, capture_output=True, check=False).stdout == b"PONG\n")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def hang(self) -> None:
        """Connections are taken and none is answered."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)


@pytest.fixture
def redis(tmp_path):
    if not shutil.which("redis-server") or not shutil.which("redis-cli"):
        pytest.skip("needs redis-server and redis-cli")
    made = Redis(tmp_path)
    yield made
    made.stop()


@pytest.fixture
def on_redis(redis, forker, tmp_path):
    made = Forker(tmp_path, REDIS_URL=redis.url, CELERY_BROKER_URL="memory://")
    yield made
    made.stop()


def decide_one(site, life, key: str) -> float:
    """Seconds until the job has answered a decision of which no bell told its server."""
    began = time.monotonic()
    group = make_group(run=site.run, life=life, state=GroupState.GRADED, outcomes="PF", key=key)
    decisions.decide(group, DecisionKind.FALLBACK, by="test", reason="test")
    delivery.deliver(site.run)
    wait_for(lambda: Receipt.objects.filter(run=site.run, group__key=key).exists())
    return time.monotonic() - began


@pytest.mark.parametrize(("goes", "comes"), [("stop", "start"), ("hang", "go_on")])
def test_r12_delivery_goes_on_by_polling_while_redis_is_gone(redis, on_redis, sites, goes, comes):
    """The bells of this process ring elsewhere: rows stored here wait for the server's own look."""
    outages, away_s, took = times(1, 3), times(0, 60), []
    site = sites(forker=on_redis)
    job = site.listen(site.checkpoint)
    wait_for(site.connected)
    [life] = site.run.lives.all()
    for outage in range(outages):
        getattr(redis, goes)()
        until, n = time.monotonic() + away_s, 0
        while n < 3 or time.monotonic() < until:
            took.append(decide_one(site, life, f"g{outage}-{n}"))
            n += 1
        welcomes = site.wire.seen["welcome"]
        site.wire.cut()  # and a job that must come back meanwhile finds its stream
        wait_for(lambda welcomes=welcomes: site.wire.seen["welcome"] > welcomes)
        took.append(decide_one(site, life, f"g{outage}-back"))
        getattr(redis, comes)()
    site.checkpoint.with_suffix(".stay").unlink()
    job.ended()
    assert Receipt.objects.filter(run=site.run).count() == len(took)
    check_stream(site)
    assert max(took) < 5, f"{max(took):.1f} s"
    reached(f"R12 {goes}", outages=outages, rows_meanwhile=len(took), slowest_s=round(max(took), 2), lost=0, doubled=0)
