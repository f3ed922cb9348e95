"""Packed points: what is kept when there are more than a panel can show."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from training_bridge.monitor.packing import from_bytes, joined, placed, thin, to_bytes

NAN = float("nan")


def test_thin_by_hand():
    # 12 points in 2 bins of 6: lowest and highest of each, the gap, both ends
    values_N = np.array([1, 5, 2, -7, 2, 3, 4, 4, 9, NAN, 4, 0.0])
    steps_N, kept_N = thin(np.arange(12), values_N, 2)
    assert {1, 3, 8, 9} <= set(steps_N.tolist()) and {0, 11} <= set(steps_N.tolist())
    assert np.isnan(kept_N[steps_N == 9]).all() and len(steps_N) <= 8


def test_few_points_stay_as_they_are():
    steps_N, values_N = np.arange(4), np.array([1.0, NAN, 3.0, 4.0])
    assert thin(steps_N, values_N, 2)[1] is values_N


def test_nothing_but_gaps_keeps_its_ends():
    steps_N, values_N = thin(np.arange(100), np.full(100, NAN), 3)
    assert (steps_N[0], steps_N[-1]) == (0, 99) and np.isnan(values_N).all()


@given(st.lists(st.one_of(st.floats(-1e9, 1e9), st.just(NAN)), min_size=1, max_size=400), st.integers(1, 40))
def test_extremes_gaps_and_ends_survive_and_nothing_is_invented(values, bins):
    values_N, steps_N = np.array(values, float), np.arange(len(values)) * 3
    kept_steps_N, kept_N = thin(steps_N, values_N, bins)
    np.testing.assert_array_equal(kept_N, values_N[kept_steps_N // 3])
    assert (np.diff(kept_steps_N) > 0).all() and len(kept_N) <= max(2 * bins, 3 * bins + 2)
    if not np.isnan(values_N).all():
        assert (np.nanmin(kept_N), np.nanmax(kept_N)) == (np.nanmin(values_N), np.nanmax(values_N))
    assert np.isnan(kept_N).any() == np.isnan(values_N).any()


def test_packed_points_come_back_and_a_cut_pack_is_refused():
    points = np.array([3, 9, 2**31 - 1]), np.array([0.1, NAN, -1e300])
    for found, wanted in zip(from_bytes(to_bytes(*points)), points, strict=True):
        np.testing.assert_array_equal(found, wanted)
    with pytest.raises(ValueError, match="multiple of 16"):
        from_bytes(b"123")
    assert [part.tolist() for part in joined([])] == [[], []]


def test_a_late_value_takes_its_place_or_another_ones():
    steps_N, values_N = placed(np.array([1, 5]), np.array([0.1, 0.5]), {5: 0.7, 3: 0.3})
    assert steps_N.tolist() == [1, 3, 5] and values_N.tolist() == [0.1, 0.3, 0.7]
