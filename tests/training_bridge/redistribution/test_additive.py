import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from grading.scoring.rows import Row
from tests.training_bridge.redistribution.batches import batches
from training_bridge.payload import numbers
from training_bridge.redistribution.additive import neutral_when_equal, rubric_advantages
from training_bridge.redistribution.outcome import outcome_advantages
from training_bridge.redistribution.safeguards import bounded_shaped

GOLDEN = Path(__file__).resolve().parents[3].parent / "shared" / "golden" / "statistics.json"


def test_rubric_advantages_by_hand():
    # scores 1, 0.5, 0: mean 0.5, deviations 0.5, 0, -0.5, std (n - 1) = 0.5 -> 1, 0, -1 up to eps
    got = rubric_advantages(np.array([[1, 0.5, 0, np.nan]]), np.array([[True, True, True, False]]))
    np.testing.assert_allclose(got, [[1, 0, -1, 0]], atol=3e-6)


def test_the_golden_cases_of_the_additive_reading():
    if not GOLDEN.exists():
        pytest.skip("the golden file is not beside this checkout")
    cases = [c for c in json.loads(GOLDEN.read_text())["cases"] if c["statistic"] == "papo_advantages"]
    assert len(cases) == 4
    for case in cases:
        passing = np.array([case["inputs"]["rewards"]]) == 1
        got = rubric_advantages(np.array([case["inputs"]["process_scores"]], float), passing)
        np.testing.assert_allclose(got[0], case["expected"]["A_proc"], atol=case["tol"], err_msg=case["id"])


@given(batches())
def test_rubric_advantages_sum_to_zero_and_leave_failures_alone(batch):
    _, factors, passing, _ = batch
    got = rubric_advantages(factors, passing)
    np.testing.assert_allclose(got.sum(-1), 0, atol=1e-9)
    assert (got[~passing] == 0).all() and np.isfinite(got).all()


@given(batches())
def test_equal_factors_change_nothing_under_any_cap_once_they_are_neutral(batch):
    rewards, factors, passing, valid = batch
    equal = np.where(passing, 0.2, np.nan)
    advantages = outcome_advantages(rewards, valid)
    made = bounded_shaped(advantages, neutral_when_equal(equal, passing), passing, valid, 1.0)
    np.testing.assert_allclose(made.train_BG, advantages, atol=1e-12)
    assert not made.capped_B.any()
    best = np.where(passing, neutral_when_equal(factors, passing), 0).max(-1)
    np.testing.assert_allclose(best, 1.0)


def test_a_factor_outside_its_range_is_refused():
    with pytest.raises(ValueError, match="factor"):
        neutral_when_equal(np.array([[0.0, 1.0]]), np.array([[True, False]]))


def test_the_builder_takes_both_options_beside_the_method():
    # R = 1, 1, 0 and f = 0.2, 0.1: A = 1/3, 1/3, -2/3. Scores over the passes standardise to +-0.7071 (n - 1).
    rows = [Row("a", "passed"), Row("b", "passed"), Row("c", "failed")]
    said = {"lambda_max": 1.5, "eligible": True, "broken_evaluation": False, "mask_truncated": False}
    added = numbers(rows, {"a": 0.2, "b": 0.1}, method="additive_rubric", **said)
    np.testing.assert_allclose(added.credit.advantages_G, [1 / 3 + 0.7071, 1 / 3 - 0.7071, -2 / 3], atol=1e-4)
    assert added.credit.regime == "baseline"
    equal = {"a": 0.2, "b": 0.2}
    capped = numbers(rows, equal, method="redistribute", **said)
    neutral = numbers(rows, equal, method="redistribute", neutral_when_equal=True, **said)
    # f = 0.2: lambda 1.5 of 5, B = 0.1, 0.1, -2/3, centred by -7/45: 0.2556 of 0.3333 is kept
    assert capped.credit.capped and capped.credit.credit_kept == pytest.approx(23 / 30)
    assert neutral.credit.regime == "exact" and neutral.rows[0].factor == 1.0
    np.testing.assert_allclose(neutral.credit.advantages_G, [1 / 3, 1 / 3, -2 / 3], atol=1e-12)
