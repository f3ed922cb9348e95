"""The real client against the real server: what the job sees of its stream."""

import asyncio
import json
from urllib.parse import urlsplit

import pytest
import websockets

from grading.grader import job
from grading.models import RolloutGroup, RunEvent
from grading.review import decisions
from grading.states import GroupState, Policy
from tests.conftest import wait_for
from tests.factories import make_life, make_run, make_token, make_user
from tests.training_bridge.client.cable import Cable
from training_bridge import pausing
from training_bridge.client import GagarClient
from training_bridge.models import Delivery, JobCursor, MetricPoint, Receipt, Stream

pytestmark = pytest.mark.django_db(transaction=True)
PATCH = b"diff --git a/app.py b/app.py\n--- a/app.py\n+++ b/app.py\n@@ -1 +1 @@\n-return 1\n+return %d\n"


def roll_out(gagar, key: str = "g1", *, step: int = 1, outcomes: str = "PPFF"):
    gagar.task("t1", statement="Return 2.")
    group = gagar.declare(key, task="t1", step=step, group_size=len(outcomes))
    for place, letter in enumerate(outcomes):
        outcome = {"P": "passed", "F": "failed", "I": "infra_invalid"}[letter]
        events = [{"kind": "message", "text": f"attempt {place}"}, {"kind": "submit", "text": "done"}]
        group.submit(f"{key}-{place}", outcome=outcome, patch=PATCH % (place + 2), events=events)
    return group


def stored(key: str) -> RolloutGroup | None:
    return RolloutGroup.objects.filter(key=key).first()


def in_state(key: str, state: str):
    return lambda: (group := stored(key)) and group.state == state and group


def test_a_rollout_goes_out_and_its_advantages_come_back(server):
    run = make_run(policy=Policy.AUTO)
    _, token = make_token(run=run)
    with GagarClient(server, run.public_id, token) as gagar:
        group = roll_out(gagar)
        wait_for(lambda: (row := stored("g1")) and row.bodies_ready)
        job.drain()
        batch = gagar.freeze(1, [group], within_s=10)
        [one] = batch.sets
        assert (one.version, one.regime) == (1, "exact")
        assert sum(one.advantage.values()) == pytest.approx(0, abs=1e-12)
        gagar.applied(batch)
        with gagar.checkpoint() as cursor:
            json.dumps(cursor)
        gagar.log(1, {"pg_loss": 0.25})
        wait_for(lambda: Receipt.objects.filter(status="applied", version=1).exists())
        wait_for(lambda: MetricPoint.objects.filter(name="pg_loss", value=0.25).exists())
        wait_for(lambda: JobCursor.objects.filter(durable_seq=1).exists())
    assert gagar.problems == []


@pytest.mark.parametrize("body", [{"events": []}, {"events": lambda: []}, {"log": b"3 passed"}])
def test_a_rollout_without_events_keeps_no_group_waiting_for_them(server, body):
    run = make_run(policy=Policy.AUTO)
    _, token = make_token(run=run)
    with GagarClient(server, run.public_id, token) as gagar:
        gagar.task("t1", statement="Return 2.")
        group = gagar.declare("g1", task="t1", step=1, group_size=2)
        for place, outcome in enumerate(("passed", "failed")):
            group.submit(f"g1-{place}", outcome=outcome, patch=PATCH % place, **body)
        wait_for(lambda: (row := stored("g1")) and row.bodies_ready)
    assert gagar.problems == []


def test_local_numbers_mask_what_the_run_masks(server):
    run = make_run(policy=Policy.MANUAL, mask_truncated=True)
    _, token = make_token(run=run)
    with GagarClient(server, run.public_id, token) as gagar:
        wait_for(lambda: gagar.online)
        gagar.task("t1", statement="Return 2.")
        group = gagar.declare("g1", task="t1", step=1, group_size=3)
        for id, outcome in (("a", "passed"), ("b", "failed"), ("c", "passed")):
            group.submit(id, outcome=outcome, patch=PATCH % 2, truncated=id == "c", events=[])
        [one] = gagar.freeze(1, [group], within_s=0).sets
    assert (one.version, one.advantage) == (0, {"a": 0.5, "b": -0.5, "c": 0.0})


def test_a_person_corrects_while_the_job_waits(server):
    run = make_run(policy=Policy.MANUAL)
    _, token = make_token(run=run)
    with GagarClient(server, run.public_id, token) as gagar:
        group = roll_out(gagar)
        wait_for(lambda: (row := stored("g1")) and row.bodies_ready)
        job.drain()
        held = stored("g1")
        assert held.held and gagar.freeze(1, [group], within_s=0.2, hold_steps=5).waiting
        decisions.approve(held, seen_verdict=decisions.newest_verdict(held).pk, user=make_user())
        wait_for(in_state("g1", GroupState.DELIVERED))
        batch = wait_for(lambda: (b := gagar.freeze(2, [group], within_s=1, hold_steps=5)).sets and b)
        assert batch.sets[0].version == 1


def test_a_job_restarted_from_an_older_checkpoint_meets_no_group_twice(server):
    run = make_run(policy=Policy.AUTO)
    _, token = make_token(run=run)
    with GagarClient(server, run.public_id, token) as gagar:
        first = roll_out(gagar, "g1")
        wait_for(lambda: (row := stored("g1")) and row.bodies_ready)
        job.drain()
        gagar.applied(gagar.freeze(1, [first], within_s=10))
        with gagar.checkpoint() as cursor:
            saved = json.loads(json.dumps(cursor))
        second = roll_out(gagar, "g2", step=2)
        wait_for(lambda: (row := stored("g2")) and row.bodies_ready)
        job.drain()
        gagar.applied(gagar.freeze(2, [second], within_s=10))
    with GagarClient(server, run.public_id, token, cursor=saved) as again:
        assert again.life == 2
        redone = roll_out(again, "g2", step=2)
        wait_for(lambda: RolloutGroup.objects.filter(key="g2", life__n=2, bodies_ready=True).exists())
        job.drain()
        batch = again.freeze(2, [redone], within_s=10)
        again.applied(batch)
        with again.checkpoint() as cursor:
            applied = [(life, key) for life, key, _version, _step in cursor["applied"]]
        assert sorted(applied) == [(1, "g1"), (2, "g2")]
        undone = Receipt.objects.filter(group__key="g2", group__life__n=1)
        wait_for(lambda: undone.filter(status="not_used").exists())


def test_a_newer_life_closes_the_older_socket(server):
    run = make_run()
    _, token = make_token(run=run)
    with GagarClient(server, run.public_id, token) as old:
        wait_for(lambda: old.online)
        with GagarClient(server, run.public_id, token) as new:
            wait_for(lambda: new.online)
            wait_for(lambda: not old.online)
            wait_for(lambda: any("4409" in problem for problem in old.problems))


def test_the_pause_button_reaches_the_job(server):
    run = make_run()
    _, token = make_token(run=run)
    with GagarClient(server, run.public_id, token) as gagar:
        wait_for(lambda: gagar.online)
        pausing.switch(run, paused=True, reason="entropy rises", by="alice")
        wait_for(lambda: gagar.mode == "outcome_only")
        pausing.switch(run, paused=False, reason="fixed", by="alice")
        wait_for(lambda: gagar.mode == "normal")


def close_code(url: str, **headers) -> int:
    async def connect():
        async with websockets.connect(url, subprotocols=["gagar.v1"], **headers) as socket:
            try:
                while True:
                    await asyncio.wait_for(socket.recv(), 15)
            except websockets.ConnectionClosed as closed:
                return closed.rcvd.code

    return asyncio.run(connect())


def test_the_jobs_socket_refuses_who_may_not_have_the_stream(server):
    run = make_run()
    url = f"{server.replace('http', 'ws')}/ws/v1/runs/{run.public_id}/advantages"
    reader, key = make_token(run=run, purposes=("read",))
    _, foreign = make_token()
    train, good = make_token(run=run)
    assert close_code(url) == 4401
    assert close_code(url, additional_headers={"Authorization": f"Bearer {foreign}"}) == 4404
    assert close_code(url, additional_headers={"Authorization": f"Bearer {key}"}) == 4403
    assert close_code(url, additional_headers={"Authorization": f"Bearer {good}"}, origin=server) == 4403


def test_a_revoked_token_closes_the_open_socket(server):
    run = make_run()
    row, token = make_token(run=run)
    with GagarClient(server, run.public_id, token) as gagar:
        wait_for(lambda: gagar.online)
        row.revoke()
        wait_for(lambda: any("4401" in problem for problem in gagar.problems), within_s=10)


def test_an_estimator_that_breaks_the_numbers_is_refused_by_name(server):
    from training_bridge.protocol.messages import Estimator

    run = make_run()
    _, token = make_token(run=run)
    with GagarClient(server, run.public_id, token, estimator=Estimator(std="ddof1")) as gagar:
        wait_for(lambda: any("estimator.std" in problem for problem in gagar.problems))


def test_a_job_goes_on_when_the_servers_database_is_restored_from_before_its_life(server):
    run = make_run(policy=Policy.AUTO)
    _, token = make_token(run=run)
    port = urlsplit(server).port
    cable = Cable(port, port)
    cable.plug()
    with GagarClient(f"http://127.0.0.1:{cable.port}", run.public_id, token) as gagar:
        first = roll_out(gagar)
        wait_for(lambda: (row := stored("g1")) and row.bodies_ready)
        job.drain()
        gagar.applied(gagar.freeze(1, [first], within_s=20))
        gagar.log(1, {"pg_loss": 0.25})
        wait_for(lambda: JobCursor.objects.filter(noted=2).exists())
        # a backup that knows the life, not the words: as if its rows were one step older
        JobCursor.objects.update(noted=0)
        Stream.objects.update(head_seq=0)
        Receipt.objects.all()._raw_delete("default")
        MetricPoint.objects.all().delete()
        Delivery.objects.all().delete()
        cable.cut()
        gagar.log(2, {"pg_loss": 0.5})
        wait_for(lambda: MetricPoint.objects.filter(value=0.5).exists())
        wait_for(lambda: Receipt.objects.filter(n__lt=3, status="applied").exists())  # told again, numbered anew
        assert Stream.objects.get().epoch == 2 and gagar.online
        wait_for(lambda: JobCursor.objects.filter(connected=True).exists())
    assert not any("4411" in problem for problem in gagar.problems)
    assert RunEvent.objects.get(run=run, by="life:1").changes == {"life": [1, "ended"]}
    cable.unplug()


def test_the_socket_reads_the_header_as_rest_does_and_counts_fields_it_does_not_know(server):
    run = make_run()
    make_life(run=run)
    _, token = make_token(run=run)
    url = f"{server.replace('http', 'ws')}/ws/v1/runs/{run.public_id}/advantages"
    resume = {"type": "resume", "life": 1, "epoch": 0, "after_seq": 0, "digest": None, "estimator": {}, "mood": "fine"}

    async def talk():
        headers = {"Authorization": f"bearer {token}"}
        async with websockets.connect(url, subprotocols=["gagar.v1"], additional_headers=headers) as socket:
            await socket.send(json.dumps(resume))
            return json.loads(await asyncio.wait_for(socket.recv(), 30))

    assert asyncio.run(talk())["type"] == "welcome"
    wait_for(lambda: JobCursor.objects.filter(life__run=run, unknown_fields=1, connected=False).exists())
