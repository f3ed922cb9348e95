"""The client against a small real server: one step, the freeze rules, checkpoints, refusals."""

import json
import math
import threading
import time

import pytest

from tests.training_bridge.client.little_server import LittleServer
from training_bridge.client import Estimator, GagarClient, GagarError
from training_bridge.protocol.messages import CloseCode


def submit_four(group, *, passed=2) -> list[str]:
    names = [f"{group.key}-{i}" for i in range(4)]
    for i, name in enumerate(names):
        group.submit(name, outcome="passed" if i < passed else "failed", patch=b"--- a\n+++ b\n")
    return names


def arrived(server: LittleServer, *names: str) -> bool:
    return all((server.lives, name) in server.trajectories for name in names)


def open_group(gagar, server, key, *, step=1, passed=2):
    group = gagar.declare(key, task="t", step=step, group_size=4)
    names = submit_four(group, passed=passed)
    server.wait(lambda: arrived(server, *names))
    return group


def test_one_step_end_to_end(server, connect):
    with connect(job="rank 0") as gagar:
        assert gagar.life == 1
        gagar.task("t", statement="fix it", repository=b"bundle", base_commit="abc", reference_patch="--- a\n")
        group = open_group(gagar, server, "g/1 ü")
        server.decide("g/1 ü", advantages={f"g/1 ü-{i}": [0.5, 0.1, -0.3, -0.3][i] for i in range(4)})
        batch = gagar.freeze(1, [group], within_s=5)
        (got,) = batch.sets
        assert (got.group, got.life, got.version, got.regime, got.train) == ("g/1 ü", 1, 1, "bounded", True)
        assert got.advantage == {"g/1 ü-0": 0.5, "g/1 ü-1": 0.1, "g/1 ü-2": -0.3, "g/1 ü-3": -0.3}
        assert got.factor["g/1 ü-0"] == 0.5 and got.outcome["g/1 ü-0"] == "passed" and batch.waiting == []
        gagar.applied(batch)
        gagar.applied(batch)
        gagar.log(1, {"loss": math.nan, "entropy": 0.5})
        with gagar.checkpoint() as cursor:
            saved = json.loads(json.dumps(cursor))
        server.wait(lambda: server.durable == 1 and server.metrics)
    assert saved["applied"] == [[1, "g/1 ü", 1, 1]] and (saved["epoch"], saved["seq"]) == (1, 1)
    assert server.ledger() == {(1, "g/1 ü", 1): ["applied"]}
    assert server.metrics[0].values == {"loss": "NaN", "entropy": 0.5}
    assert server.tasks["t"]["base_commit"] == "abc" and server.tasks["t"]["repository"] in server.repositories
    assert gagar.problems == []


def test_the_highest_version_at_the_freeze_wins_and_the_rest_is_accounted_for(server, connect):
    with connect() as gagar:
        group = open_group(gagar, server, "g")
        server.decide("g", version=1)
        server.decide("g", version=2)
        server.wait(lambda: server.ledger().get((1, "g", 1)))
        batch = gagar.freeze(1, [group])
        assert batch.sets[0].version == 2
        server.decide("g", version=3)
        server.wait(lambda: server.ledger().get((1, "g", 3)))
        gagar.applied(batch)
        server.decide("g", version=4)
        server.wait(lambda: len(server.receipts) == 4)
    assert server.ledger() == {
        (1, "g", 1): ["superseded"],
        (1, "g", 2): ["applied"],
        (1, "g", 3): ["too_late"],
        (1, "g", 4): ["too_late"],
    }


def test_an_undecided_group_waits_for_a_later_batch_and_then_counts_locally(server, connect):
    with connect() as gagar:
        group = open_group(gagar, server, "g", step=1)
        batch = gagar.freeze(1, [group], within_s=0.05, hold_steps=2)
        assert batch.sets == [] and [g.key for g in batch.waiting] == ["g"]
        assert server.wants == []  # nobody is hurried while the group may wait
        started = time.monotonic()
        batch = gagar.freeze(2, batch.waiting, within_s=5, hold_steps=2)
        assert time.monotonic() - started < 1  # it has waited once and does not hold up the next step
        batch = gagar.freeze(3, batch.waiting, within_s=0.2, hold_steps=2)
        (got,) = batch.sets
        assert (got.version, got.regime, got.reason, got.train) == (0, "fallback", "deadline", True)
        assert got.advantage == {"g-0": 0.5, "g-1": 0.5, "g-2": -0.5, "g-3": -0.5}
        gagar.applied(batch)
        want, _ = server.wait(lambda: server.wants)[0]
        assert want.groups == ("g",) and 0 < want.within_s <= 0.2
        server.decide("g", version=1)
        server.wait(lambda: len(server.receipts) == 2)
    assert server.ledger() == {(1, "g", 0): ["applied"], (1, "g", 1): ["too_late"]}


def test_a_decision_that_comes_while_the_freeze_waits_is_taken(server, connect):
    with connect() as gagar:
        group = open_group(gagar, server, "g")
        threading.Timer(0.3, server.decide, ("g",)).start()
        assert gagar.freeze(1, [group], within_s=10).sets[0].version == 1


@pytest.mark.parametrize(
    ("passed", "regime", "reason"), [(4, "filtered", "filtered_all_passed"), (0, "filtered", "filtered_all_failed")]
)
def test_a_group_without_contrast_does_not_train_on_local_numbers_either(server, connect, passed, regime, reason):
    with connect() as gagar:
        group = open_group(gagar, server, "g", passed=passed)
        (got,) = gagar.freeze(1, [group], within_s=0).sets
    assert (got.train, got.regime, got.reason) == (False, regime, reason)
    assert set(got.advantage.values()) == {0.0}


def test_local_numbers_mask_invalid_rollouts_and_use_shaped_rewards(server, connect):
    with connect() as gagar:
        shaped = gagar.declare("shaped", task="t", step=1, group_size=3)
        shaped.submit("s0", outcome="passed", reward=1.5)
        shaped.submit("s1", outcome="failed", reward=0.5)
        shaped.submit("s2", outcome="infra_invalid")
        bad = gagar.declare("bad", task="t", step=1, group_size=2)
        bad.submit("b0", outcome="passed", reward=math.nan)
        bad.submit("b1", outcome="failed", reward=0.0)
        first, second = gagar.freeze(1, [shaped, bad], within_s=0).sets
        server.wait(lambda: arrived(server, "b0"))
    assert first.advantage == {"s0": 0.5, "s1": -0.5, "s2": 0.0} and first.equivalent_reward["s2"] is None
    assert (second.train, second.regime, second.reason) == (False, "excluded", "excluded_bad_reward")
    assert server.trajectories[1, "b0"]["reward"] == "NaN"


def test_a_group_is_frozen_into_one_batch_only(server, connect):
    with connect() as gagar:
        group = open_group(gagar, server, "g")
        with pytest.raises(GagarError, match="twice"):
            gagar.freeze(1, [group, group])
        batch = gagar.freeze(1, [group], within_s=0)
        with pytest.raises(GagarError, match="frozen before"):
            gagar.freeze(2, [group])
        gagar.applied(batch)
        with pytest.raises(GagarError, match="frozen before"):
            gagar.freeze(2, [group])
        with pytest.raises(GagarError, match="used already"):
            gagar.declare("g", task="t", step=2)


def test_the_pause_button_turns_to_local_numbers_until_it_is_lifted(server, connect):
    with connect() as gagar:
        groups = [open_group(gagar, server, key) for key in ("a", "b")]
        server.decide("a")
        server.control("outcome_only")
        server.wait(lambda: gagar.mode == "outcome_only")
        batch = gagar.freeze(1, groups[:1], within_s=10)
        assert (batch.sets[0].version, batch.sets[0].reason) == (0, "paused")
        server.control("normal")
        server.decide("b")
        server.wait(lambda: gagar.mode == "normal")
        assert gagar.freeze(1, groups[1:], within_s=10).sets[0].version == 1
        gagar.applied(batch)
        server.wait(lambda: len(server.receipts) == 2)
    assert server.ledger() == {(1, "a", 1): ["not_used"], (1, "a", 0): ["applied"]}


def test_a_restart_from_an_older_checkpoint_takes_a_new_life_and_uses_nothing_twice(server, connect):
    with connect() as gagar:
        for step, key in ((1, "g1"), (2, "g2")):
            group = open_group(gagar, server, key, step=step)
            server.decide(key)
            gagar.applied(gagar.freeze(step, [group]))
            if step == 1:
                with gagar.checkpoint() as cursor:
                    pass
        open_group(gagar, server, "g3", step=3)
        server.decide("g3")
    with connect(cursor=json.loads(json.dumps(cursor))) as again:
        assert again.life == 2
        server.wait(lambda: "not_used" in server.ledger().get((1, "g3", 1), ()))
        group = open_group(again, server, "g2b", step=2)
        server.decide("g2b")
        server.decide("g1", life=1, version=2)  # a correction of a group that the restored parameters contain
        again.applied(again.freeze(2, [group]))
        server.wait(lambda: (1, "g1", 2) in server.ledger())
        with again.checkpoint() as cursor:
            pass
    assert cursor["applied"] == [[1, "g1", 1, 1], [2, "g2b", 1, 2]]
    assert server.ledger()[1, "g2", 1] == ["applied", "not_used"]  # rolled back with the parameters
    assert server.ledger()[1, "g1", 2] == ["too_late"]


def test_what_a_checkpoint_held_and_never_used_is_told_in_the_next_life(server, connect):
    with connect() as gagar:
        open_group(gagar, server, "g")
        server.decide("g")
        server.wait(lambda: gagar._buffer.open["g"].row)
        with gagar.checkpoint() as cursor:
            pass
    with connect(cursor=cursor):
        server.wait(lambda: server.receipts)
    assert server.ledger() == {(1, "g", 1): ["not_used"]}


def test_a_checkpoint_that_fails_is_not_durable(server, connect):
    with connect() as gagar:
        open_group(gagar, server, "g")
        server.decide("g")
        server.wait(lambda: gagar._buffer.position.seq == 1)
        with pytest.raises(OSError, match="disk full"), gagar.checkpoint():
            raise OSError("disk full")
        gagar.log(1, {"loss": 1.0})
        server.wait(lambda: server.metrics)
    assert server.durable == 0


def test_a_cursor_of_another_run_or_no_cursor_is_refused(connect):
    with pytest.raises(GagarError, match="run"):
        connect(cursor={"run": "other", "life": 1, "epoch": 1, "seq": 0})
    with pytest.raises(GagarError, match="checkpoint"):
        connect(cursor={"epoch": 1})
    with pytest.raises(GagarError, match="url"):
        GagarClient("localhost:8000", "r", "token")


@pytest.mark.parametrize("code", [CloseCode.FENCED, CloseCode.TOKEN, CloseCode.ESTIMATOR, CloseCode.NO_RUN])
def test_a_fatal_close_code_stops_the_socket_and_training_goes_on(server, connect, code):
    server.close_code = code
    with connect() as gagar:
        server.wait(lambda: gagar.problems)
        group = gagar.declare("g", task="t", step=1, group_size=4)
        submit_four(group)
        started = time.monotonic()
        (got,) = gagar.freeze(1, [group], within_s=30, hold_steps=5).sets
        assert time.monotonic() - started < 5 and got.version == 0 and got.reason == "unreachable"
        time.sleep(0.3)
    assert server.sockets == 1 and str(int(code)) in gagar.problems[0]


def test_a_newer_life_fences_the_older_one(server, connect):
    with connect() as older:
        server.wait(lambda: older.online)
        with connect() as newer:
            server.wait(lambda: newer.online and older.problems)
            assert (older.life, newer.life) == (1, 2) and not older.online
    assert "4409" in older.problems[0]


def test_an_estimator_that_breaks_the_numbers_is_told_and_not_used(server, connect):
    with connect(estimator=Estimator(std="ddof1")) as gagar:
        server.wait(lambda: gagar.problems)
    assert "4410" in gagar.problems[0] and "std" in gagar.problems[0]


def test_what_an_adapter_finds_out_later_is_told_at_once_and_refused_as_early(server, connect):
    with connect(estimator=Estimator(loss="mine", space="reward")) as gagar:
        server.wait(lambda: gagar.online)
        gagar.describe(name="some-trainer", space="advantage", loss="theirs", shaped=True)
        assert len(server.resumes) == 1, "no server refuses a name"
        gagar.describe(cap=1.5)
        server.wait(lambda: gagar.problems)  # the little run has no bound
    said = server.resumes[-1].estimator
    assert said == Estimator(name="some-trainer", loss="mine", space="reward", shaped=True, cap=1.5)
    assert "4410" in gagar.problems[0] and "cap" in gagar.problems[0]


def test_a_bad_token_is_told_at_the_start_and_training_goes_on(server, connect):
    with connect(token="wrong") as gagar:
        assert "401" in gagar.problems[0] and gagar.life < 0
        group = gagar.declare("g", task="t", step=1, group_size=4)
        submit_four(group)
        assert gagar.freeze(1, [group]).sets[0].version == 0


def test_a_handshake_refused_again_and_again_is_fatal(server, connect):
    server.handshake = 403
    with connect() as gagar:
        server.wait(lambda: gagar.problems)
    assert "4403" in gagar.problems[0]


def test_bad_input_of_the_job_is_refused_where_it_happens(server, connect):
    with connect() as gagar:
        group = gagar.declare("g", task="t", step=1, group_size=2)
        with pytest.raises(GagarError, match="outcome"):
            group.submit("x", outcome="ok")
        group.submit("x", outcome="passed")
        with pytest.raises(GagarError, match="as submitted"):
            group.submit("x", outcome="failed")
        with pytest.raises(GagarError, match="as declared"):
            gagar.declare("g", task="t", step=2)
        with pytest.raises((TypeError, ValueError)):
            gagar.log(1, {"loss": "high"})
