import numpy as np
import pytest
from hypothesis import given

from tests.training_bridge.redistribution.batches import batches
from training_bridge.redistribution.baselines import deficit, discounted_rewards, downweight_only, favours_the_worse
from training_bridge.redistribution.outcome import outcome_advantages

PASSING = np.array([[True, True, False]])
FACTORS = np.array([[1, 0.4, np.nan]])


def test_downweight_only_by_hand():
    # A = 1/3, 1/3, -2/3 and f = 1, 0.4: 1/3, 2/15, -2/3; deficit (1 - 0.4)/3 = 0.2
    advantages = np.array([[1 / 3, 1 / 3, -2 / 3]])
    np.testing.assert_allclose(downweight_only(advantages, FACTORS, PASSING), [[1 / 3, 2 / 15, -2 / 3]])
    np.testing.assert_allclose(deficit(advantages, FACTORS, PASSING), [0.2])


def test_downweighting_clips_a_pass_below_the_mean():
    got = downweight_only(np.array([[0.5, -0.2, -0.3]]), FACTORS, PASSING)
    np.testing.assert_allclose(got, [[0.5, 0, -0.3]])


def test_factors_of_one_take_nothing():
    advantages = np.array([[1 / 3, 1 / 3, -2 / 3]])
    np.testing.assert_array_equal(downweight_only(advantages, np.ones((1, 3)), PASSING), advantages)
    assert deficit(advantages, np.ones((1, 3)), PASSING).tolist() == [0.0]


def test_discounted_rewards_by_hand():
    # R^ = 1, 0.4, 0, mean 1.4/3: 0.5333, -0.0667, -0.4667. Eq. (11): the second pass ends below zero
    discounted = discounted_rewards(np.array([[1.0, 1, 0]]), FACTORS, PASSING)
    np.testing.assert_allclose(discounted, [[1, 0.4, 0]])
    got = outcome_advantages(discounted, np.ones((1, 3), bool))
    np.testing.assert_allclose(got, [[1.6 / 3, -0.2 / 3, -1.4 / 3]])


def test_discounting_a_negative_reward_favours_the_worse():
    rewards = np.array([[-0.5, -0.5, 0.0], [0.5, 0.0, -1.0]])
    passing = np.repeat(PASSING, 2, 0)
    better, worse = discounted_rewards(rewards[:1], FACTORS, PASSING)[0, :2]
    assert worse > better
    assert favours_the_worse(rewards, passing).tolist() == [True, False]


@pytest.mark.parametrize("function", [downweight_only, deficit, discounted_rewards])
def test_baselines_check_factors_and_shapes_too(function):
    with pytest.raises(ValueError, match="factor at"):
        function(np.zeros((1, 3)), np.array([[1, 0, 1]]), PASSING)
    with pytest.raises(ValueError, match="shape"):
        function(np.zeros((1, 3)), np.ones((1, 2)), PASSING)


@given(batches())
def test_downweighting_alone_leaves_the_group_short_by_the_deficit(batch):
    rewards, factors, passing, valid = batch
    advantages = outcome_advantages(rewards, valid)
    missing = deficit(advantages, factors, passing)
    assert (missing >= 0).all()
    np.testing.assert_allclose(downweight_only(advantages, factors, passing).sum(-1), -missing, atol=1e-12)
