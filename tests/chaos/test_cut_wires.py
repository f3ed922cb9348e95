"""R2, R3, R4, R10: wires cut, jobs and servers killed, acknowledgements lost, jobs that stand still."""

import os
import signal
import time
from random import Random

import pytest

from tests.chaos.counts import reached, times
from tests.chaos.site import check_once
from tests.chaos.trainer import load
from tests.conftest import wait_for
from training_bridge.models import JobCursor

pytestmark = [pytest.mark.alone, pytest.mark.timeout(3600)]
ACKS = ("received", "durable", "receipt", "noted")
HELD_S = 2.0  # the longest wait for one more row


def test_r2_a_job_cut_off_vanished_and_killed_at_random_trains_on_every_group_once(site):
    steps, groups, cuts = times(10, 100), times(6, 20), times(9, 200)
    draw, done = Random(2), {"rst": 0, "vanish": 0, "kill": 0, "rollback": 0}
    job = site.train(steps=steps, groups=groups)
    for n in range(cuts):
        due = n * steps * 9 // (cuts * 10)  # spread over the whole training, not over the steps rolled out again
        wait_for(lambda due=due: load(site.checkpoint)["step"] >= due or not job.alive, within_s=600)  # noqa: B023
        if not site.wire.wait_for("advantages", draw.randint(1, groups), unless=lambda: not job.alive):  # noqa: B023
            break
        kind = ("rst", "vanish", "kill")[n % 3]
        if kind == "kill":
            job.kill()
            older = site.checkpoint.with_suffix(".older")
            if done["kill"] % 3 == 2 and older.exists():  # the operator goes back one checkpoint further
                os.replace(older, site.checkpoint)
                done["rollback"] += 1
            site.wire.cut()
            job = site.train(steps=steps, groups=groups)
        else:
            site.wire.cut() if kind == "rst" else site.wire.vanish()
        done[kind] += 1
    job.ended(600)
    found = check_once(site, steps=steps, groups=groups)
    reached("R2", messages=steps * groups, **done, **found)
    assert sum(done.values()) >= cuts


@pytest.mark.parametrize("moment", ["before it sent", "before it heard the answer"])
def test_r3_a_server_killed_between_commit_and_answer_loses_nothing(site, moment):
    kills, groups = times(3, 100), 4
    steps = 3 * kills + 2  # more than it takes: the job ends by itself
    job = site.train(steps=steps, groups=groups)
    done = 0
    for _ in range(kills):
        site.wire.wait_for("advantages", 1, unless=lambda: not job.alive)
        if not job.alive:
            break
        if moment == "before it sent":
            site.wire.hold("down")
            before = site.head[1]
            # No new row: the job waits for one that was stored before we looked, and is held on the wire as well.
            enough = time.monotonic() + HELD_S
            wait_for(lambda: site.head[1] > before or time.monotonic() > enough, every_s=0.01)  # noqa: B023
        else:
            site.wire.hold("up")
            site.wire.wait_for("advantages", 1, unless=lambda: not job.alive)
        site.web.kill()
        site.wire.cut()
        site.wire.release()
        site.serve()
        done += 1
    job.ended(600)
    reached(f"R3 {moment}", kills=done, **check_once(site, steps=steps, groups=groups))
    assert done == kills


def test_r4_one_acknowledgement_in_ten_is_lost_either_way_and_redelivery_ends(site):
    steps, groups = times(8, 100), times(6, 20)
    draw = Random(4)
    site.checkpoint.with_suffix(".stay").touch()
    site.wire.fault = lambda way, kind: "lose" if kind in ACKS and draw.random() < 0.1 else "pass"
    job = site.train(steps=steps, groups=groups)
    wait_for(lambda: "\ndone\n" in job.said or not job.alive, within_s=1800, every_s=0.2)
    site.wire.fault = lambda way, kind: "pass"
    numbered = steps * groups + steps  # a receipt a group and a metric a step
    wait_for(lambda: JobCursor.objects.get(life__run=site.run).noted >= numbered or not job.alive, within_s=240)
    assert (JobCursor.objects.get(life__run=site.run).noted, job.alive) == (numbered, True), job.said[-4000:]
    sent = {kind: site.wire.seen[kind] for kind in ("receipt", "metrics", "advantages")}
    welcomes = site.wire.seen["welcome"]
    site.wire.cut()
    wait_for(lambda: site.wire.seen["welcome"] > welcomes and site.connected())
    site.checkpoint.with_suffix(".stay").unlink()
    job.ended()
    assert sent == {kind: site.wire.seen[kind] for kind in sent}, "what both sides know is not said again"
    assert sum(site.wire.lost.values())
    found = check_once(site, steps=steps, groups=groups)
    reached("R4", messages=steps * groups, lost_acks=sum(site.wire.lost.values()), **found)


def test_r10_jobs_that_stand_still_until_their_sockets_are_closed_come_back_and_lose_nothing(sites):
    many, steps, groups = times(2, 10), times(6, 12), 3
    stood = [sites(ping_s=times(1, 20))]
    stood += [sites(ping_s=stood[0].ping_s) for _ in range(many - 1)]
    jobs = [site.train(steps=steps, groups=groups) for site in stood]
    for site, job in zip(stood, jobs, strict=True):
        if site.wire.seen["advantages"] == 0:
            site.wire.wait_for("advantages", 1)
        wait_for(site.connected)
        job.signal(signal.SIGSTOP)
    for site in stood:  # nobody answers its pings: the server gives it up
        wait_for(lambda site=site: not site.connected(), within_s=180)
    for job in jobs:
        job.signal(signal.SIGCONT)
    totals = {"lost": 0, "doubled": 0}
    for site, job in zip(stood, jobs, strict=True):
        job.ended(300)
        found = check_once(site, steps=steps, groups=groups)
        totals = {name: totals[name] + found[name] for name in totals}
    reached("R10", jobs=many, **totals)
