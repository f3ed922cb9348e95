"""The probe that compares what a trainer trains on with what was decided."""

import numpy as np
import pytest

from training_bridge.adapters.fidelity import FidelityError, check

DECIDED = np.array([0.3808, 0.3237, 0.1238, -0.2761, -0.2761, -0.2761, 0.0])  # the last one is invalid


def caught(got, expected=DECIDED) -> str:
    with pytest.raises(FidelityError) as error:
        check(expected, got, group="28/t-1", trainer="TRL (scale_rewards)")
    return str(error.value)


def test_the_same_numbers_in_float32_pass():
    assert check(DECIDED, DECIDED.astype(np.float32), group="g", trainer="TRL") < 1e-7
    assert check([], [], group="g", trainer="TRL") == 0.0


@pytest.mark.parametrize("ddof", [0, 1])
def test_a_division_by_the_standard_deviation_is_named(ddof):
    words = caught(DECIDED / (DECIDED.std(ddof=ddof) + 1e-4))
    assert "standard deviation" in words and "28/t-1" in words and "TRL (scale_rewards)" in words


def test_leave_one_out_is_named():
    assert "leave-one-out" in caught(DECIDED * 7 / 6)


def test_clipping_is_named_with_its_bound():
    assert "clipping at 0.3" in caught(np.clip(DECIDED, -0.3, 0.3))


def test_another_order_another_baseline_and_another_scale_are_named():
    assert "another order" in caught(DECIDED[::-1])
    assert "shifted by 0.25" in caught(DECIDED + 0.25)
    assert "multiplied by 0.6" in caught(DECIDED * 0.6)
    assert "all zero" in caught(np.zeros(7))


def test_nan_and_lost_rows_are_caught():
    assert "NaN" in caught(np.where(DECIDED > 0.3, np.nan, DECIDED))
    assert "6 rollouts, expected 7" in caught(DECIDED[:-1])


def test_what_nothing_known_explains_is_said_so():
    assert "No known setting" in caught(DECIDED + np.array([0.1, -0.2, 0.05, 0.01, 0.3, -0.1, 0.02]))
