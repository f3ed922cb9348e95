"""Intervals cover what they say, over groups; what has no interval says why."""

import numpy as np
import pytest

from grading.calibration import alpha, intervals, kappa, prediction, shifts
from grading.calibration.intervals import estimate, ratio

REPLICATIONS = 200


def simulated(rng, *, groups: int, accuracy: float, spread: float = 0.15) -> np.ndarray:
    """(G, 2) right and decided pairs of a reviewer whose accuracy differs from group to group."""
    here_G = np.clip(rng.normal(accuracy, spread, groups), 0, 1)
    decided_G = rng.integers(1, 11, groups)
    return np.stack([rng.binomial(decided_G, here_G), decided_G], axis=-1)


@pytest.mark.parametrize(("groups", "accuracy"), [(12, 0.75), (40, 0.75), (40, 0.6)])
def test_the_interval_of_a_known_accuracy_covers_it(groups, accuracy):
    rng = np.random.default_rng(groups)
    hits = 0
    for n in range(REPLICATIONS):
        got = estimate(
            simulated(rng, groups=groups, accuracy=accuracy), ratio, n=0, undefined="", resamples=300, seed=n
        )
        hits += got.low <= accuracy <= got.high
    assert 0.9 <= hits / REPLICATIONS <= 0.99


def test_pairs_taken_as_independent_would_not_cover():
    """Why groups are resampled: with accuracy by group, Wilson over pairs is far too narrow."""
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(REPLICATIONS):
        right_G = rng.binomial(10, rng.choice([0.4, 1.0], 40))
        low, high = intervals.wilson(right_G.sum(), 400)
        hits += low <= 0.7 <= high
    assert hits / REPLICATIONS < 0.75


def test_few_groups_are_resampled_whole_and_twice_alike():
    sums = np.array([[1.0, 1], [0, 1], [1, 2]])
    values = intervals.resampled(sums, ratio)
    assert len(values) == 27 and (values == intervals.resampled(sums, ratio, seed=9)).all()


def test_one_group_has_no_interval_and_says_so():
    got = estimate(np.array([[3.0, 4]]), ratio, n=4, undefined="no pair")
    assert (got.value, got.low) == (0.75, None) and "nothing to resample" in got.why


def test_nothing_decided_is_undefined_with_its_reason_and_not_0():
    got = estimate(np.zeros((5, 2)), ratio, n=0, undefined="people tied every pair")
    assert (got.value, got.why, got.groups) == (None, "people tied every pair", 5)
    assert estimate(np.zeros((0, 2)), ratio, n=0, undefined="no group").value is None


def test_five_of_five_groups_are_no_certainty():
    got = estimate(np.full((5, 2), 2.0), ratio, n=10, undefined="", is_share=True)
    assert (got.value, got.high) == (1.0, 1.0) and got.low == pytest.approx(0.566, abs=1e-3)


def test_a_share_outside_its_trials_is_refused():
    with pytest.raises(ValueError, match="expected 0 to 3"):
        intervals.wilson(4, 3)


def test_tables_of_groups_add_up_to_the_statistic_of_all():
    rng = np.random.default_rng(3)
    said = rng.integers(1, 6, (2, 30))
    parts = [alpha.coincidences(said[:, i : i + 10].tolist(), range(1, 6)) for i in (0, 10, 20)]
    assert alpha.alpha(sum(parts), range(1, 6)) == pytest.approx(alpha.alpha_of(said.tolist()))
    tables = [kappa.confusion(said[0, i : i + 10], said[1, i : i + 10], range(1, 6)) for i in (0, 10, 20)]
    assert kappa.cohen(np.stack(tables)).shape == (3,)


def test_prediction_powered_means_cover_and_are_narrower_than_labels_alone():
    rng = np.random.default_rng(5)
    hits, wide, narrow = 0, 0.0, 0.0
    for _ in range(REPLICATIONS):
        truth = rng.beta(6, 2, 400)
        guess = truth + rng.normal(0.1, 0.05, 400)  # biased, but it knows much
        got = prediction.ppi(truth[:40], guess[:40], guess[40:])
        hits += got.low <= 0.75 <= got.high
        wide += prediction.ppi(truth[:40], guess[:40], guess[40:], lam=0.0).se
        narrow += got.se
    assert hits / REPLICATIONS >= 0.9 and narrow < 0.7 * wide


def test_permuting_groups_does_not_take_ten_alike_candidates_for_ten_proofs():
    rng = np.random.default_rng(7)
    calm_by_group = calm_by_candidate = 0
    for n in range(100):
        counts = rng.multinomial(1, [0.4, 0.4, 0.2], 30) * 10  # all ten of a group in one tier
        is_now = np.arange(30) < 15
        calm_by_group += shifts.permuted(counts, is_now, shifts.share_shift, permutations=199, seed=n).p > 0.05
        calm_by_candidate += shifts.chi2([counts[is_now].sum(0), counts[~is_now].sum(0)]).p > 0.05
    assert calm_by_group >= 90 and calm_by_candidate < 50


def test_what_never_changes_has_no_shift_to_test():
    assert shifts.mcnemar(0, 0) is None and shifts.chi2([[5, 0], [3, 0]]) is None and shifts.ks([], [1.0]) is None
    assert shifts.psi([10, 0, 5], [0, 0, 0]) is None and shifts.psi([10, 2], [10, 2]) == 0
