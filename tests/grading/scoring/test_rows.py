import math

import pytest

from grading.scoring.rows import Row, effective_group


def group(*rows, **options):
    return effective_group([Row(str(i), **row) for i, row in enumerate(rows)], **options)


PASS, FAIL, INVALID = {"outcome": "passed"}, {"outcome": "failed"}, {"outcome": "infra_invalid"}


@pytest.mark.parametrize(
    ("rows", "status"),
    [
        ([PASS, FAIL], "ok"),
        ([PASS, PASS], "filtered_all_passed"),
        ([FAIL, FAIL], "filtered_all_failed"),
        ([PASS], "filtered_all_passed"),
        ([FAIL], "filtered_all_failed"),
        ([PASS, INVALID], "filtered_all_passed"),
        ([INVALID, INVALID], "excluded_no_valid_trajectory"),
        ([], "excluded_no_valid_trajectory"),
        ([PASS | {"reward": 1.0}, PASS | {"reward": 0.2}], "filtered_all_passed"),
        ([PASS, FAIL | {"reward": math.nan}], "excluded_bad_reward"),
        ([PASS, PASS | {"reward": math.inf}], "excluded_bad_reward"),
        ([PASS, FAIL, INVALID | {"reward": math.nan}], "ok"),
        ([PASS, FAIL, PASS | {"reward": math.nan, "integrity": "hack"}], "ok"),
        ([PASS | {"integrity": "leak"}, FAIL], "filtered_all_failed"),
        ([PASS, PASS | {"integrity": "hack"}], "ok"),
    ],
)
def test_dynamic_sampling_sorts_groups_by_effective_outcome(rows, status):
    assert group(*rows).status == status


def test_a_broken_evaluation_comes_before_everything_else():
    assert group(PASS, FAIL | {"reward": math.nan}, broken_evaluation=True).status == "excluded_broken_evaluation"


def test_the_row_with_the_bad_reward_is_named():
    got = group(PASS, FAIL | {"reward": -math.inf}, FAIL)
    assert got.bad_reward == "1"
    assert [row.reward for row in got.rows] == [1.0, None, 0.0]


def test_a_reward_whose_sums_would_overflow_is_bad_and_named():
    got = group(PASS, FAIL | {"reward": -1e308}, FAIL)
    assert (got.status, got.bad_reward) == ("excluded_bad_reward", "1")


def test_truncated_rows_are_masked_only_where_the_run_says_so():
    rows = [PASS, FAIL | {"truncated": True}]
    assert group(*rows).status == "ok"
    masked = group(*rows, mask_truncated=True)
    assert masked.status == "filtered_all_passed"
    assert [(row.outcome, row.valid, row.reward) for row in masked.rows] == [
        ("passed", True, 1.0),
        ("failed", False, None),
    ]


def test_a_confirmed_finding_fails_the_row_and_takes_the_lowest_reward():
    got = group(
        PASS | {"reward": 0.9},
        PASS | {"reward": 0.8, "integrity": "hack"},
        FAIL | {"reward": -0.2},
        FAIL | {"reward": -0.7, "integrity": "leak"},
        INVALID | {"reward": -5.0, "integrity": "hack"},
    )
    # lowest of 0 and the trusted rewards 0.9 and -0.2; neither the other finding nor the masked row sets it
    assert [(row.outcome, row.reward) for row in got.rows] == [
        ("passed", 0.9),
        ("failed", -0.2),
        ("failed", -0.2),
        ("failed", -0.2),
        ("infra_invalid", None),
    ]
    assert [row.passing for row in got.rows] == [True, False, False, False, False]


def test_a_confirmed_finding_among_binary_rewards_gets_0():
    got = group(PASS | {"integrity": "hack"}, PASS, PASS)
    assert [row.reward for row in got.rows] == [0.0, 1.0, 1.0]


def test_rows_with_a_reward_and_rows_without_mix():
    assert [row.reward for row in group(PASS | {"reward": 0.8}, PASS, FAIL).rows] == [0.8, 1.0, 0.0]


@pytest.mark.parametrize("wrong", [{"outcome": "crashed"}, PASS | {"integrity": "rude"}])
def test_unknown_words_are_refused(wrong):
    with pytest.raises(ValueError, match="expected"):
        Row("a", **wrong)


def test_one_id_twice_is_refused():
    with pytest.raises(ValueError, match="more than once"):
        effective_group([Row("a", "passed"), Row("a", "failed")])
