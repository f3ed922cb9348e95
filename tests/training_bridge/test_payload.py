import json
import math

import pytest

from grading.scoring.rows import Row
from training_bridge.payload import numbers
from training_bridge.redistribution.regimes import METHODS

ROWS = [Row("a", "passed"), Row("b", "passed"), Row("c", "failed"), Row("d", "infra_invalid")]
FACTORS = {"a": 1.0, "b": 0.9}
SHAPED = [Row("a", "passed", 0.1), Row("b", "passed", 1.0), Row("c", "failed", 0.3)]


def made(rows=ROWS, factors=FACTORS, **options):
    usual = {"method": "redistribute", "lambda_max": 1.5, "eligible": True, "broken_evaluation": False}
    return numbers(rows, factors, **(usual | {"mask_truncated": False} | options))


def advantages(got):
    return {row.trajectory: row.advantage for row in got.rows}


def test_every_rollout_has_a_row_and_a_masked_one_no_reward():
    got = made()
    assert (got.status, got.credit.regime) == ("ok", "exact")
    assert [row.trajectory for row in got.rows] == ["a", "b", "c", "d"]
    first, masked = got.rows[0], got.rows[3]
    # A = 1/3, lambda = 1/0.95
    assert math.isclose(first.advantage, 1 / 3 / 0.95) and math.isclose(first.equivalent_reward, 2 / 3 + 1 / 3 / 0.95)
    assert (first.outcome, first.reward, first.factor, first.integrity) == ("passed", 1.0, 1.0, None)
    assert (masked.outcome, masked.reward, masked.equivalent_reward, masked.advantage, masked.factor) == (
        "infra_invalid",
        None,
        None,
        0.0,
        None,
    )


def test_a_confirmed_finding_is_failed_for_the_trainer_and_still_named():
    got = made([Row("a", "passed"), Row("b", "passed", integrity="leak")], {"a": 1.0})
    assert (got.rows[1].outcome, got.rows[1].integrity, got.rows[1].reward) == ("failed", "leak", 0.0)
    assert advantages(got) == {"a": 0.5, "b": -0.5}


@pytest.mark.parametrize("reason", ["deadline", "skipped", "shadow", "paused", "grader_failure"])
def test_a_fallback_delivers_untouched_outcome_advantages_and_says_why(reason):
    got = made(SHAPED, {"a": 1.0, "b": 0.2}, fallback_reason=reason)
    assert (got.credit.regime, got.credit.reason, got.credit.train) == ("fallback", reason, True)
    assert advantages(got) == pytest.approx({"a": 0.1 - 1.4 / 3, "b": 1 - 1.4 / 3, "c": 0.3 - 1.4 / 3})
    assert [row.factor for row in got.rows] == [None, None, None]


@pytest.mark.parametrize("factors", [None, {}, {"a": None, "b": None}, {"c": 0.5}])
def test_a_group_without_factors_is_ungraded_and_falls_back(factors):
    assert (made(factors=factors).credit.regime, made(factors=factors).credit.reason) == ("fallback", "ungraded")


@pytest.mark.parametrize("method", sorted({*METHODS} - {"outcome"}))
@pytest.mark.parametrize(
    ("factors", "words"), [({"a": 1.0}, r"missing for \['b'\]"), ({"a": 1.0, "b": 1.1}, r"\{'b': 1.1\}, expected more")]
)
def test_factors_are_all_or_none_and_within_their_range(method, factors, words):
    with pytest.raises(ValueError, match=words):
        made(factors=factors, method=method)


def test_a_fallback_reads_no_factors_so_half_a_grade_cannot_stop_it():
    assert made(factors={"a": 7.0}, fallback_reason="deadline").credit.regime == "fallback"


def test_the_outcome_method_is_a_baseline_that_needs_no_grade():
    got = made(factors=None, method="outcome", fallback_reason="deadline")
    assert (got.credit.regime, got.credit.reason) == ("baseline", None)


def test_an_ineligible_group_passes_through_even_if_all_passed():
    got = made([Row("a", "passed", 0.2), Row("b", "passed", 0.8)], None, eligible=False)
    assert (got.credit.regime, got.credit.train) == ("ineligible", True)
    assert advantages(got) == pytest.approx({"a": -0.3, "b": 0.3})


@pytest.mark.parametrize(
    ("rows", "options", "regime", "reason"),
    [
        ([Row("a", "passed"), Row("b", "passed")], {}, "filtered", "filtered_all_passed"),
        ([Row("a", "failed", -0.5), Row("b", "failed")], {}, "filtered", "filtered_all_failed"),
        (ROWS, {"broken_evaluation": True}, "excluded", "excluded_broken_evaluation"),
        ([Row("a", "infra_invalid")], {}, "excluded", "excluded_no_valid_trajectory"),
        ([], {"eligible": False}, "excluded", "excluded_no_valid_trajectory"),
        ([Row("a", "passed"), Row("b", "failed", math.nan)], {}, "excluded", "excluded_bad_reward"),
        ([Row("a", "passed"), Row("b", "failed", math.inf)], {"eligible": False}, "excluded", "excluded_bad_reward"),
        (
            [Row("a", "passed"), Row("b", "failed", truncated=True)],
            {"mask_truncated": True},
            "filtered",
            "filtered_all_passed",
        ),
    ],
)
def test_a_group_that_does_not_train_is_zero_and_says_how_it_ended(rows, options, regime, reason):
    got = made(rows, None, **options)
    assert (got.credit.regime, got.credit.reason, got.status, got.credit.train) == (regime, reason, reason, False)
    assert set(advantages(got).values()) <= {0.0}
    rewards = {row.equivalent_reward for row in got.rows if row.equivalent_reward is not None}
    assert len(rewards) <= 1


def test_the_row_with_the_bad_reward_is_named_and_its_reward_is_null():
    got = made([Row("a", "passed"), Row("b", "failed", math.nan)], None)
    assert got.bad_reward == "b"
    assert got.rows[1].reward is None


def test_a_real_run_refuses_to_discount_negative_rewards():
    rows = [Row("a", "passed", -0.5), Row("b", "failed", -1.0)]
    refused = made(rows, {"a": 0.2}, method="reward_discount")
    assert (refused.credit.regime, refused.credit.reason) == ("fallback", "negative_reward")
    computed = made(rows, {"a": 0.2}, method="reward_discount", allow_negative_discount=True)
    assert computed.credit.regime == "baseline"
    assert computed.rows[0].equivalent_reward == pytest.approx(-0.1)


def test_every_number_can_travel_as_strict_json():
    for method in METHODS:
        got = made(SHAPED, {"a": 1.0, "b": 0.2}, method=method)
        for row in got.rows:
            json.dumps([row.reward, row.equivalent_reward, row.advantage, row.factor], allow_nan=False)
        json.dumps([got.credit.lambda_, got.credit.capped, got.credit.inverted_by_reward], allow_nan=False)
        json.dumps([got.credit.credit_kept, got.credit.penalty_kept], allow_nan=False)


def test_an_unknown_method_is_refused():
    with pytest.raises(ValueError, match="method is 'grpo', expected one of"):
        made(method="grpo")
