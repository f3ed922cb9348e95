"""The buffer alone: what expires, what is trimmed, what a decision does not know."""

import pytest

from training_bridge.client import buffer as buffer_module
from training_bridge.client.buffer import Buffer
from training_bridge.client.cursor import read_cursor
from training_bridge.client.errors import GagarError
from training_bridge.client.sets import Rollout, decided_set, local_set
from training_bridge.protocol.client_session import Position
from training_bridge.protocol.messages import AdvantageRow, Advantages


def make_row(group="g", *, life=1, version=1, seq=1) -> Advantages:
    row = AdvantageRow(trajectory="a", outcome="passed", reward=1.0, equivalent_reward=1.25, advantage=0.5, factor=0.4)
    return Advantages(
        seq=seq, group=group, life=life, version=version, step=1, regime="bounded", train=True, rows=(row,)
    )


def make_buffer(*keys: str, step=1) -> Buffer:
    buffer = Buffer("r")
    buffer.adopt(1)
    for key in keys:
        buffer.declare(key, step, eligible=True).rollouts["a"] = Rollout("passed")
    return buffer


def freeze(buffer, step, keys, hold_steps=0):
    return buffer.freeze(step, keys, local=None, reason="deadline", hold_steps=hold_steps)


def test_a_group_the_trainer_dropped_expires_and_its_row_is_accounted_for():
    buffer = make_buffer("old", "new")
    buffer.take(make_row("old"), Position(1, 1, "d"))
    _, _, receipts = freeze(buffer, 101, ["new"])
    assert receipts == [] and "old" in buffer.open
    buffer.declare("newer", 102, eligible=True)
    _, _, receipts = freeze(buffer, 102, ["newer"])
    assert [(r.group, r.version, r.status) for r in receipts] == [("old", 1, "expired")] and "old" not in buffer.open


def test_a_long_history_is_trimmed_in_the_checkpoint_and_says_so(monkeypatch):
    monkeypatch.setattr(buffer_module, "KEEP_APPLIED", 2)
    buffer = make_buffer("a", "b", "c")
    for got in freeze(buffer, 1, ["a", "b", "c"])[0]:
        buffer.use(got, 1)
    cursor = buffer.cursor([])
    assert [entry[1] for entry in cursor.applied] == ["b", "c"] and cursor.applied_dropped == 1
    (receipt,) = buffer.take(make_row("a"), Position(1, 1, "d"))
    assert receipt.status == "too_late"  # forgotten or not, it is not open


def test_a_rollout_the_decision_does_not_know_counts_as_invalid():
    got = decided_set(make_row(), 1, {"a": Rollout("passed"), "lost": Rollout("failed")})
    assert got.advantage == {"a": 0.5, "lost": 0.0} and got.equivalent_reward == {"a": 1.25, "lost": None}
    assert got.factor == {"a": 0.4, "lost": None} and got.outcome == {"a": "passed", "lost": "failed"}


def test_an_ineligible_group_passes_through_unfiltered():
    rollouts = {"a": Rollout("passed", 0.9), "b": Rollout("passed", 0.5)}
    got = local_set("g", 1, 1, rollouts, eligible=False, reason="deadline")
    assert got.advantage == pytest.approx({"a": 0.2, "b": -0.2}) and got.train and got.regime == "ineligible"


def test_truncated_rollouts_are_left_out_where_the_run_masks_them():
    rollouts = {"a": Rollout("passed"), "b": Rollout("failed"), "c": Rollout("passed", truncated=True)}
    said = {"eligible": True, "reason": "deadline"}
    masked = local_set("g", 1, 1, rollouts, mask_truncated=True, **said)
    assert masked.advantage == {"a": 0.5, "b": -0.5, "c": 0.0} and masked.equivalent_reward["c"] is None
    counted = local_set("g", 1, 1, rollouts, **said)
    assert counted.advantage == pytest.approx({"a": 1 / 3, "b": -2 / 3, "c": 1 / 3})
    alone = local_set("g", 1, 1, {name: rollouts[name] for name in "bc"}, mask_truncated=True, **said)
    assert (alone.train, alone.reason) == (False, "filtered_all_failed")


def test_a_restored_job_masks_as_before_until_a_server_says_otherwise():
    buffer = make_buffer()
    buffer.mask_truncated = True
    assert Buffer("r", buffer.cursor([])).mask_truncated


@pytest.mark.parametrize("rollouts", [{}, {"a": Rollout("infra_invalid")}])
def test_a_group_without_a_valid_rollout_is_excluded(rollouts):
    got = local_set("g", 1, 1, rollouts, eligible=True, reason="deadline")
    assert (got.train, got.regime, got.reason) == (False, "excluded", "excluded_no_valid_trajectory")


def test_only_what_was_frozen_can_be_applied():
    buffer = make_buffer("g")
    (got,), _, _ = freeze(buffer, 1, ["g"])
    with pytest.raises(GagarError, match="not frozen"):
        make_buffer("g").use(got, 1)
    assert buffer.use(got, 1).status == "applied" and buffer.use(got, 1) is None


def test_a_cursor_of_another_format_is_refused():
    with pytest.raises(GagarError, match="format 2"):
        read_cursor({"format": 2, "run": "r", "life": 1, "epoch": 1, "seq": 0})


@pytest.mark.parametrize("key", ["", "a\0", "\ud800", "x" * 201])
def test_a_key_that_no_message_could_carry_is_refused_at_once(key):
    with pytest.raises(GagarError, match="group key"):
        make_buffer(key)
    with pytest.raises(GagarError, match="step"):
        make_buffer("g", step=-1)
