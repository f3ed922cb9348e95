from collections import Counter

import numpy as np
import pytest
from hypothesis import given

from grading.scoring.rows import Row
from grading.states import Method
from tests.training_bridge.redistribution.batches import batches
from training_bridge.payload import numbers
from training_bridge.redistribution import regimes
from training_bridge.redistribution.controls import inverted_factors, shuffled_factors

SAID = {"lambda_max": 1.5, "eligible": True, "broken_evaluation": False, "mask_truncated": False}


def test_inverted_by_hand():
    # rising 0.4, 0.85, 0.85, 1 meets falling 1, 0.85, 0.85, 0.4; the failure is not read
    got = inverted_factors(np.array([0.85, 1, np.nan, 0.4, 0.85]), np.array([True, True, False, True, True]))
    np.testing.assert_allclose(got, [0.85, 0.4, np.nan, 1, 0.85])


def test_equal_factors_stay_equal_and_share_what_their_places_get():
    # rising 0.2, 0.2, 1 meets falling 1, 0.2, 0.2: the equal ones share 1.2
    got = inverted_factors(np.array([0.2, 1, 0.2]), np.array([True, True, True]))
    np.testing.assert_allclose(got, [0.6, 0.2, 0.6])


@given(batches())
def test_inverting_keeps_the_sum_and_never_agrees_on_an_order(batch):
    _, factors_BG, passing_BG, _ = batch
    for factors_G, passing_G in zip(factors_BG, passing_BG, strict=True):
        before_P, after_P = factors_G[passing_G], inverted_factors(factors_G, passing_G)[passing_G]
        assert after_P.sum() == pytest.approx(before_P.sum())
        assert (np.sign(before_P[:, None] - before_P) * np.sign(after_P[:, None] - after_P) <= 0).all()


@given(batches())
def test_shuffling_uses_each_factor_once_and_forgets_the_order_of_the_rows(batch):
    _, factors_BG, passing_BG, _ = batch
    ids = np.array([f"r{n}" for n in range(factors_BG.shape[1])])
    for factors_G, passing_G in zip(factors_BG, passing_BG, strict=True):
        got_G = shuffled_factors(factors_G, passing_G, ids)
        assert Counter(got_G[passing_G]) == Counter(factors_G[passing_G])
        backwards_G = shuffled_factors(factors_G[::-1].copy(), passing_G[::-1].copy(), ids[::-1])
        np.testing.assert_array_equal(backwards_G[::-1], got_G)


def test_over_many_groups_every_pass_gets_every_factor_equally_often():
    factors, passing = np.array([1, 0.8, 0.4, 0.2]), np.ones(4, bool)
    dealt = [shuffled_factors(factors, passing, [f"g{n}-r{i}" for i in range(4)]) for n in range(1000)]
    for place in range(4):
        counts = Counter(row[place] for row in dealt)
        # binomial: 250 +- 14
        assert all(190 < counts[factor] < 310 for factor in factors), counts


def test_a_factor_outside_its_range_is_refused():
    with pytest.raises(ValueError, match="factor"):
        inverted_factors(np.array([0.5, 1.5]), np.array([True, True]))
    with pytest.raises(ValueError, match="factor"):
        shuffled_factors(np.array([0.5, 1.5]), np.array([True, True]), ["a", "b"])


def test_a_control_redistributes_the_same_credit_and_is_a_baseline():
    # R = 1, 1, 0, f = 1, 0.5: lambda = 2 / 1.5 = 4/3, so a gets 4/9, b 2/9 of S+ = 2/3; inverted, b gets 4/9
    rows = [Row("a", "passed"), Row("b", "passed"), Row("c", "failed")]
    got = numbers(rows, {"a": 1.0, "b": 0.5}, method="redistribute_inverted", **SAID)
    np.testing.assert_allclose(got.credit.advantages_G, [2 / 9, 4 / 9, -2 / 3])
    assert (got.credit.regime, got.credit.lambda_) == ("baseline", pytest.approx(4 / 3))
    assert [row.factor for row in got.rows] == [0.5, 1.0, None]
    dealt = numbers(rows, {"a": 1.0, "b": 0.5}, method="redistribute_shuffled", **SAID)
    assert sorted(dealt.credit.advantages_G) == pytest.approx([-2 / 3, 2 / 9, 4 / 9])
    assert dealt == numbers(rows, {"a": 1.0, "b": 0.5}, method="redistribute_shuffled", **SAID)
    assert (dealt.credit.regime, dealt.credit.credit_kept) == ("baseline", pytest.approx(1))


def test_a_control_without_a_grade_falls_back_as_the_method_does():
    rows = [Row("a", "passed"), Row("b", "failed")]
    for method in regimes.CONTROLS:
        got = numbers(rows, None, method=method, fallback_reason="deadline", **SAID)
        assert (got.credit.regime, got.credit.reason) == ("fallback", "deadline")


def test_every_method_can_be_chosen_for_a_run_and_none_but_the_paper_s_is_the_default():
    from grading.models import Run

    assert set(Method) == set(regimes.METHODS)
    field = Run._meta.get_field("method")
    assert field.default == "redistribute" and max(map(len, regimes.METHODS)) <= field.max_length
