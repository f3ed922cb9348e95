import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training_bridge.redistribution.batches import BOUNDS, batches
from training_bridge.redistribution.outcome import outcome_advantages
from training_bridge.redistribution.safeguards import bounded, bounded_shaped
from training_bridge.redistribution.sum_preserving import redistribute

ALL = np.ones((1, 4), bool)
ONE_PASS = np.array([[True, False, False, False]])


def test_bounded_by_hand():
    # f = 0.2: lambda = 5 > 1.5. B = 1.5 * 0.2 * 0.75 = 0.225 on the pass, mean(B) = (0.225 - 0.75)/4 = -0.13125
    got = bounded(np.array([[0.75, -0.25, -0.25, -0.25]]), np.array([[0.2, 1, 1, 1]]), ONE_PASS, ALL, 1.5)
    np.testing.assert_allclose(got.train_BG, [[0.35625, -0.11875, -0.11875, -0.11875]])
    np.testing.assert_allclose(got.weighted_BG, [[0.225, -0.25, -0.25, -0.25]])
    assert (got.lambda_B.tolist(), got.capped_B.tolist()) == ([1.5], [True])


def test_shaped_by_hand():
    # r = 0.1, 1, 0.9, 0: mean 0.5, a+ of the passes = 0, 0.5, 0.4; f = 1, 0.85, 0.4
    # lambda = 0.9 / (0.425 + 0.16) = 1.538 > 1.5; B = 0, 0.6375, 0.24, -0.5; mean(B) = 0.094375
    rewards, passing = np.array([[0.1, 1, 0.9, 0]]), np.array([[True, True, True, False]])
    got = bounded_shaped(outcome_advantages(rewards, ALL), np.array([[1, 0.85, 0.4, 1]]), passing, ALL, 1.5)
    np.testing.assert_allclose(got.train_BG, [[-0.094375, 0.543125, 0.145625, -0.594375]])
    assert got.capped_B.tolist() == [True]


def test_no_pass_above_the_mean_skips_the_rescaling():
    # r = -0.5, -0.5, 0: a = -1/6, -1/6, 1/3; B = 0, 0, 1/3; mean(B) = 1/9
    rewards, passing, valid = np.array([[-0.5, -0.5, 0]]), np.array([[True, True, False]]), np.ones((1, 3), bool)
    got = bounded_shaped(outcome_advantages(rewards, valid), np.array([[0.9, 0.4, 1]]), passing, valid, 1.5)
    np.testing.assert_allclose(got.train_BG, [[-1 / 9, -1 / 9, 2 / 9]])
    assert (got.lambda_B.tolist(), got.capped_B.tolist()) == ([1.0], [False])


def test_lambda_at_the_bound_is_not_capped_though_floats_put_it_above():
    # f = 1, 0.6, 0.4: lambda = 1 / mean(f) = 1.5 on paper
    passing = np.array([[True, True, True, False]])
    advantages = outcome_advantages(passing.astype(float), ALL)
    assert not bounded(advantages, np.array([[1, 0.6, 0.4, 1]]), passing, ALL, 1.5).capped_B.any()
    assert bounded(advantages, np.array([[1, 0.6, 0.4 - 1e-9, 1]]), passing, ALL, 1.5).capped_B.all()


@pytest.mark.parametrize("bound", [0.99, 0.0, -1.0, float("nan")])
def test_a_bound_below_1_is_refused(bound):
    with pytest.raises(ValueError, match="lambda_max is .*, expected at least 1, or None"):
        bounded(np.zeros((1, 4)), np.ones((1, 4)), ONE_PASS, ALL, bound)


@given(batches(), BOUNDS)
def test_while_the_bound_is_slack_it_is_the_exact_form(batch, bound):
    rewards, factors, passing, valid = batch
    advantages = outcome_advantages(rewards, valid)
    exact, got = redistribute(advantages, factors, passing), bounded(advantages, factors, passing, valid, bound)
    slack = ~got.capped_B
    np.testing.assert_allclose(got.train_BG[slack], exact[slack], atol=1e-12)
    mean_factor = np.array([f[p].mean() for f, p in zip(factors, passing, strict=True)])
    if bound is not None:
        surely_above, surely_below = mean_factor * bound < 1 - 1e-9, mean_factor * bound > 1 + 1e-9
        assert got.capped_B[surely_above].all() and not got.capped_B[surely_below].any()
    else:
        assert slack.all()


@given(batches(), BOUNDS)
def test_equation_8_reduces_to_equation_7_on_binary_rewards(batch, bound):
    rewards, factors, passing, valid = batch
    advantages = outcome_advantages(rewards, valid)
    for one, other in zip(
        bounded(advantages, factors, passing, valid, bound),
        bounded_shaped(advantages, factors, passing, valid, bound),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


@given(batches(shaped=True), BOUNDS)
def test_training_advantages_sum_to_zero_and_masked_rows_get_none(batch, bound):
    rewards, factors, passing, valid = batch
    got = bounded_shaped(outcome_advantages(rewards, valid), factors, passing, valid, bound)
    np.testing.assert_allclose(got.train_BG.sum(-1), 0, atol=1e-11)
    np.testing.assert_array_equal(got.train_BG[~valid], 0)
    assert (got.lambda_B >= 1 - 1e-12).all() and (bound is None or (got.lambda_B <= bound).all())


@given(batches(), BOUNDS)
def test_passes_keep_the_order_of_their_factors_under_the_cap(batch, bound):
    rewards, factors, passing, valid = batch
    got = bounded(outcome_advantages(rewards, valid), factors, passing, valid, bound).train_BG
    for got_G, factors_G, passing_G in zip(got, factors, passing, strict=True):
        order = np.argsort(factors_G[passing_G], kind="stable")
        assert (np.diff(got_G[passing_G][order]) >= -1e-14).all()


@given(batches(shaped=True), BOUNDS)
def test_a_batch_is_its_groups_one_by_one(batch, bound):
    rewards, factors, passing, valid = batch
    whole = bounded_shaped(outcome_advantages(rewards, valid), factors, passing, valid, bound)
    for g in range(len(rewards)):
        alone = bounded_shaped(outcome_advantages(rewards[g], valid[g]), factors[g], passing[g], valid[g], bound)
        for one, all_of_them in zip(alone, whole, strict=True):
            np.testing.assert_allclose(one, all_of_them[g], atol=1e-14)


@given(batches(shaped=True), BOUNDS, st.randoms(use_true_random=False))
def test_the_order_of_the_rollouts_does_not_matter(batch, bound, random):
    rewards, factors, passing, valid = batch
    order = list(range(rewards.shape[-1]))
    random.shuffle(order)
    straight = bounded_shaped(outcome_advantages(rewards, valid), factors, passing, valid, bound)
    rewards, factors, passing, valid = (part[:, order] for part in batch)
    shuffled = bounded_shaped(outcome_advantages(rewards, valid), factors, passing, valid, bound)
    # A sum near 1e-12 may fall on either side of "nothing to rescale".
    if np.array_equal(straight.lambda_B == 1, shuffled.lambda_B == 1):
        np.testing.assert_allclose(shuffled.train_BG, straight.train_BG[:, order], atol=1e-9)


def test_no_function_writes_into_what_it_was_given():
    rng = np.random.default_rng(1)
    passing = np.array([[True, True, False, False], [True, True, True, True]])
    valid, factors = np.ones((2, 4), bool), rng.uniform(0.2, 1, (2, 4))
    advantages = outcome_advantages(rng.normal(size=(2, 4)), valid)
    before = [part.copy() for part in (advantages, factors, passing, valid)]
    bounded(advantages, factors, passing, valid, 1.5)
    bounded_shaped(advantages, factors, passing, valid, 1.5)
    redistribute(advantages, factors, passing)
    for now, then in zip((advantages, factors, passing, valid), before, strict=True):
        np.testing.assert_array_equal(now, then)
