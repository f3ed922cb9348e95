"""What rows pay is counted after they went out: whatever happens in between, each group is counted once."""

import pytest
from django.db import OperationalError, connection

from grading.ingest import assemble, declaring, lives
from grading.ingest.rollout import Rollout
from grading.models import RolloutGroup
from grading.review import decisions, findings
from grading.states import DecisionKind, GroupState, Policy
from tests.factories import make_group, make_life, make_run, make_task, make_user
from tests.training_bridge.test_delivery import decided_group
from tests.training_bridge.whole import check_paid
from tests.verdicts import line_of
from training_bridge import delivery, paying
from training_bridge.models import Payout, StepSum, Stream

pytestmark = pytest.mark.django_db


def test_rows_are_there_before_they_are_counted_and_the_sweep_counts_what_a_killed_process_left():
    run = make_run()
    decided_group(run, kind=DecisionKind.FALLBACK)
    assert len(delivery.store(run)) == 1
    assert Stream.objects.get().head_seq == 1 and not Payout.objects.exists()
    assert delivery.sweep() == 0
    check_paid(run)
    assert not Stream.objects.get().owes


def test_a_new_epoch_leaves_the_rows_of_the_old_one_to_the_count():
    run = make_run()
    life = make_life(run=run)
    for _ in range(3):
        decided_group(run, kind=DecisionKind.FALLBACK, life=life)
        delivery.store(run)
    delivery.open_epoch(run, reason="test")
    decided_group(run, kind=DecisionKind.FALLBACK, life=life)
    delivery.deliver(run)
    check_paid(run)
    assert StepSum.objects.get(span=1).paid["groups"] == 4


def test_a_group_that_is_reopened_before_its_row_is_counted_pays_with_its_next_row():
    run = make_run(policy=Policy.MANUAL)
    group = make_group(run=run, state=GroupState.COMPLETE, outcomes="PPP")
    decisions.after_complete(group, by="test")
    delivery.store(run)
    rollout, user = group.trajectories.first(), make_user()
    findings.confirm(rollout, kind="hack", reason="seen", citations=[line_of(rollout)], user=user)
    delivery.sweep()
    assert not Payout.objects.exists(), "what it would pay now was never sent"
    decisions.decide(RolloutGroup.objects.get(), DecisionKind.FALLBACK, by="test", reason="skipped")
    delivery.sweep()
    check_paid(run)


def test_one_run_that_cannot_be_counted_holds_up_no_other():
    broken, other = make_run(), make_run()
    for run in (broken, other):
        decided_group(run, kind=DecisionKind.FALLBACK)
        delivery.store(run)
    failed = []

    def fail_once(execute, sql, params, many, context):
        if 'INSERT INTO "training_bridge_payout"' in sql and not failed:
            failed.append(sql)
            raise OperationalError("deadlock detected")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(fail_once):
        delivery.sweep()
    assert failed and list(Payout.objects.values_list("run", flat=True)) == [other.pk]
    delivery.sweep()
    check_paid(broken)


def test_a_huge_reward_times_a_length_stops_no_count():
    run = make_run(policy=Policy.AUTO)
    life, task = lives.issue_life(run).n, make_task(team=run.team)
    for key in ("g", "h"):
        declaring.declare_group(run=run, life=life, key=key, task=task.key, step=1, group_size=2, eligible=False)
        for n, reward in enumerate((1e300, 0.0)):
            said = {"outcome": "failed" if n else "passed", "reward": reward, "counts": {"response_tokens": 10**10}}
            assemble.add_trajectory(
                RolloutGroup.objects.get(key=key), Rollout(external_id=f"{key}{n}", events=[], **said), by="job"
            )
    assert delivery.sweep() == 2
    paid = StepSum.objects.get(span=1).paid
    assert paid["groups"] == 2 and not paying.uncounted(run).exists()
    assert all(abs(value) < float("inf") for value in paid.values())
