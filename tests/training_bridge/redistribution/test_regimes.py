import math

import numpy as np
import pytest
from hypothesis import given

from tests.training_bridge.redistribution.batches import BOUNDS, batches
from training_bridge.redistribution.regimes import (
    Group,
    Groups,
    baseline_credit,
    introduces_inversion,
    no_credit,
    redistributed_credit,
    redistributed_credits,
    untouched_credit,
    untouched_credits,
)


def group(rewards, n_passing, n_valid=None):
    """The first rows pass, the last ones are masked."""
    places = np.arange(len(rewards))
    valid = places < (len(rewards) if n_valid is None else n_valid)
    return Group(np.array(rewards, float), places < n_passing, valid)


def test_exact_keeps_all_credit_and_all_penalty():
    # lambda = 1 / mean(1, 0.9) = 1.0526
    got = redistributed_credit(group([1, 1, 0], 2), np.array([1, 0.9, np.nan]), 1.5)
    assert (got.regime, got.capped, got.train, got.reason) == ("exact", False, True, None)
    assert math.isclose(got.lambda_, 1 / 0.95)
    assert math.isclose(got.credit_kept, 1) and math.isclose(got.penalty_kept, 1)


def test_bounded_says_what_was_lost():
    # one T3 pass of 4: 0.35625 of 0.75 is left, and the failures keep 0.11875 of 0.25
    got = redistributed_credit(group([1, 0, 0, 0], 1), np.array([0.2, np.nan, np.nan, np.nan]), 1.5)
    assert (got.regime, got.capped, got.lambda_) == ("bounded", True, 1.5)
    np.testing.assert_allclose(got.advantages_G, [0.35625, -0.11875, -0.11875, -0.11875])
    assert math.isclose(got.credit_kept, 0.475) and math.isclose(got.penalty_kept, 0.475)
    assert math.isclose(got.positive_sum, 0.35625) and math.isclose(got.negative_sum, -0.35625)


def test_clipped_is_uncapped_with_a_pass_below_the_mean():
    # r = 0.1, 1, 0.9, 0: the first pass lies 0.4 below the mean and is clipped to 0 before centring
    got = redistributed_credit(group([0.1, 1, 0.9, 0], 3), np.array([0.9, 0.9, 1, np.nan]), None)
    assert (got.regime, got.capped) == ("clipped", False)
    # a+ = 0, 0.5, 0.4 sums to 0.9; training leaves -0.1 + 0.37647 + 0.32353 = 0.6 of it, and 0.6 of the penalty 0.5
    assert math.isclose(got.credit_kept, 0.6 / 0.9) and math.isclose(got.penalty_kept, 1.2)


def test_a_pass_exactly_at_the_mean_is_still_exact():
    # r = 1, 0.5, 0: a = 0.5, 0, -0.5
    got = redistributed_credit(group([1, 0.5, 0], 2), np.array([0.9, 0.2, np.nan]), 1.5)
    assert got.regime == "exact"
    np.testing.assert_allclose(got.advantages_G, [0.5, 0, -0.5], atol=1e-15)


def test_an_inversion_that_the_rewards_brought_is_delivered_and_said():
    # the failure at 0.2 stood above both passes before grading
    got = redistributed_credit(group([-0.4, -0.6, 0.2], 2), np.array([0.9, 0.4, np.nan]), 1.5)
    assert (got.regime, got.inverted_by_reward, got.reason) == ("clipped", True, None)


def test_an_inversion_that_redistribution_brings_falls_back_with_the_reason():
    # r = 2, 1, 0.9, -3.9: mean 0, and the failure at 0.9 lies below both passes.
    # f = 1, 0.2: lambda = 3 / 2.2, the second pass would get 0.27 and end below the failure
    rewards = [2, 1, 0.9, -3.9]
    got = redistributed_credit(group(rewards, 2), np.array([1, 0.2, np.nan, np.nan]), None)
    assert (got.regime, got.reason) == ("fallback", "redistribution_inverts_order")
    assert (got.inverted_by_reward, got.train, got.lambda_, got.capped) == (False, True, 1.0, False)
    np.testing.assert_allclose(got.advantages_G, rewards, atol=1e-15)
    np.testing.assert_allclose(got.equivalent_rewards_G, rewards, atol=1e-15)


def test_one_old_inversion_does_not_excuse_a_new_one():
    # the last pass stood below the failure already; the second comes to stand below it by its factor
    got = redistributed_credit(group([2, 1, -1, 0.9, -2.9], 3), np.array([1, 0.2, 1, np.nan, np.nan]), None)
    assert (got.regime, got.reason) == ("fallback", "redistribution_inverts_order")
    assert got.inverted_by_reward


def test_numbers_beyond_a_double_fall_back_instead_of_spreading():
    factors = np.array([1e-310, np.nan])
    got = redistributed_credit(group([1e300, 0], 1), factors, None)
    assert (got.regime, got.reason) == ("fallback", "not_finite")
    assert all(map(math.isfinite, got.advantages_G))


def test_downweighting_keeps_the_penalty_and_loses_credit():
    # A = 1/3, 1/3, -2/3 and f = 1, 0.4: 7/15 of 2/3 is left
    got = baseline_credit(group([1, 1, 0], 2), np.array([1, 0.4, np.nan]), "downweight_only")
    assert got.regime == "baseline"
    assert math.isclose(got.credit_kept, 0.7) and math.isclose(got.penalty_kept, 1)


def test_discounted_rewards_are_their_own_equivalent():
    got = baseline_credit(group([1, 1, 0, 9], 2, n_valid=3), np.array([1, 0.4, np.nan, np.nan]), "reward_discount")
    np.testing.assert_allclose(got.equivalent_rewards_G, [1, 0.4, 0, 0], atol=1e-15)
    np.testing.assert_allclose(got.advantages_G, [1.6 / 3, -0.2 / 3, -1.4 / 3, 0], atol=1e-15)


def test_another_method_is_no_baseline():
    with pytest.raises(ValueError, match="method is 'redistribute', expected one of"):
        baseline_credit(group([1, 0], 1), np.array([1, np.nan]), "redistribute")


def test_untouched_credit_neither_clips_nor_scales():
    got = untouched_credit(group([0.1, 1, 0.3], 2), "fallback", "deadline")
    np.testing.assert_allclose(got.advantages_G, np.array([0.1, 1, 0.3]) - 1.4 / 3)
    np.testing.assert_allclose(got.equivalent_rewards_G, [0.1, 1, 0.3])
    assert (got.reason, got.train, got.inverted_by_reward) == ("deadline", True, True)
    with pytest.raises(ValueError, match="regime is 'exact'"):
        untouched_credit(group([1, 0], 1), "exact")


@pytest.mark.parametrize("rewards", [[1, 1, 0.4], [math.nan, 1, 0], [1e308, 1e308, 1e308], []])
def test_a_group_that_does_not_train_is_zero_throughout_whatever_its_rewards(rewards):
    got = no_credit(group(rewards, len(rewards)), "excluded", "excluded_bad_reward")
    assert (got.train, got.credit_kept, got.positive_sum) == (False, None, 0.0)
    assert got.advantages_G == (0.0,) * len(rewards)
    assert len(set(got.equivalent_rewards_G)) <= 1 and all(map(math.isfinite, got.equivalent_rewards_G))
    with pytest.raises(ValueError, match="regime is 'fallback'"):
        no_credit(group(rewards, len(rewards)), "fallback", "deadline")


@given(batches(shaped=True), BOUNDS)
def test_the_regime_is_what_the_numbers_say(batch, bound):
    for rewards, factors, passing, valid in zip(*batch, strict=True):
        made = Group(rewards, passing, valid)
        got, before = (
            redistributed_credit(made, factors, bound),
            np.array(untouched_credit(made, "fallback").advantages_G),
        )
        after = np.array(got.advantages_G)
        assert not introduces_inversion(after[None], before[None], Groups.of([made]))
        assert math.isclose(got.positive_sum, -got.negative_sum, abs_tol=1e-11)
        if got.regime == "exact":
            np.testing.assert_allclose(after[valid & ~passing], before[valid & ~passing], atol=1e-11)
            np.testing.assert_allclose(after[passing].sum(), before[passing].sum(), atol=1e-11)
        if got.regime == "clipped":
            assert not got.capped and (before[passing] < 0).any()
        if got.regime == "bounded":
            assert got.capped and got.lambda_ == bound


@given(batches(shaped=True), BOUNDS)
def test_a_group_gets_the_same_bits_alone_as_among_others(batch, bound):
    """A new epoch delivers it among others than the first time: two texts of one version must not differ."""
    rewards, factors, passing, valid = batch
    groups = [Group(*group) for group in zip(rewards, passing, valid, strict=True)]
    together = redistributed_credits(Groups.of(groups), factors, bound)
    assert together == [redistributed_credit(group, f, bound) for group, f in zip(groups, factors, strict=True)]
    said = ["fallback"] * len(groups), ["deadline"] * len(groups)
    alone = [untouched_credit(group, "fallback", "deadline") for group in groups]
    assert untouched_credits(Groups.of(groups), *said) == alone


@given(batches(), BOUNDS)
def test_binary_rewards_know_only_exact_and_bounded(batch, bound):
    for rewards, factors, passing, valid in zip(*batch, strict=True):
        got = redistributed_credit(Group(rewards, passing, valid), factors, bound)
        assert got.regime == ("bounded" if got.capped else "exact")
        assert not got.inverted_by_reward
        assert got.capped or math.isclose(got.credit_kept, 1, rel_tol=1e-9)
