from dataclasses import replace
from datetime import timedelta
from threading import Barrier, Thread

import pytest
from django.db import connection

from grading import clock
from grading.errors import BadInput, LeaseLost, WrongState
from grading.grader import claims, inspection, job
from grading.grader.shape import CandidateReply, Cited, Finding, GraderReply
from grading.ingest import assemble, lives
from grading.ingest.rollout import Rollout
from grading.models import RolloutGroup, Signal, Verdict
from grading.review import deadlines, decisions
from grading.scoring.criteria import CRITERIA
from grading.states import DecisionKind, GroupState, Policy, Purpose
from tests.factories import PATCH, flash, make_group, make_life, make_run, make_user
from tests.verdicts import add_verdict, grade, line_of, reply_for
from training_bridge import delivery, pausing

pytestmark = pytest.mark.django_db
TEST_GONE = b"diff --git a/tests/test_app.py b/tests/test_app.py\ndeleted file mode 100644\n--- a/tests/test_app.py\n"
TEST_GONE += b"+++ /dev/null\n@@ -1,2 +0,0 @@\n-def test_answer():\n-    assert answer() == 42\n"


def complete(outcomes="PPF", **fields):
    run = fields.pop("run", None) or make_run(
        policy=fields.pop("policy", Policy.AUTO), grader=fields.pop("by", "static")
    )
    return make_group(run=run, state=GroupState.COMPLETE, outcomes=outcomes, **fields)


def kinds(group) -> list[str]:
    return list(group.decisions.values_list("kind", "reason"))


def expire(group) -> None:
    RolloutGroup.objects.filter(pk=group.pk).update(claimed_until=clock.now() - timedelta(seconds=1))


# ---- drain ----


def test_drain_grades_all_that_waits_the_oldest_step_first():
    run = make_run(policy=Policy.AUTO)
    groups = [complete(run=run, step=step) for step in (3, 1, 2)]
    waiting = complete(run=run, bodies_ready=False)
    assert job.drain() == 3
    order = Verdict.objects.order_by("pk").values_list("group__step", flat=True)
    assert list(order) == [1, 2, 3]
    for group in groups:
        assert kinds(group) == [(DecisionKind.VERDICT, "")]
    waiting.refresh_from_db()
    assert waiting.state == GroupState.COMPLETE and job.drain() == 0


def test_a_verdict_is_frozen_with_its_rubric_cost_and_token():
    group = complete()
    job.drain()
    verdict = group.verdicts.get()
    assert (verdict.rubric, verdict.formula, verdict.grader, verdict.fencing) == (flash(), "gagar-1", "static", 1)
    assert verdict.duration_s >= 0 and verdict.purpose == Purpose.TRAINING
    assert [(e.old, e.new) for e in group.events.all()] == [
        ("complete", "grading"),
        ("grading", "graded"),
        ("graded", "decided"),
    ]


def test_whatever_a_grader_raises_is_its_failure_and_never_a_low_score():
    group = complete(by="unheard-of")
    job.drain()
    verdict = group.verdicts.get()
    assert not verdict.is_valid and "no such grader" in str(verdict.problems) and verdict.candidates.count() == 0
    assert kinds(group) == [(DecisionKind.FALLBACK, decisions.GRADER_FAILURE)]


def test_a_body_that_cannot_be_read_fails_its_group_and_no_other():
    broken, whole = complete(step=1), complete(step=2)
    broken.trajectories.filter(letter="A").update(patch="0" * 64)
    assert job.drain() == 2
    assert kinds(broken) == [(DecisionKind.FALLBACK, decisions.GRADER_FAILURE)]
    assert kinds(whole) == [(DecisionKind.VERDICT, "")]
    assert "not inspected" in Signal.objects.get(trajectory__group=broken, detector="").words


def test_a_grader_that_dies_three_times_leaves_the_group_to_its_outcome_advantages():
    group = complete()
    for attempt in range(1, job.ATTEMPTS + 1):
        assert group.claim(by="dies", lease_s=60) and group.grading_attempts == attempt
        expire(group)
    job.drain()
    assert "3 graders died" in str(group.verdicts.get().problems)
    assert kinds(group) == [(DecisionKind.FALLBACK, decisions.GRADER_FAILURE)]


def test_hostile_text_in_a_reply_is_kept_readable_and_breaks_nothing():
    group = complete(policy=Policy.MANUAL)
    group.claim(by="test", lease_s=60)
    a, reply = group.trajectories.get(letter="A"), reply_for(group)
    wild = "\x00 \ud800 " + "x" * 500
    entry = replace(
        reply.candidates[0],
        reasons={"approach": wild, wild: wild},
        citations=(Cited(wild, replace(line_of(a), quote=wild)),),
    )
    found = (Finding(a.external_id, "hack", wild, (line_of(a),)),)
    bad = GraderReply((entry, *reply.candidates[1:]), findings=found, notes=wild)
    verdict = job.store_verdict(group, bad, fencing=group.fencing, grader="scripted")
    verdict.refresh_from_db()
    assert "\\u0000" in verdict.notes[0] and len(verdict.evidence.first().about) <= 40
    assert a.findings.get().reason.startswith("\\u0000")


# ---- fencing ----


def test_a_zombie_is_refused_and_what_its_verdict_cost_is_booked():
    group = complete()
    zombie = RolloutGroup.objects.select_related("run", "task", "rubric").get(pk=group.pk)
    zombie.claim(by="zombie", lease_s=60)
    expire(zombie)
    grade(group)
    job.grade_group(zombie)
    assert group.verdicts.count() == 1 and group.decisions.count() == 1
    booked = group.events.last()
    assert "verdict refused" in booked.reason and booked.details["duration_s"] >= 0


def test_a_verdict_after_the_deadline_is_refused_and_the_decision_stands():
    group = complete(grade_by=clock.now() - timedelta(seconds=1))
    group.claim(by="slow", lease_s=60)
    deadlines.sweep()
    with pytest.raises(LeaseLost):
        job.store_verdict(group, reply_for(group), fencing=group.fencing)
    assert kinds(group) == [(DecisionKind.FALLBACK, "deadline")] and group.verdicts.count() == 0


def test_a_verdict_for_a_life_that_is_gone_is_refused():
    life = make_life()
    group = complete(run=life.run)
    group.claim(by="slow", lease_s=60)
    lives.issue_life(life.run)
    with pytest.raises(LeaseLost):
        job.store_verdict(group, reply_for(group), fencing=group.fencing)
    assert kinds(group) == [(DecisionKind.ABANDONED, "")]
    assert delivery.deliver(life.run) == 1


@pytest.mark.parametrize("policy", [Policy.AUTO, Policy.MANUAL, Policy.SAMPLED])
def test_a_run_paused_while_a_grader_works_sends_outcome_advantages(policy):
    group = complete(policy=policy)
    group.claim(by="test", lease_s=60)
    pausing.switch(group.run, paused=True, reason="entropy", by="alice")
    verdict = job.store_verdict(group, reply_for(group), fencing=group.fencing)
    assert verdict.is_valid and kinds(group) == [(DecisionKind.FALLBACK, "paused")]


@pytest.mark.django_db(transaction=True)
def test_two_workers_drain_the_same_queue_and_grade_each_group_once():
    flash()
    run = make_run(policy=Policy.AUTO)
    groups = [complete(run=run) for _ in range(6)]
    start = Barrier(2)

    def work():
        start.wait()
        try:
            job.drain()
        finally:
            connection.close()

    threads = [Thread(target=work) for _ in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    for group in groups:
        assert group.verdicts.count() == 1 and kinds(group) == [(DecisionKind.VERDICT, "")]
        assert group.events.filter(new=GroupState.GRADING).count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_verdict_and_the_deadline_at_once_make_one_decision():
    flash()
    group = complete(grade_by=clock.now() - timedelta(seconds=1))
    group.claim(by="test", lease_s=60)
    reply, start, lost = reply_for(group), Barrier(2), []

    def store():
        start.wait()
        try:
            job.store_verdict(group, reply, fencing=group.fencing)
        except LeaseLost as refused:
            lost.append(refused)
        finally:
            connection.close()

    def sweep():
        start.wait()
        deadlines.sweep()
        connection.close()

    threads = [Thread(target=step) for step in (store, sweep)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert kinds(group) == ([(DecisionKind.FALLBACK, "deadline")] if lost else [(DecisionKind.VERDICT, "")])


# ---- a grader of the team's own ----


def external(outcomes="PPF", **fields):
    return complete(outcomes, by=claims.EXTERNAL, **fields)


def test_nobody_of_ours_grades_a_group_of_an_external_grader():
    group = external()
    assert job.drain() == 0
    group.refresh_from_db()
    assert group.state == GroupState.COMPLETE


def test_its_first_verdict_is_the_training_verdict_and_later_ones_are_extra():
    group = external()
    first = job.accept(group, reply_for(group), grader="ours")
    second = job.accept(group, reply_for(group, {"A": 5}), grader="ours")
    assert (first.purpose, second.purpose) == (Purpose.TRAINING, Purpose.EXTRA)
    assert kinds(group) == [(DecisionKind.VERDICT, "")] and group.decisions.get().verdict == first
    assert decisions.newest_verdict(group) == first


def test_an_invalid_one_falls_back_and_keeps_its_problems():
    group = external()
    verdict = job.accept(group, GraderReply(()), grader="ours")
    assert not verdict.is_valid and kinds(group) == [(DecisionKind.FALLBACK, decisions.GRADER_FAILURE)]


def test_an_extra_verdict_confirms_nothing_and_moves_nothing():
    group = complete(policy=Policy.MANUAL)
    grade(group)
    a, reply = group.trajectories.get(letter="A"), reply_for(group)
    found = (Finding(a.external_id, "hack", "it is", (line_of(a),)),)
    job.accept(group, replace(reply, findings=found), grader="ours")
    a.refresh_from_db(), group.refresh_from_db()
    assert a.integrity == "" and group.state == GroupState.GRADED and group.decisions.count() == 0


def test_while_collecting_there_is_nothing_to_judge():
    group = make_group(run=make_run(grader=claims.EXTERNAL), outcomes="PF")
    with pytest.raises(WrongState, match="still collecting"):
        job.accept(group, GraderReply(()), grader="ours")


@pytest.mark.parametrize("name", ["", "person", "x" * 61])
def test_it_cannot_pass_for_a_person(name):
    group = external()
    with pytest.raises(BadInput, match="no name for a grader"):
        job.accept(group, reply_for(group), grader=name)


def test_its_groups_are_inspected_before_the_policy_looks():
    group = external(patches=[TEST_GONE, PATCH, PATCH])
    entries = [
        CandidateReply(t.external_id, dict.fromkeys(CRITERIA, 4)) for t in group.trajectories.filter(outcome="passed")
    ]
    job.accept(group, GraderReply(tuple(entries)), grader="ours")
    group.refresh_from_db()
    assert group.inspected_at and group.held and group.hold_reason == decisions.SIGNAL_HOLD


def test_a_worker_whose_run_changed_to_an_external_grader_is_refused():
    group = complete()
    group.claim(by="static", lease_s=60)
    group.run.grader = claims.EXTERNAL
    group.run.save()
    job.accept(RolloutGroup.objects.get(pk=group.pk), reply_for(group), grader="ours")
    with pytest.raises(LeaseLost):
        job.store_verdict(group, reply_for(group), fencing=group.fencing)
    assert group.verdicts.get().grader == "ours"


# ---- inspection ----


def test_filtered_groups_are_inspected_too_because_a_hack_can_hide_there():
    group = complete("PP", patches=[TEST_GONE, PATCH])
    decisions.after_complete(group, by="test")
    job.drain()
    assert Signal.objects.filter(trajectory__group=group, detector="H1", is_strong=True).exists()


def test_inspection_waits_for_bodies_that_are_wanted_and_then_reads_the_events():
    life = make_life(run=make_run(policy=Policy.AUTO, bodies_share=1.0))
    group = make_group(life=life, group_size=2)
    outcomes = {"a": "passed", "b": "passed"}
    for id, outcome in outcomes.items():
        assemble.add_trajectory(group, Rollout(external_id=id, outcome=outcome, patch=PATCH), by="job")
    RolloutGroup.objects.filter(pk=group.pk).update(collect_by=clock.now() + timedelta(hours=1))
    job.drain()
    group.refresh_from_db()
    assert group.state == GroupState.DECIDED and group.bodies_wanted and group.inspected_at is None
    peek = [{"kind": "action", "text": "cat hidden_tests/test_app.py"}]
    for id, outcome in outcomes.items():
        assemble.add_trajectory(group, Rollout(external_id=id, outcome=outcome, patch=PATCH, events=peek), by="job")
    job.drain()
    group.refresh_from_db()
    assert group.bodies_ready and group.inspected_at


def test_inspection_does_not_wait_for_ever():
    group = complete("PP", bodies_ready=False, collect_by=clock.now() - timedelta(seconds=1))
    decisions.after_complete(group, by="test")
    job.drain()
    group.refresh_from_db()
    assert group.inspected_at


def test_two_inspections_leave_one_set_of_hints():
    group = complete("PP", patches=[TEST_GONE, PATCH])
    other = RolloutGroup.objects.select_related("run", "task").get(pk=group.pk)
    inspection.inspect(group)
    once = Signal.objects.count()
    inspection.inspect(other)
    assert once and Signal.objects.count() == once


# ---- deadlines over what a grader said ----


def test_at_the_review_deadline_the_graders_verdict_counts_and_no_unapproved_correction():
    group = complete(policy=Policy.MANUAL)
    first = grade(group)
    add_verdict(group, {"A": 5}, grader="person", author=make_user(), parent=first, reason="A is better")
    RolloutGroup.objects.filter(pk=group.pk).update(review_by=clock.now() - timedelta(seconds=1))
    assert deadlines.sweep() == 1
    assert group.decisions.get().verdict == first


def test_in_a_paused_run_the_deadline_sends_outcome_advantages():
    group = complete(policy=Policy.MANUAL)
    grade(group)
    pausing.switch(group.run, paused=True, reason="entropy", by="alice")
    RolloutGroup.objects.filter(pk=group.pk).update(review_by=clock.now() - timedelta(seconds=1))
    deadlines.sweep()
    assert kinds(group) == [(DecisionKind.FALLBACK, "paused")]
