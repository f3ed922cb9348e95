import numpy as np
from hypothesis import given

from tests.training_bridge.redistribution.batches import BOUNDS, batches
from training_bridge.redistribution.outcome import outcome_advantages
from training_bridge.redistribution.reward_space import equivalent_rewards
from training_bridge.redistribution.safeguards import bounded_shaped
from training_bridge.redistribution.sum_preserving import redistribute


def test_equivalent_rewards_by_hand():
    # R = 1, 1, 0, 0 and f = 1, 1/4: mean(R) + (1 - mean(R)) f / mean(f) = 0.5 + 0.5 * (1.6, 0.4) = 1.3, 0.7. Eq. (9)
    rewards, passing, valid = np.array([[1.0, 1, 0, 0]]), np.array([[True, True, False, False]]), np.ones((1, 4), bool)
    star = redistribute(outcome_advantages(rewards, valid), np.array([[1, 0.25, 1, 1]]), passing)
    np.testing.assert_allclose(equivalent_rewards(star, rewards, valid), [[1.3, 0.7, 0, 0]], atol=1e-15)


def test_outcome_advantages_are_equivalent_to_the_rewards_themselves():
    rewards, valid = np.array([[0.9, -0.3, 5.0]]), np.array([[True, True, False]])
    got = equivalent_rewards(outcome_advantages(rewards, valid), rewards, valid)
    np.testing.assert_allclose(got, [[0.9, -0.3, 0]])


@given(batches(shaped=True), BOUNDS)
def test_a_trainer_that_centres_the_equivalent_rewards_gets_the_training_advantages(batch, bound):
    rewards, factors, passing, valid = batch
    made = bounded_shaped(outcome_advantages(rewards, valid), factors, passing, valid, bound)
    centred = outcome_advantages(equivalent_rewards(made.weighted_BG, rewards, valid), valid)
    np.testing.assert_allclose(centred, made.train_BG, atol=1e-12)
