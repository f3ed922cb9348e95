"""Fleet accuracy from drawn groups: it covers, and easy-first finishing does not flatter it."""

import numpy as np
import pytest

from grading.calibration.fleet import Frame, fleet, response

TRUTH = 0.70  # mean accuracy of the simulated grader
REPLICATIONS = 120


def simulated(rng, *, groups: int = 600, easy_first: bool = True) -> Frame:
    """A grader whose accuracy falls from 0.95 to 0.45 with difficulty; W says half of it."""
    hard_G = rng.random(groups)
    probability_G = 0.1 + 0.3 * rng.random(groups)
    drawn_G = rng.random(groups) < probability_G
    respond_G = 0.95 - 0.75 * hard_G if easy_first else np.full(groups, 0.6)
    group_P = np.repeat(np.arange(groups), 6)
    accuracy_P = 0.95 - 0.5 * hard_G[group_P]
    apart_P = np.round((1 - hard_G[group_P]) * rng.random(len(group_P)) * 20) / 20
    right_P = (rng.random(len(group_P)) < accuracy_P).astype(float)
    seen_G = np.stack([hard_G + rng.normal(0, 0.05, groups), rng.normal(size=groups)], axis=-1)
    return Frame(
        probability_G=probability_G, drawn_G=drawn_G, answered_G=drawn_G & (rng.random(groups) < respond_G),
        difficulty_GD=seen_G, group_P=group_P, apart_P=apart_P, tied_P=np.zeros(len(group_P), bool),
        credit_P=right_P, decided_P=np.ones(len(group_P)),
    )  # fmt: skip


@pytest.fixture(scope="module")
def easy_first():
    rng = np.random.default_rng(11)
    return [fleet(simulated(rng), seed=n) for n in range(REPLICATIONS)]


def bias(found, way: str) -> float:
    return float(np.mean([getattr(one, way).value for one in found]) - TRUTH)


def test_what_comes_in_first_is_too_good_and_the_model_of_answers_removes_it(easy_first):
    assert bias(easy_first, "naive") == pytest.approx(0.06, abs=0.02)
    assert abs(bias(easy_first, "weighted")) < 0.012 and abs(bias(easy_first, "powered")) < 0.012


def test_the_reported_interval_covers_and_the_naive_one_does_not(easy_first):
    def covered(way: str) -> float:
        return np.mean([getattr(one, way).low <= TRUTH <= getattr(one, way).high for one in easy_first])

    assert covered("powered") >= 0.9 and covered("naive") < 0.5


def test_predictions_for_all_groups_narrow_the_interval(easy_first):
    def width(way: str) -> float:
        return float(np.mean([getattr(one, way).high - getattr(one, way).low for one in easy_first]))

    assert width("powered") < width("weighted")


def test_without_a_preference_for_the_easy_all_three_agree():
    rng = np.random.default_rng(12)
    found = [fleet(simulated(rng, easy_first=False), seed=n) for n in range(30)]
    assert all(abs(bias(found, way)) < 0.015 for way in ("naive", "weighted", "powered"))


def small(**fields) -> Frame:
    """Eight groups of one pair; the first five drawn and answered, all right."""
    answered = np.arange(8) < 5
    known = {
        "probability_G": np.full(8, 0.5), "drawn_G": answered, "answered_G": answered,
        "difficulty_GD": np.zeros((8, 1)), "group_P": np.arange(8), "apart_P": np.full(8, 0.3),
        "tied_P": np.zeros(8, bool), "credit_P": np.ones(8), "decided_P": np.ones(8),
    }  # fmt: skip
    return Frame(**known | fields)


def test_five_right_of_five_is_no_certainty():
    got = fleet(small()).powered
    assert (got.value, got.high, got.n, got.groups) == (1.0, 1.0, 5, 8) and got.low == pytest.approx(0.566, abs=1e-3)


def test_an_interval_that_leaves_0_to_1_is_clipped_and_says_so():
    got = fleet(small(credit_P=np.array([1, 1, 1, 1, 0, 1, 1, 1.0]))).powered
    assert got.is_clipped and got.high == 1.0 and 0 <= got.low < got.value


def test_one_answer_says_nothing_and_reviews_nobody_was_drawn_for_are_refused():
    one = np.arange(8) < 1
    assert "fewer than two" in fleet(small(drawn_G=one, answered_G=one)).powered.why
    assert fleet(small(decided_P=np.zeros(8), credit_P=np.zeros(8))).powered.value is None
    with pytest.raises(ValueError, match="only assigned reviews count"):
        small(drawn_G=one)
    with pytest.raises(ValueError, match="expected above 0"):
        small(probability_G=np.zeros(8))


def test_who_answers_is_learnt_by_difficulty():
    rng = np.random.default_rng(1)
    hard = rng.random((500, 1))
    drawn = rng.random(500) < 0.6
    answered = drawn & (rng.random(500) < 0.9 - 0.7 * hard[:, 0])
    got = response(drawn, answered, hard)
    assert got[hard[:, 0] < 0.2].mean() > got[hard[:, 0] > 0.8].mean() + 0.3
    assert (response(drawn, drawn, hard) == 1).all()
