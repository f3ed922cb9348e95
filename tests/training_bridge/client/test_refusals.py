"""What the job hears at once instead of waiting for it: ids in two groups, refused rollouts and groups."""

import threading
import time

import pytest

from tests.training_bridge.client.test_faults import declare_four
from training_bridge.client import GagarError


def test_a_rollout_of_two_groups_is_refused_where_it_is_submitted(server, connect):
    with connect() as gagar:
        first, second = (gagar.declare(key, task="t", step=1, group_size=2) for key in ("g1", "g2"))
        first.submit("r", outcome="passed")
        first.submit("r", outcome="passed")
        with pytest.raises(GagarError, match="group 'g1', where this life submitted it"):
            second.submit("r", outcome="passed")
        gagar.applied(gagar.freeze(1, [first], within_s=0))
        with pytest.raises(GagarError, match="'g1'"):  # also after it was used
            second.submit("r", outcome="passed")


@pytest.mark.parametrize("hold_steps", [0, 20])
def test_a_conflict_on_the_server_wakes_the_freeze_with_its_words(server, connect, hold_steps):
    with connect() as gagar:
        server.wait(lambda: gagar.online)
        group = declare_four(gagar, "g")
        server.wait(lambda: len(server.trajectories) == 4)
        server.statuses = [409]
        threading.Timer(0.3, group.submit, ("g-4",), {"outcome": "passed"}).start()
        started = time.monotonic()
        batch = gagar.freeze(1, [group], within_s=30, hold_steps=hold_steps)
        assert time.monotonic() - started < 10 and not batch.waiting
    [got] = batch.sets
    assert got.version == 0 and "409" in got.reason and "'g-4'" in got.reason
    assert got.advantage["g-0"] > 0 > got.advantage["g-3"]


def test_one_refused_item_of_a_batch_breaks_its_own_group_only(server, connect):
    with connect() as gagar:
        server.wait(lambda: gagar.online)
        server.trajectories[1, "b-0"] = {"group": "elsewhere", "external_id": "b-0", "outcome": "passed"}
        good, bad = declare_four(gagar, "a"), declare_four(gagar, "b")
        server.wait(lambda: gagar.problems)
        threading.Timer(0.2, server.decide, ("a",)).start()
        sets = gagar.freeze(1, [good, bad], within_s=30).sets
    assert [got.version for got in sets] == [1, 0] and "another group has this rollout" in sets[1].reason


def test_a_refused_declaration_is_not_waited_for(server, connect):
    with connect() as gagar:
        server.wait(lambda: gagar.online)
        server.statuses = [422]
        group = declare_four(gagar, "g")
        started = time.monotonic()
        [got] = gagar.freeze(1, [group], within_s=30).sets
        assert time.monotonic() - started < 10 and got.version == 0 and "422" in got.reason


def test_a_decision_that_came_all_the_same_is_used(server, connect):
    with connect() as gagar:
        server.wait(lambda: gagar.online)
        group = declare_four(gagar, "g")
        server.wait(lambda: len(server.trajectories) == 4)
        server.decide("g")
        server.wait(lambda: gagar._buffer.open["g"].row)
        gagar._shared.break_group("g", "refused")
        assert gagar.freeze(1, [group], within_s=0).sets[0].version == 1
