import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training_bridge.redistribution.batches import batches
from training_bridge.redistribution.outcome import outcome_advantages
from training_bridge.redistribution.sum_preserving import conserves, redistribute

PASSING = np.array([[True, True, False, False]])


def test_redistribute_by_hand():
    # f = (1, 1/4): sum f A = 5/8, lambda = 1 / (5/8) = 8/5
    got = redistribute(np.array([[0.5, 0.5, -0.5, -0.5]]), np.array([[1, 0.25, 1, 1]]), PASSING)
    np.testing.assert_allclose(got, [[0.8, 0.2, -0.5, -0.5]])


@pytest.mark.parametrize("factors", [[0.2, 0.2, 1, 1], [1, 1, 1, 1]])
def test_equal_factors_change_nothing(factors):
    advantages = np.array([[0.5, 0.5, -0.5, -0.5]])
    np.testing.assert_allclose(redistribute(advantages, np.array([factors]), PASSING), advantages, rtol=1e-15)


def test_one_pass_keeps_everything_however_low_its_factor():
    advantages = np.array([[0.75, -0.25, -0.25, -0.25]])
    passing = np.array([[True, False, False, False]])
    got = redistribute(advantages, np.array([[0.2, np.nan, np.nan, np.nan]]), passing)
    np.testing.assert_allclose(got, advantages, rtol=1e-15)


def test_a_group_without_contrast_comes_back_as_it_is():
    nobody, everybody = np.zeros((1, 3), bool), np.ones((1, 3), bool)
    np.testing.assert_array_equal(redistribute(np.zeros((1, 3)), np.full((1, 3), np.nan), nobody), np.zeros((1, 3)))
    np.testing.assert_array_equal(
        redistribute(np.zeros((1, 3)), np.array([[1, 0.4, 0.2]]), everybody), np.zeros((1, 3))
    )


@pytest.mark.parametrize("bad", [0.0, -0.1, 1.0001, np.nan, np.inf])
def test_a_factor_that_is_read_must_lie_above_0_and_at_most_at_1(bad):
    with pytest.raises(ValueError, match=r"factor at \(0, 1\) is .*, expected more than 0 and at most 1"):
        redistribute(np.array([[0.5, 0.5, -0.5, -0.5]]), np.array([[1, bad, 1, 1]]), PASSING)


def test_a_factor_that_nobody_reads_may_be_anything():
    got = redistribute(np.array([[0.5, 0.5, -0.5, -0.5]]), np.array([[1, 0.25, np.nan, -7]]), PASSING)
    np.testing.assert_allclose(got, [[0.8, 0.2, -0.5, -0.5]])


@given(batches())
def test_the_passing_sum_the_failures_and_the_ratios_are_kept(batch):
    rewards, factors, passing, valid = batch
    advantages = outcome_advantages(rewards, valid)
    got = redistribute(advantages, factors, passing)
    np.testing.assert_array_equal(got[~passing], advantages[~passing])
    for got_G, advantages_G, factors_G, passing_G in zip(got, advantages, factors, passing, strict=True):
        np.testing.assert_allclose(got_G[passing_G].sum(), advantages_G[passing_G].sum(), rtol=1e-12)
        np.testing.assert_allclose(
            got_G[passing_G] * factors_G[passing_G][0], got_G[passing_G][0] * factors_G[passing_G]
        )
    assert conserves(got, advantages, passing, valid).all()


@given(batches())
def test_it_is_the_closed_form_of_equation_4(batch):
    rewards, factors, passing, valid = batch
    got = redistribute(outcome_advantages(rewards, valid), factors, passing)
    for g in range(len(got)):
        pass_rate = passing[g].sum() / valid[g].sum()
        expected = (1 - pass_rate) * factors[g][passing[g]] / factors[g][passing[g]].mean()
        np.testing.assert_allclose(got[g][passing[g]], expected, rtol=1e-12)


@given(batches(), st.randoms(use_true_random=False))
def test_the_order_of_the_rollouts_does_not_matter(batch, random):
    rewards, factors, passing, valid = batch
    order = list(range(rewards.shape[-1]))
    random.shuffle(order)
    straight = redistribute(outcome_advantages(rewards, valid), factors, passing)
    shuffled = redistribute(
        outcome_advantages(rewards[:, order], valid[:, order]), factors[:, order], passing[:, order]
    )
    np.testing.assert_allclose(shuffled, straight[:, order], atol=1e-14)


def test_conserves_sees_a_moved_sum_and_a_moved_failure():
    advantages, valid = np.array([[0.5, 0.5, -0.5, -0.5]] * 4), np.ones((4, 4), bool)
    train = advantages + np.array([[0, 0, 0, 0], [1e-11, 0, 0, 0], [0, 0, 1e-11, 0], [0.1, -0.1, 1e-13, 0]])
    got = conserves(train, advantages, np.repeat(PASSING, 4, 0), valid)
    assert got.tolist() == [True, False, False, True]
