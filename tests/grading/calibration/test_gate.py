"""The gate passes a real gain, refuses thin data, and passes a null gain at most one time in twenty."""

import numpy as np

from grading.calibration.gate import Decided, look, looked


def credits(rng, *, groups, pairs, old, new):
    """Two orders that are right with these chances; each group has an ease of its own that both share."""
    ease_G = rng.normal(0, 0.1, groups)
    group_P = np.repeat(np.arange(groups), pairs)
    chance = [np.clip(p + ease_G[group_P], 0, 1) for p in (old, new)]
    return group_P, *((rng.random(len(group_P)) < c).astype(float) for c in chance)


def test_a_pair_counts_whole_half_or_not_by_the_order_of_factors():
    # of three: 1.0 over 0.9 as the person says, 0.9 over 1.0 against it, two equal ones a half
    decided = Decided(np.array([0, 0, 0]), np.array([0, 1, 1]), np.array([1, 0, 2]), np.array([7, 7, 7]))
    got = look(decided, np.array([[1.0, 0.9, 0.9]]), np.array([[1.0, 0.9, 0.4]]))
    assert got.old.value == 0.5 and got.new.value == 2 / 3 and got.pairs == 3 and not got.passed


def test_a_real_gain_on_enough_groups_passes():
    got = looked(*credits(np.random.default_rng(1), groups=60, pairs=10, old=0.65, new=0.80))
    assert got.passed and got.gain.low > 0 and got.checks == {"groups": True, "pairs": True, "gain": True}


def test_a_gain_on_few_groups_or_few_pairs_is_refused():
    rng = np.random.default_rng(2)
    few_groups = looked(*credits(rng, groups=29, pairs=10, old=0.5, new=0.9))
    few_pairs = looked(*credits(rng, groups=40, pairs=3, old=0.5, new=0.9))
    assert not few_groups.passed and few_groups.checks == {"groups": False, "pairs": True, "gain": True}
    assert not few_pairs.passed and few_pairs.checks == {"groups": True, "pairs": False, "gain": True}


def test_no_change_is_no_gain_and_no_pair_is_undefined():
    group_P, old_P, _ = credits(np.random.default_rng(3), groups=40, pairs=6, old=0.7, new=0.7)
    same = looked(group_P, old_P, old_P)
    assert same.gain.value == 0 and not same.passed
    nothing = looked(np.array([], int), np.array([]), np.array([]))
    assert nothing.gain.value is None and nothing.gain.why and not nothing.passed


def test_a_null_gain_passes_at_most_one_time_in_twenty():
    rng = np.random.default_rng(4)
    passed = [looked(*credits(rng, groups=30, pairs=6, old=0.7, new=0.7)).passed for _ in range(300)]
    assert np.mean(passed) <= 0.05
