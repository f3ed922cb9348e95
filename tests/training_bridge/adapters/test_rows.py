"""From decided sets to the rows of a batch, by place and by name."""

import pytest

from training_bridge.adapters.rows import Rows, rewards_of, rows_of
from training_bridge.client import AdvantageSet

DECIDED = AdvantageSet(
    group="g", life=1, version=1, step=3, regime="exact", reason=None, train=True,
    advantage={"a": 0.3, "b": 0.1, "c": -0.4, "d": 0.0}, equivalent_reward={"a": 0.7, "b": 0.5, "c": 0.0, "d": None},
)  # fmt: skip


def without_training() -> AdvantageSet:
    return AdvantageSet(
        group="h", life=1, version=1, step=3, regime="filtered", reason=None, train=False,
        advantage={"x": 0.0, "y": 0.0}, equivalent_reward={"x": 1.0, "y": 1.0},
    )  # fmt: skip


def test_rows_stand_in_the_order_of_the_batch_and_an_invalid_one_has_no_reward():
    rows = rows_of([DECIDED, without_training()], [["d", "b", "a", "c"], ["y", "x"]])
    assert rows.groups == ["g"] * 4 + ["h"] * 2
    assert rows.rewards == [None, 0.5, 0.7, 0.0, 0.0, 0.0] and rows.advantages == [0.0, 0.1, 0.3, -0.4, 0.0, 0.0]
    assert rows.part(3, 2) == Rows(["g", "h"], [0.0, 0.0], [-0.4, 0.0])


def test_an_invalid_row_filled_with_the_mean_leaves_the_mean_and_gets_zero():
    filled = rows_of([DECIDED], [["a", "b", "c", "d"]]).filled()
    mean = sum(filled) / 4
    assert [reward - mean for reward in filled] == pytest.approx([0.3, 0.1, -0.4, 0.0])
    assert Rows(["g", "g"], [None, None], [0.0, 0.0]).filled() == [0.0, 0.0]


def test_rewards_by_name_in_both_spaces():
    assert rewards_of(DECIDED, "reward") == {"a": 0.7, "b": 0.5, "c": 0.0, "d": None}
    assert rewards_of(DECIDED, "advantage") == {"a": 0.3, "b": 0.1, "c": -0.4, "d": None}
    assert rewards_of(without_training(), "reward") == {"x": 0.0, "y": 0.0}


def test_a_lone_survivor_gets_zero_as_verl_would_train_on_its_raw_reward():
    lone = AdvantageSet(
        group="g", life=1, version=0, step=3, regime="ineligible", reason=None, train=True,
        advantage={"a": 0.0, "b": 0.0}, equivalent_reward={"a": 1.3, "b": None},
    )  # fmt: skip
    assert rewards_of(lone, "reward") == {"a": 0.0, "b": None}
