import pytest

from grading.errors import WrongShape
from grading.grader.options import GradingOptions


def test_only_what_differs_is_stored_and_reads_back():
    options = GradingOptions(model="openai:m", orders=3, max_cost_usd=0.5)
    assert options.to_json() == {"model": "openai:m", "orders": 3, "max_cost_usd": 0.5}
    assert GradingOptions.from_json(options.to_json()) == options
    assert GradingOptions.from_json({}) == GradingOptions()


@pytest.mark.parametrize(
    "wrong",
    [{"orders": 0}, {"orders": 9}, {"orders": 1.5}, {"orders": True}, {"max_wall_s": float("nan")}, {"nope": 1},
     {"model": 3}, {"model": "gpt-5"}, {"model": "foo:bar"}, {"model": "openai:"},
     {"orders_share": 1.1}, {"checks": 1}, {"max_cost_usd": "5"}, {"max_turns": None}],
)  # fmt: skip
def test_a_wrong_option_is_refused_by_name(wrong):
    with pytest.raises(WrongShape) as refused:
        GradingOptions.from_json(wrong)
    assert refused.value.where == next(iter(wrong))


def test_no_limit_is_said_by_none():
    assert GradingOptions.from_json({"max_cost_usd": None, "step_groups": None}) == GradingOptions()
