"""The curves: what the job reported, and what the server adds up from its own rows."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from grading.models import RolloutGroup
from grading.review import decisions
from grading.states import DecisionKind, GroupState, Method
from tests.factories import make_group, make_life, make_run
from tests.training_bridge.monitor.rows import Job, deliver_group
from tests.verdicts import add_verdict
from training_bridge import delivery
from training_bridge.models import Delivery, MetricPoint, Payout
from training_bridge.monitor import step_sums
from training_bridge.monitor.series import snapshot

pytestmark = pytest.mark.django_db


def curves(run, **asked) -> dict[str, dict[int, float | None]]:
    """The curves as a page gets them: name -> step -> value."""
    found = snapshot(run, **asked)
    json.dumps(found, allow_nan=False)
    return {name: dict(zip(found["grids"][g], values, strict=True)) for name, (g, values) in found["series"].items()}


def at(run, name: str, step: int):
    return curves(run)[name].get(step)


def test_a_repeated_step_shows_its_newest_value_and_keeps_the_history():
    job = Job(make_life())
    job.metrics(1, entropy=2.0, pg_loss=0.5)
    job.metrics(2, entropy=1.8)
    job.metrics(1, entropy=2.2)
    again = Job(make_life(run=job.life.run))
    again.metrics(2, entropy=1.7)
    assert curves(job.life.run) == {"entropy": {1: 2.2, 2: 1.7}, "pg_loss": {1: 0.5}}
    assert MetricPoint.objects.filter(name="entropy").count() == 4


def test_nan_and_infinity_are_gaps_also_over_an_older_number():
    job = Job(make_life())
    job.metrics(1, entropy=2.0, pg_loss="NaN")
    job.metrics(1, entropy="Infinity")
    assert curves(job.life.run) == {"entropy": {1: None}, "pg_loss": {1: None}}


def test_only_the_asked_steps_are_given():
    run = make_run()
    job = Job(make_life(run=run))
    for step in range(5):
        job.metrics(step, entropy=float(step))
        deliver_group(run, step=step)
    found = curves(run, first=3)
    assert found["entropy"] == {3: 3.0, 4: 4.0} and found["regime_exact"] == {3: 1.0, 4: 1.0}


def test_another_metric_of_the_job_is_given_under_its_name():
    job = Job(make_life())
    job.metrics(1, kl=0.01, credit_kept=0.5)
    found = curves(job.life.run)
    assert found["kl"] == {1: 0.01}
    assert "credit_kept" not in found, "what the rows say is not read from the job too"


def test_credit_kept_and_penalty_kept_by_hand():
    run = make_run()
    # lone T3 pass: f 0.2, lambda wanted 5, bound 1.5: B = (0.15, -0.5), mean -0.175: A = (0.325, -0.325)
    deliver_group(run, step=1, outcomes="PF", scores={"A": 2})
    # exact: kept whole. R = (1, 1, 0): S+ = 2/3, penalty -2/3
    deliver_group(run, step=1, outcomes="PPF", scores={"A": 5, "B": 4})
    assert at(run, "credit_kept", 1) == pytest.approx((0.325 + 2 / 3) / (0.5 + 2 / 3))
    assert at(run, "penalty_kept", 1) == pytest.approx((0.325 + 2 / 3) / (0.5 + 2 / 3))


def test_credit_kept_equals_the_stored_texts():
    run = make_run(method=Method.DOWNWEIGHT_ONLY)
    for scores in ({"A": 5, "B": 3, "C": 2}, {"A": 4, "B": 4, "C": 3}):
        deliver_group(run, step=2, outcomes="PPPF", scores=scores)
    paid = due = 0.0
    for text in Delivery.objects.values_list("text", flat=True):
        rows = json.loads(text)["rows"]
        mean = sum(row["reward"] for row in rows) / len(rows)
        passes = [row for row in rows if row["outcome"] == "passed"]
        paid += sum(row["advantage"] for row in passes)
        due += sum(max(row["reward"] - mean, 0) for row in passes)
    assert at(run, "credit_kept", 2) == pytest.approx(paid / due, abs=1e-12)


def test_the_token_weighted_balance_by_hand():
    run = make_run()
    # A = (1/3, 1/3, -2/3), equal scores: as they are. Lengths 10, 20 and 40; the second has no response count.
    counts = [{"response_tokens": 10, "tokens": 99}, {"tokens": 20}, {"response_tokens": 40}]
    deliver_group(run, step=1, counts=counts)
    assert at(run, "balance", 1) == pytest.approx((10 / 3 + 20 / 3 - 80 / 3) / 70)


def test_a_rollout_without_a_length_is_left_out_of_the_balance():
    run = make_run()
    deliver_group(run, step=1, counts=[{"tokens": 10}, {}, {"tokens": "many"}])
    assert at(run, "balance", 1) == pytest.approx(1 / 3)
    deliver_group(run, step=2)
    assert at(run, "balance", 2) is None


def test_regimes_tiers_and_fallbacks_of_a_step_by_hand():
    run = make_run()
    deliver_group(run, step=1, outcomes="PPPF", scores={"A": 5, "B": 4, "C": 3})  # exact: T1, T1, T2
    deliver_group(run, step=1, outcomes="PF", scores={"A": 2})  # bounded: T3
    deliver_group(run, step=1, kind=DecisionKind.FALLBACK, reason="deadline")
    deliver_group(run, step=1, outcomes="PP", kind=DecisionKind.FILTERED, end_reason="filtered_all_passed")
    shares = {name: at(run, f"regime_{name}", 1) for name in ("exact", "bounded", "other", "fallback")}
    assert shares == {"exact": 0.25, "bounded": 0.25, "other": 0.25, "fallback": 0.25}
    assert [at(run, f"tier_{n}", 1) for n in (1, 2, 3)] == [0.5, 0.25, 0.25]
    assert [at(run, f"fallback_{name}", 1) for name in ("deadline", "grader", "other", "own")] == [1, 0, 0, 0]


def test_a_group_that_the_job_did_not_wait_for_is_counted_at_its_own_step():
    run = make_run()
    group = deliver_group(run, step=4)
    Job(group.life).receipt(group, "applied", step=6, version=0)
    assert at(run, "fallback_own", 4) == 1


def test_a_new_version_replaces_what_its_step_shows():
    run = make_run()
    group = deliver_group(run, step=1, outcomes="PF", scores={"A": 2})
    decided_at = group.payout.decided_at
    better = add_verdict(group, {"A": 5})
    decisions.decide(group, DecisionKind.VERDICT, by="alice", verdict=better)
    delivery.deliver(run)
    assert at(run, "regime_exact", 1) == 1.0 and at(run, "credit_kept", 1) == pytest.approx(1)
    row = Payout.objects.get()
    assert (row.version, row.decided_at) == (2, decided_at) and Delivery.objects.count() == 2


def test_the_pass_rate_comes_from_the_rows_until_the_job_reports_one():
    run = make_run()
    group = deliver_group(run, step=1, outcomes="PPFI")
    assert at(run, "pass_rate", 1) == pytest.approx(2 / 3)
    Job(group.life).metrics(1, pass_rate=0.5)
    assert at(run, "pass_rate", 1) == 0.5
    deliver_group(run, step=2)
    assert at(run, "pass_rate", 2) is None, "a step of which some groups are out has no rate yet"


def test_grading_time_is_from_complete_to_graded():
    run, now = make_run(), timezone.now()
    for seconds in (2, 6):
        deliver_group(run, step=1, completed_at=now - timedelta(seconds=seconds), graded_at=now)
    assert at(run, "grading_mean", 1) == pytest.approx(4) and at(run, "grading_slowest", 1) == pytest.approx(6)


def test_queue_depth_counts_who_waited_when_a_step_was_declared():
    run, start = make_run(), timezone.now() - timedelta(hours=1)

    def minute(n):
        return start + timedelta(minutes=n)

    early, late = deliver_group(run, step=1), deliver_group(run, step=2)
    waits = make_group(run=run, step=2, state=GroupState.GRADED, held=True, outcomes="PF")
    Payout.objects.filter(group=early).update(declared_at=minute(0), decided_at=minute(9), held_at=minute(3))
    Payout.objects.filter(group=late).update(declared_at=minute(5), decided_at=minute(6))
    RolloutGroup.objects.filter(pk=waits.pk).update(created_at=minute(4), graded_at=minute(5))
    step_sums.add_up(run)
    # at minute 0 only `early` is there; at 5 all three are undecided, and two of them wait for a person
    assert [at(run, "queue_undecided", step) for step in (1, 2)] == [1, 3]
    assert [at(run, "queue_people", step) for step in (1, 2)] == [0, 2]
    assert curves(run, first=2)["queue_undecided"] == {2: 3}


def test_a_run_without_anything_has_no_steps():
    assert curves(make_run()) == {}
