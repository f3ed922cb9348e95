"""Drift as a core: versions of a grader on anchors, and what it does lately; calm data raise no alarm."""

import numpy as np
import pytest

from grading.calibration import drift
from grading.calibration.agreement import Said
from grading.calibration.drift import Anchored, alarms, rate_shift, score_shift, tier_shift, versions


def said(*order: str) -> Said:
    ranks = {id: place for place, tied in enumerate(order, 1) for id in tied}
    return Said(ranks, dict.fromkeys(ranks, 2))


def test_two_versions_by_hand():
    one = Anchored(1, said("a", "b", "c"), said("b", "a", "c"), people=said("a", "b", "c"))
    other = Anchored(2, said("a", "b"), said("a", "b"))
    got = versions([one, other])
    assert got.tau_b.value == pytest.approx((1 / 3 + 1) / 2)
    assert got.moved.value == 1 / 4  # one of 3 + 1 pairs
    assert (got.only_before, got.only_now) == (1, 0) and got.gain.value == pytest.approx(-1 / 3)
    assert (got.tiers.value, got.gain.groups) == (0.0, 1)


def test_a_tie_is_half_right_but_not_right_for_mcnemar():
    got = versions([Anchored(1, said("ab"), said("a", "b"), people=said("a", "b"))])
    assert (got.gain.value, got.only_now) == (0.5, 1) and got.mcnemar.p == 1.0


def test_without_people_or_orders_there_are_reasons_instead_of_numbers():
    got = versions([Anchored(1, said("ab"), said("ab"))])
    assert got.gain.why == "no anchor has a pair that a person decided" and got.mcnemar is None
    assert got.tau_b.value is None and got.moved.value is None


def test_a_grader_that_became_worse_is_an_alarm_with_what_to_do():
    worse = [Anchored(n, said(*"abcd"), said(*("bacd", "dcba")[n % 2]), people=said(*"abcd")) for n in range(30)]
    words = alarms(versions(worse), [])
    assert len(words) == 2 and all("Pause the run" in one for one in words) and "less than its last version" in words[0]
    same = [Anchored(n, said(*"abcd"), said(*"abcd"), people=said(*"abcd")) for n in range(30)]
    assert alarms(versions(same), []) == []


@pytest.fixture
def stream():
    rng = np.random.default_rng(2)
    is_now = np.arange(200) >= 150
    return rng, is_now, rng.multinomial(6, [0.3, 0.5, 0.2], 200)


def test_shares_that_stay_are_calm_and_shares_that_move_are_not(stream):
    rng, is_now, tiers = stream
    assert not tier_shift(tiers, is_now).is_alarm
    moved = np.where(is_now[:, None], rng.multinomial(6, [0.05, 0.4, 0.55], 200), tiers)
    got = tier_shift(moved, is_now)
    assert got.is_alarm and got.psi > 0.25 and "PSI" in alarms(None, [got])[0]


def test_scores_and_rates_that_move_are_alarms(stream):
    rng, is_now, _ = stream
    scores = [np.round(rng.normal(4.0 - 0.5 * now, 0.3, 5), 2) for now in is_now]
    assert score_shift(scores, is_now).is_alarm
    hits = np.stack([rng.random(200) < np.where(is_now, 0.4, 0.05), np.ones(200)], axis=-1)
    got = rate_shift("fallback", hits, is_now)
    assert got.is_alarm and "Grader page" in alarms(None, [got])[0]


def test_calm_streams_alarm_about_as_seldom_as_they_say():
    rng = np.random.default_rng(4)
    is_now = np.arange(80) >= 60
    rows = (rng.random((60, 80)) < 0.3).astype(float)
    alarmed = [rate_shift("ties", np.stack([row, np.ones(80)], axis=-1), is_now, seed=n) for n, row in enumerate(rows)]
    assert sum(one.is_alarm for one in alarmed) <= 3


def test_a_shift_that_is_sure_and_tiny_is_no_alarm():
    rng = np.random.default_rng(5)
    is_now = np.arange(4000) >= 2000
    scores = [rng.normal(4.0 + 0.05 * now, 0.3, 5) for now in is_now]
    seconds = np.stack([rng.normal(10 + is_now, 0.5), np.ones(4000)], axis=-1)
    hits = np.stack([rng.random(4000) < np.where(is_now, 0.04, 0.01), np.ones(4000)], axis=-1)
    found = [score_shift(scores, is_now), rate_shift("seconds", seconds, is_now, is_share=False)]
    found.append(rate_shift("fallback", hits, is_now))
    assert all(one.p <= drift.ALARM_P for one in found) and not any(one.is_alarm for one in found)
    slower = seconds * np.where(is_now, 1.3, 1.0)[:, None] ** [1, 0]
    assert rate_shift("seconds", slower, is_now, is_share=False).is_alarm


def test_few_groups_are_not_compared_and_say_so():
    got = rate_shift("cap", np.ones((30, 2)), np.arange(30) >= 25)
    assert (got.p, got.is_alarm) == (None, False) and f"expected {drift.LEAST} of each" in got.why
    assert tier_shift(np.zeros((0, 3)), np.zeros(0, bool)).now.value is None
