"""Handles: what may be pickled, and the verbs that follow the rollouts."""

import pickle

import pytest

from tests.training_bridge.client.test_faults import declare_four
from training_bridge.client import GagarError


def test_a_batch_is_pickled_whole_and_its_waiting_copies_are_frozen_by_the_client(server, connect):
    with connect() as gagar:
        decided, open_ = declare_four(gagar, "a"), declare_four(gagar, "b")
        server.wait(lambda: len(server.trajectories) == 8)
        server.decide("a")
        batch = gagar.freeze(1, [decided, open_], within_s=0.5, hold_steps=5)
        copy = pickle.loads(pickle.dumps(batch))
        assert copy.sets == batch.sets and [(g.key, g.step) for g in copy.waiting] == [("b", 1)]
        with pytest.raises(GagarError, match="copy from another process"):
            copy.waiting[0].submit("b-9", outcome="passed")
        server.decide("b")
        assert gagar.freeze(2, copy.waiting, within_s=20).sets[0].version == 1


def test_a_seal_follows_its_rollouts_and_ends_the_question_for_bodies(server, connect):
    with connect() as gagar:
        group = gagar.declare("g", task="t", step=1, group_size=16)
        for n in range(3):
            group.submit(f"g-{n}", outcome="passed", events=[{"kind": "message", "text": "hi"}])
        group.seal()
        server.bodies_answer = "wanted"
        server.wait(lambda: len(server.bodies) == 3)
    assert server.afterthoughts == [("g", "seal", {"life": 1})] and len(server.trajectories) == 3


def test_an_amendment_passes_the_old_decision_over_and_waits_for_the_new_one(server, connect):
    with connect() as gagar:
        group = declare_four(gagar, "g")
        server.wait(lambda: len(server.trajectories) == 4)
        server.decide("g", version=1)
        server.wait(lambda: gagar._buffer.open["g"].row)
        group.amend("g-2", outcome="passed", reason="the test was flaky")
        server.wait(lambda: server.afterthoughts)
        server.decide("g", version=2)
        [got] = gagar.freeze(1, [group], within_s=20).sets
        assert got.version == 2
        server.wait(lambda: len(server.receipts) == 1)
    said = {"external_id": "g-2", "outcome": "passed", "reason": "the test was flaky", "life": 1}
    assert server.afterthoughts == [("g", "amend", said)]
    assert server.ledger()[1, "g", 1] == ["superseded"]


def test_local_numbers_follow_an_amendment_and_a_decision_of_before_it_is_not_taken(server, connect):
    with connect() as gagar:
        group = declare_four(gagar, "g")  # two of four pass
        group.amend("g-1", outcome="failed", reason="flaky")
        server.wait(lambda: len(server.trajectories) == 4)
        server.decide("g", version=1)  # says that all pass
        server.wait(lambda: server.ledger().get((1, "g", 1)))
        [got] = gagar.freeze(1, [group], within_s=0).sets
    # R = (1, 0, 0, 0): A = (3/4, -1/4, -1/4, -1/4)
    assert list(got.advantage.values()) == [0.75, -0.25, -0.25, -0.25]
    assert server.ledger()[1, "g", 1] == ["superseded"]


def test_an_amendment_that_means_nothing_is_refused_at_once(server, connect):
    with connect() as gagar:
        group = declare_four(gagar, "g")
        for id, outcome, reason in (("g-1", "ok", "r"), ("g-1", "failed", " "), ("g-9", "failed", "r")):
            with pytest.raises(GagarError):
                group.amend(id, outcome=outcome, reason=reason)


def test_a_job_says_how_it_ended_and_a_killed_one_does_not(server, connect):
    with connect():
        pass
    with pytest.raises(ZeroDivisionError), connect():
        raise ZeroDivisionError
    assert server.ended == [(1, ""), (2, "ZeroDivisionError")]


def declare_many(gagar, server, many: int) -> list:
    """Declare behind one lock, so that the upload thread finds all of them at once."""
    server.wait(lambda: gagar.online)
    with server.lock:
        gagar.task("t", statement="s")
        return [gagar.declare(f"g-{n}", task="t", step=1, group_size=1) for n in range(many)]


def test_a_step_of_groups_is_declared_in_few_calls_and_in_its_order(server, connect):
    with connect() as gagar:
        declare_many(gagar, server, 600)
        server.wait(lambda: len(server.groups) == 600)
        server.wait(lambda: not gagar._shared.undeclared)
    assert server.calls["POST groups"] + server.calls["PUT groups"] <= 5
    assert [key for _, key in server.groups] == [f"g-{n}" for n in range(600)] and gagar.problems == []


def test_one_refused_declaration_breaks_its_own_group_only(server, connect):
    server.poison = "g-1"
    with connect() as gagar:
        groups = declare_many(gagar, server, 3)
        server.wait(lambda: not gagar._shared.undeclared)
        for n, group in enumerate(groups):
            group.submit(f"r-{n}", outcome="passed")
        server.wait(lambda: len(server.trajectories) == 2)
        server.decide("g-0")
        server.decide("g-2")
        batch = gagar.freeze(1, groups, within_s=20)  # does not wait for the one that cannot be decided
    assert [used.version for used in batch.sets] == [1, 0, 1]
    assert "'g-1' was refused" in gagar.problems[0]


def test_a_server_that_knows_single_declarations_only_gets_them_one_by_one(server, connect):
    server.declares_together = False
    with connect() as gagar:
        declare_many(gagar, server, 4)
        server.wait(lambda: len(server.groups) == 4)
    assert server.calls["PUT groups"] == 4 and gagar.problems == []


def test_declarations_of_a_life_that_the_server_lost_go_on_in_the_next_one(server, connect):
    with connect() as gagar:
        server.wait(lambda: gagar.online)
        with server.lock:
            server.lives = 0  # its database was restored from before
            for n in range(3):
                gagar.declare(f"g-{n}", task="t", step=1, group_size=1)
        server.wait(lambda: len(server.groups) == 3)
        assert {life for life, _ in server.groups} == {gagar.life}
