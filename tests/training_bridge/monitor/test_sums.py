"""Sums by step: kept up to date one delivery at a time, they are what a count of all rows would give."""

from random import Random

import pytest

from grading.review import decisions
from grading.states import DecisionKind, Method
from tests.factories import make_run
from tests.training_bridge.monitor.rows import Job, deliver_group
from tests.training_bridge.monitor.test_series import at, curves
from tests.verdicts import add_verdict
from training_bridge import delivery
from training_bridge.models import StepSum
from training_bridge.monitor import derived, step_sums
from training_bridge.monitor.series import Cursor, changes
from training_bridge.monitor.sums import added, interval, quantile, values

pytestmark = pytest.mark.django_db
SAMPLED = ("max_undecided", "max_people", "sampled_at")


def sums_of(run) -> dict:
    rows = StepSum.objects.filter(run=run).values_list("span", "step", "paid")
    return {
        (span, step): {name: value for name, value in paid.items() if name not in SAMPLED} for span, step, paid in rows
    }


def test_deliveries_and_corrections_in_any_order_add_up_to_what_the_rows_say():
    random, run = Random(2), make_run()
    for _ in range(12):
        step = random.choice([0, 1, 15, 16, 300])
        group = deliver_group(run, step=step, outcomes="PPF", scores={"A": random.choice([2, 5]), "B": 4})
        if random.random() < 0.5:
            better = add_verdict(group, {"A": 5, "B": random.choice([1, 3])})
            decisions.decide(group, DecisionKind.VERDICT, by="alice", verdict=better)
            delivery.deliver(run)
    kept = sums_of(run)
    step_sums.add_up(run)
    again = sums_of(run)
    assert again.keys() == kept.keys() and all(again[place] == pytest.approx(kept[place]) for place in kept)
    assert sum(paid["groups"] for (span, _), paid in kept.items() if span == 256) == 12


def test_a_long_range_is_pooled_and_a_short_one_is_not(monkeypatch):
    run = make_run()
    for step in range(20):
        deliver_group(run, step=step, outcomes="PF" if step % 2 else "PPPF")
    monkeypatch.setattr(derived, "MOST_ROWS", 10)
    found, pooled = derived.between(run)
    # 16 steps: 8 x (1 of 2) and 8 x (3 of 4) are 32 of 48; then two of each
    assert pooled and found["pass_rate"] == {15: pytest.approx(32 / 48), 19: pytest.approx(8 / 12)}
    found, pooled = derived.between(run, 4, 6)
    assert not pooled and sorted(found["pass_rate"]) == [4, 5, 6]


def test_the_deficit_of_downweighting_by_hand():
    run = make_run(method=Method.DOWNWEIGHT_ONLY)
    # A = (1/3, 1/3, -2/3); A is T1 (f 1), B is alone in T2 (f 0.85): D = 0.15 / 3
    deliver_group(run, step=1, outcomes="PPF", scores={"A": 5, "B": 3})
    assert at(run, "deficit", 1) == pytest.approx(0.05)
    plain = make_run()
    deliver_group(plain, step=1, outcomes="PPF", scores={"A": 5, "B": 3})
    assert "deficit" not in curves(plain) or at(plain, "deficit", 1) is None


def test_lambda_factors_cap_and_deadlines_by_hand():
    run = make_run()
    deliver_group(run, step=1, outcomes="PF", scores={"A": 2})  # lone T3: f 0.2, lambda bound at 1.5
    deliver_group(run, step=1, outcomes="PPF", scores={"A": 5, "B": 3})  # f 1, 0.85: lambda 2 / 1.85
    group = deliver_group(run, step=1, kind=DecisionKind.FALLBACK, reason="deadline")
    assert at(run, "lambda_mean", 1) == pytest.approx((1.5 + 2 / 1.85) / 2) and at(run, "lambda_highest", 1) == 1.5
    assert at(run, "factor_mean", 1) == pytest.approx((0.2 + 1 + 0.85) / 3)
    assert at(run, "cap_share", 1) == 0.5 and at(run, "deadlines_missed", 1) == 0
    job = Job(group.life)
    job.receipt(group, "applied", step=4)
    assert at(run, "used_after_steps", 1) == 3
    job.receipt(group, "too_late", step=9)
    assert at(run, "came_too_late", 1) == 1


def test_the_interval_of_a_pass_rate_is_wide_where_rollouts_of_a_group_are_alike():
    apart = {"rated": 10, "n_valid": 160, "n_passes": 80, "pp": 640, "pn": 1280, "nn": 2560}  # 8 of 16 in each group
    alike = apart | {"pp": 5 * 16 * 16, "pn": 5 * 16 * 16}  # five all pass, five all fail
    low, high = interval(apart)
    assert 0.42 < low < 0.5 < high < 0.58
    low, high = interval(alike)
    assert low < 0.26 and high > 0.74
    assert interval({"rated": 1, "n_valid": 16, "n_passes": 8}) == (None, None)


def test_quantiles_of_grading_time_are_within_a_quarter():
    run = make_run()
    times = [0.5, 1, 2, 3, 40]
    sums = {}
    for seconds in times:
        sums = added(sums, step_sums.of_payout(_graded(run, seconds), ""))
    assert quantile(sums, 0.5) == pytest.approx(2, rel=0.25) and quantile(sums, 0.9) <= 40
    assert values(sums)["grading_mean"] == pytest.approx(sum(times) / 5)
    assert values({})["grading_median"] is None


def _graded(run, seconds: float):
    payout = deliver_group(run, step=1).payout
    payout.grading_s = seconds
    return payout


def test_a_cursor_tells_everything_that_changed_and_nothing_twice_forgotten():
    run = make_run()
    group = deliver_group(run, step=1)
    job = Job(group.life)
    job.metrics(1, entropy=1.0)
    cursor = Cursor.of(run)
    assert changes(run, cursor)["series"].get("entropy") is None
    job.metrics(2, entropy=2.0)
    job.metrics(1, entropy=3.0)
    deliver_group(run, step=700)
    told = changes(run, Cursor.read(str(cursor)))
    grid, found = told["series"]["entropy"]
    assert dict(zip(told["grids"][grid], found, strict=True)) == {1: 3.0, 2: 2.0}
    assert 700 in told["grids"][told["series"]["regime_exact"][0]]
    assert changes(run, Cursor(cursor.point + 10**6, cursor.at)) is None, "of another database: a snapshot"
