"""The fit finds what simulated reviewers value, says how sure it is, and says nothing where nothing can be said."""

import numpy as np
import pytest

from grading.calibration.fit_tiers import fit_thresholds
from grading.calibration.fit_weights import PairData, fit, intervals
from grading.calibration.replay import tiers
from grading.scoring.criteria import FLASH
from tests.grading.calibration.packs import random_group, scored
from tests.grading.calibration.reviewers import BETA, NU, simulated

FORCE = np.array([float(w) for w in FLASH.weights])
TRUE = np.array([0.15, 0.20, 0.40, 0.15, 0.10])


def test_the_fit_recovers_known_weights_within_its_interval():
    pairs = simulated(np.random.default_rng(1), TRUE, groups=200)
    got = fit(pairs, FORCE)
    found = intervals(pairs, FORCE, got)
    for true, (low, high), value in zip(TRUE, found, got.weights_C, strict=True):
        assert low <= true <= high and low <= value <= high
    assert got.beta == pytest.approx(BETA, rel=0.15) and got.nu == pytest.approx(NU, rel=0.3)
    assert found[2][0] > FORCE[2]  # that minimality counts more than in force is certain


def test_its_intervals_cover_the_truth_in_most_of_many_simulations():
    inside = []
    for seed in range(30):
        pairs = simulated(np.random.default_rng(seed), TRUE, groups=120)
        found = intervals(pairs, FORCE, fit(pairs, FORCE), resamples=400)
        inside += [low <= true <= high for true, (low, high) in zip(TRUE, found, strict=True)]
    assert np.mean(inside) > 0.85, np.mean(inside)


def test_a_newton_step_a_draw_gives_the_interval_of_fitting_each_draw_anew():
    pairs = simulated(np.random.default_rng(8), TRUE, groups=60)
    low_C, high_C = np.array(intervals(pairs, FORCE, fit(pairs, FORCE))).T
    rng, made = np.random.default_rng(0), []
    for _ in range(60):
        times_G = rng.multinomial(60, np.full(60, 1 / 60))
        made.append(fit(pairs, FORCE, times_P=times_G[pairs.group_P].astype(float)).weights_C)
    np.testing.assert_allclose(np.std(made, axis=0), (high_C - low_C) / 3.96, rtol=0.35)


def test_few_pairs_leave_the_weights_in_force_nearly_where_they_are():
    pairs = simulated(np.random.default_rng(2), TRUE, groups=6)
    many = simulated(np.random.default_rng(2), TRUE, groups=300)
    moved_by_few, moved_by_many = (np.abs(fit(p, FORCE).weights_C - FORCE).sum() for p in (pairs, many))
    unshrunk = np.abs(fit(pairs).weights_C - FORCE).sum()
    assert moved_by_few < unshrunk and moved_by_many > 0.3


def test_pairs_that_one_criterion_separates_stay_finite():
    difference_PC = np.tile([1.0, 0, 0, 0, 0], (40, 1))
    nobody = np.zeros(40, int)
    got = fit(PairData(difference_PC, np.ones(40), nobody, nobody), FORCE)
    assert 0 < got.beta < 50 and got.weights_C[0] > FORCE[0]


def test_contrary_scores_identify_nothing():
    pairs = simulated(np.random.default_rng(3), TRUE, groups=40)
    turned = PairData(-pairs.difference_PC, pairs.first_P, pairs.group_P, pairs.reviewer_P)
    assert fit(turned, FORCE).weights_C is None


def test_each_of_three_reviewers_has_an_offset_and_two_have_none():
    rng = np.random.default_rng(4)
    three, two = (simulated(rng, TRUE, groups=90, reviewers=n) for n in (3, 2))
    careless = np.where((three.reviewer_P == 2) & (rng.random(len(three.first_P)) < 0.5), 1.0, three.first_P)
    got = fit(PairData(three.difference_PC, careless, three.group_P, three.reviewer_P), FORCE)
    assert got.sharpness[2] < 0.8 * min(got.sharpness[0], got.sharpness[1])
    assert fit(two, FORCE).sharpness == {}


def test_people_who_ask_more_of_t1_raise_its_floor_and_the_rest_stays():
    import random
    from dataclasses import replace

    draw = random.Random(5)
    groups = [random_group(draw, most=8) for _ in range(120)]
    arrays = scored(groups, FLASH, [None] * len(groups))
    said_BG = np.maximum(tiers(arrays, replace(FLASH, t1_floor=5)), 0)
    got = fit_thresholds(arrays, said_BG, np.arange(120), FLASH)
    assert got.rubric.t1_floor == 5 and got.rubric.t3_minimality == 2 and got.best.value == pytest.approx(1)
    assert got.gain.low > 0
    same = fit_thresholds(arrays, np.maximum(tiers(arrays, FLASH), 0), np.arange(120), FLASH)
    assert same.rubric == FLASH and same.gain.value == 0
