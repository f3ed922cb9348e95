import numpy as np
import pytest

from training_bridge.redistribution.masks import group_sizes, group_sums, keep


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_keep_is_where_with_zero_whatever_stood_there(dtype):
    values = np.array([[1.5, np.nan, -np.inf, -0.0, 7.0]], dtype)
    mask = np.array([[True, False, False, True, False]])
    got = keep(values, mask)
    np.testing.assert_array_equal(got, [[1.5, 0, 0, 0, 0]])
    assert got.dtype == dtype


def test_keep_takes_slices_and_transposes_as_they_are():
    values, mask = np.arange(24.0).reshape(4, 6), np.arange(24).reshape(4, 6) % 3 == 0
    for view in (np.s_[:, ::2], np.s_[::-1, 1:]):
        np.testing.assert_array_equal(keep(values[view], mask[view]), np.where(mask[view], values[view], 0))
    np.testing.assert_array_equal(keep(values.T, mask.T), np.where(mask.T, values.T, 0))


def test_sums_and_sizes_are_taken_group_by_group():
    values, mask = np.ones((2, 3, 300), np.float32), np.ones((2, 3, 300), bool)
    mask[0, 0, :] = False
    assert group_sums(values).tolist() == [[[300.0]] * 3] * 2
    assert group_sizes(mask, values).tolist() == [[[0.0], [300.0], [300.0]], [[300.0]] * 3]
    assert group_sizes(np.ones((2, 300), bool), values).tolist() == [[300.0], [300.0]]
