"""What the network does to a job: lost sockets, doubled rows, gaps, no server at all, a blocked main thread."""

import json
import threading
import time

import pytest

from tests.training_bridge.client.little_server import TOKEN, LittleServer
from training_bridge.client import GagarClient, shared
from training_bridge.protocol.wire import digest_of


def declare_four(gagar, key, *, step=1):
    group = gagar.declare(key, task="t", step=step, group_size=4)
    for i in range(4):
        group.submit(f"{key}-{i}", outcome="passed" if i < 2 else "failed")
    return group


def test_a_stream_cut_again_and_again_arrives_whole_and_once(server, connect):
    with connect() as gagar:
        groups = [declare_four(gagar, f"g{i}") for i in range(40)]
        server.wait(lambda: len(server.trajectories) == 160)
        for i in range(40):
            server.decide(f"g{i}")
            if i % 5 == 0:
                server.cable.cut()
                time.sleep(0.02)
        batch = gagar.freeze(1, groups, within_s=20)
        assert [got.version for got in batch.sets] == [1] * 40
        gagar.applied(batch)
        server.cable.cut()
        server.wait(lambda: len(server.receipts) == 40)
        assert server.sockets > 3
    assert server.ledger() == {(1, f"g{i}", 1): ["applied"] for i in range(40)}


@pytest.mark.parametrize("fault", ["double", "gap", "garbage"])
def test_a_bad_stream_is_noticed_and_resumed_without_harm(server, connect, fault):
    spoiled = threading.Event()

    def spoil(texts: list[str]) -> list[str]:
        rows = [text for text in texts if '"advantages"' in text]
        if not rows or (spoiled.is_set() and fault != "double"):
            return texts
        spoiled.set()
        return {"double": texts + rows, "gap": texts[1:] if len(texts) > 1 else [], "garbage": ["{", *texts]}[fault]

    with connect() as gagar:
        server.wait(lambda: gagar.online)
        groups = [declare_four(gagar, f"g{i}") for i in range(6)]
        server.wait(lambda: len(server.trajectories) == 24)
        server.tamper = spoil
        for i in range(6):
            server.decide(f"g{i}", advantages={f"g{i}-{n}": float(i) for n in range(4)})
            time.sleep(0.02)
        batch = gagar.freeze(1, groups, within_s=20)
        assert [got.advantage[f"g{i}-0"] for i, got in enumerate(batch.sets)] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
        gagar.applied(batch)
        server.wait(lambda: len(server.receipts) == 6)
    assert set(map(tuple, server.ledger().values())) == {("applied",)}


def test_a_server_that_lost_its_stream_starts_a_new_epoch_and_the_client_starts_over(server, connect):
    with connect() as gagar:
        first, second = declare_four(gagar, "g1"), declare_four(gagar, "g2", step=2)
        server.wait(lambda: len(server.trajectories) == 8)
        server.decide("g1")
        gagar.applied(gagar.freeze(1, [first]))
        server.wait(lambda: server.receipts)
        with server.lock:  # a restored database: row 1 is another one now
            server.rows = []
            server.decide("g2", version=1)
            server.decide("g2", version=2)
            server.cable.cut()  # inside the lock: else the old socket may bring a row of the new stream
        assert gagar.freeze(2, [second], within_s=10).sets[0].version in (1, 2)
        assert gagar._buffer.position.epoch == 2


def test_a_job_that_starts_without_a_server_works_and_gets_its_life_when_it_comes(server):
    server.cable.unplug()
    with GagarClient(server.url, "r", TOKEN) as gagar:
        assert gagar.life == -1 and not gagar.online
        gagar.task("t", statement="fix it")
        early = declare_four(gagar, "early")
        started = time.monotonic()
        batch = gagar.freeze(1, [early], within_s=30, hold_steps=20)
        assert time.monotonic() - started < 1
        assert (batch.sets[0].version, batch.sets[0].reason, batch.sets[0].life) == (0, "unreachable", -1)
        gagar.applied(batch)
        gagar.log(1, {"loss": 1.0})
        later = declare_four(gagar, "later", step=2)
        server.cable.plug()
        server.wait(lambda: gagar.online and len(server.trajectories) == 8)
        assert gagar.life == 1 and set(server.groups) == {(1, "early"), (1, "later")}
        server.decide("later")
        gagar.applied(gagar.freeze(2, [later], within_s=10))
        with gagar.checkpoint() as cursor:
            pass
        server.wait(lambda: len(server.receipts) == 2 and server.metrics)
    assert cursor["applied"] == [[1, "early", 0, 1], [1, "later", 1, 2]]
    assert server.ledger() == {(1, "early", 0): ["applied"], (1, "later", 1): ["applied"]}


def test_two_starts_without_a_server_never_share_a_life(server):
    server.cable.unplug()
    cursor = None
    for _ in range(2):
        with GagarClient(server.url, "r", TOKEN, cursor=cursor) as gagar:
            gagar.applied(gagar.freeze(1, [declare_four(gagar, "g")]))
            with gagar.checkpoint() as cursor:
                pass
    assert [entry[:2] for entry in cursor["applied"]] == [[-1, "g"], [-2, "g"]]
    server.cable.plug()
    with GagarClient(server.url, "r", TOKEN, cursor=json.loads(json.dumps(cursor))) as gagar:
        group = declare_four(gagar, "g")
        server.wait(lambda: len(server.trajectories) == 4)
        server.decide("g")
        gagar.applied(gagar.freeze(1, [group], within_s=10))
        with gagar.checkpoint() as cursor:
            pass
        server.wait(lambda: server.receipts)
    assert [entry[:2] for entry in cursor["applied"]] == [[-1, "g"], [-2, "g"], [1, "g"]]
    assert server.ledger() == {(1, "g", 1): ["applied"]}  # no server ever had the other two


def test_a_server_away_for_a_moment_is_waited_for_and_one_away_for_long_is_not(server, connect, monkeypatch):
    monkeypatch.setattr(shared, "PATIENCE_S", 1.0)
    with connect() as gagar:
        first, second = declare_four(gagar, "g1"), declare_four(gagar, "g2", step=2)
        server.wait(lambda: gagar.online and len(server.trajectories) == 8)
        server.cable.unplug()
        server.wait(lambda: not gagar.online)
        batch = gagar.freeze(1, [first], within_s=0.1, hold_steps=5)
        assert [group.key for group in batch.waiting] == ["g1"]
        started = time.monotonic()
        (got, other) = gagar.freeze(2, [*batch.waiting, second], within_s=30, hold_steps=5).sets
        assert 0.3 < time.monotonic() - started < 5
        assert (got.version, got.reason, other.version) == (0, "unreachable", 0)
        server.cable.plug()
        server.wait(lambda: gagar.online)


def test_a_main_thread_that_computes_for_seconds_keeps_its_socket():
    with LittleServer(ping_s=0.3) as impatient, GagarClient(impatient.url, "r", TOKEN) as gagar:
        impatient.wait(lambda: gagar.online)
        until = time.monotonic() + 2
        total = 0
        while time.monotonic() < until:
            total += sum(range(1000))
        impatient.decide("old", life=1, advantages={"x": 0.0})
        impatient.wait(lambda: impatient.receipts)
        assert impatient.sockets == 1 and gagar.online


def test_the_position_is_the_digest_of_the_text_as_it_was_sent(server, connect):
    with connect() as gagar:
        server.decide("ü", life=1, advantages={"x": 0.1 + 0.2})
        server.wait(lambda: gagar._buffer.position.seq == 1)
        assert gagar._buffer.position.digest == digest_of(server.rows[0][0])


def test_a_job_that_ends_before_all_was_noted_says_so(server, connect):
    with connect() as gagar:
        server.wait(lambda: gagar.online)
        gagar.log(0, {"entropy": 1.0})
    assert gagar.problems == []
    with GagarClient("http://127.0.0.1:9", "run", TOKEN) as gagar:
        for step in range(3):
            gagar.log(step, {"entropy": 1.0})
    assert gagar.problems == ["the job ended before the server had noted 3 receipts and metrics"]
