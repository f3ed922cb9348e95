import numpy as np
import pytest
from hypothesis import given

from tests.training_bridge.redistribution.batches import batches
from training_bridge.redistribution.outcome import mean_rewards, mixed, outcome_advantages


def test_outcome_advantages_by_hand():
    # valid rewards 1, 1, 0: mean 2/3
    got = outcome_advantages(np.array([[1, 1, 0, 7]]), np.array([[True, True, True, False]]))
    np.testing.assert_allclose(got, [[1 / 3, 1 / 3, -2 / 3, 0]], atol=1e-15)


def test_a_masked_row_is_not_read_even_if_it_is_no_number():
    got = outcome_advantages(np.array([[np.nan, 1.0, 0.0]]), np.array([[False, True, True]]))
    np.testing.assert_array_equal(got, [[0, 0.5, -0.5]])


def test_groups_without_contrast_get_zeros():
    rewards = np.array([[0.7, 0.7], [3.0, 9.0], [5.0, 9.0]])
    valid = np.array([[True, True], [True, False], [False, False]])
    np.testing.assert_array_equal(outcome_advantages(rewards, valid), np.zeros((3, 2)))
    np.testing.assert_allclose(mean_rewards(rewards, valid), [[0.7], [3.0], [0.0]])


def test_mixed_asks_for_a_valid_pass_and_a_valid_failure():
    passing = np.array([[True, False], [True, True], [False, False], [True, False], [False, False]])
    valid = np.array([[True, True], [True, True], [True, True], [True, False], [False, False]])
    assert mixed(passing, valid).tolist() == [True, False, False, False, False]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_keep_their_dtype_and_the_input_is_left_alone(dtype):
    rewards = np.array([[1, 0, 0]], dtype)
    got = outcome_advantages(rewards, np.array([[True, True, True]]))
    assert got.dtype == dtype
    np.testing.assert_array_equal(rewards, [[1, 0, 0]])


def test_masks_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"mask has shape \(1, 2\), expected \(1, 3\)"):
        outcome_advantages(np.zeros((1, 3)), np.ones((1, 2), bool))
    with pytest.raises(ValueError, match="mask has dtype int64, expected bool"):
        outcome_advantages(np.zeros((1, 3)), np.ones((1, 3), int))


@given(batches(shaped=True))
def test_outcome_advantages_sum_to_zero(batch):
    rewards, _, _, valid = batch
    np.testing.assert_allclose(outcome_advantages(rewards, valid).sum(-1), 0, atol=1e-12)
