"""Confidence sequences: they hold at every look, and a test that is not made for that does not."""

import numpy as np
import pytest

from grading.calibration.anytime import confidence_sequence, watch

LOOKS = 400


def test_the_first_value_by_hand():
    # l_1 = sqrt(2 ln 4 / (1/4 * 1 * ln 2)) = 4, so bets are at their most: c/m and c/(1-m). x = 1:
    # K+ = 1 + (3/4)(1-m)/m < 4 for m > 1/5; K- < 1 never counts. The grid is one step of 1/200 wider.
    ((low, high),) = confidence_sequence(np.array([1.0]), 0.5)
    assert (low, high) == (pytest.approx(0.2, abs=0.0051), 1.0)


def test_no_value_and_values_outside():
    assert confidence_sequence(np.zeros(0), 0.1).shape == (0, 2)
    with pytest.raises(ValueError, match="expected 0 to 1"):
        confidence_sequence(np.array([0.5, 1.2]), 0.1)


def test_it_is_symmetric_and_goes_on_over_the_seam_of_its_blocks(monkeypatch):
    values = np.random.default_rng(3).beta(2, 1, 130)
    whole = confidence_sequence(values, 0.1)
    np.testing.assert_allclose(confidence_sequence(1 - values, 0.1), 1 - whole[:, ::-1])
    monkeypatch.setattr("grading.calibration.anytime.AT_ONCE", 7)
    np.testing.assert_allclose(confidence_sequence(values, 0.1), whole)


@pytest.mark.parametrize("draw", [lambda r: r.random(LOOKS) < 0.1, lambda r: r.beta(0.5, 0.2, LOOKS)])
def test_looking_after_every_value_misses_the_mean_less_often_than_its_level(draw):
    truth = {True: 0.1, False: 0.5 / 0.7}[draw(np.random.default_rng(0)).dtype == bool]
    missed, naive = 0, 0
    for seed in range(150):
        values = draw(np.random.default_rng(seed)).astype(float)
        band = confidence_sequence(values, 0.1)
        missed += ((band[:, 0] > truth) | (band[:, 1] < truth)).any()
        n = np.arange(1, LOOKS + 1)
        mean = values.cumsum() / n
        error = np.sqrt(np.maximum((values**2).cumsum() / n - mean**2, 0) / n)
        naive += (np.abs(mean - truth) > 1.645 * error)[20:].any()  # a 90 % interval, looked at as often
    assert missed / 150 <= 0.1
    assert naive / 150 > 0.4


def test_a_calm_stream_that_is_watched_for_ever_alarms_less_often_than_its_level():
    alarms = sum(
        watch(np.random.default_rng(seed).beta(4, 1, LOOKS), alpha=0.1, worse=0).has_left for seed in range(150)
    )
    assert alarms / 150 <= 0.1


def test_a_grader_that_agrees_less_is_found_and_one_that_agrees_more_is_no_alarm():
    rng = np.random.default_rng(1)
    worse = np.concatenate([rng.beta(9, 1, 50), rng.beta(5, 3, 250)])
    found = watch(worse, alpha=0.05 / 3, worse=-1)
    assert found.has_left and 5 < found.left_at < 250 and found.since.high < found.baseline.low
    assert not watch(worse, alpha=0.05 / 3, worse=1).has_left
    assert watch(np.concatenate([worse, np.ones(500)]), alpha=0.05 / 3, worse=-1).left_at == found.left_at  # it stands


def test_too_few_values_say_so_instead_of_a_number():
    assert "fewer than 50 values" in watch(np.ones(49), alpha=0.05, worse=0).baseline.why
    just = watch(np.ones(50), alpha=0.05, worse=0)
    assert just.baseline.value == 1 and just.since.why == "nothing after the baseline yet" and not just.has_left
