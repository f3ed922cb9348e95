from datetime import timedelta
from threading import Barrier, Thread

import pytest
from django.db import connection

from grading import clock
from grading.errors import Conflict, WrongState
from grading.grader import job
from grading.models import RolloutGroup, Signal
from grading.review import deadlines, decisions
from grading.states import DecisionKind, EndReason, GroupState, Method, Policy
from tests.factories import make_group, make_run, make_task, make_user
from tests.verdicts import add_verdict, grade, held_group, reply_for

pytestmark = pytest.mark.django_db


def complete_group(*, outcomes="PPF", run=None, **fields):
    return make_group(run=run or make_run(policy=Policy.AUTO), state=GroupState.COMPLETE, outcomes=outcomes, **fields)


def kinds(group) -> list[str]:
    return list(group.decisions.values_list("kind", flat=True))


def test_auto_lets_a_valid_verdict_count_at_once():
    group = complete_group()
    verdict = grade(group)
    decision = group.decisions.get()
    assert (decision.kind, decision.verdict, decision.by) == (DecisionKind.VERDICT, verdict, "policy:auto")
    assert group.state == GroupState.DECIDED and group.version == 1


def test_an_invalid_verdict_falls_back_and_keeps_its_problems():
    group = complete_group()
    group.claim(by="test", lease_s=60)
    reply = reply_for(group)
    verdict = job.store_verdict(group, type(reply)(reply.candidates[:1]), fencing=group.fencing)
    decision = group.decisions.get()
    assert not verdict.is_valid and "is missing" in str(verdict.problems)
    assert (decision.kind, decision.reason) == (DecisionKind.FALLBACK, decisions.GRADER_FAILURE)


def test_shadow_grades_and_delivers_outcome_advantages():
    group = complete_group(run=make_run(policy=Policy.SHADOW))
    verdict = grade(group)
    assert verdict.is_valid
    decision = group.decisions.get()
    assert (decision.kind, decision.reason) == (DecisionKind.FALLBACK, "shadow")
    with pytest.raises(WrongState, match="shadow"):
        decisions.approve(group, seen_verdict=verdict.pk, user=make_user())


@pytest.mark.parametrize(("share", "held"), [(0.0, False), (1.0, True)])
def test_sampled_stores_the_probability_it_drew_with(share, held):
    group = complete_group(run=make_run(policy=Policy.SAMPLED, hold_share=share))
    grade(group)
    assert (group.hold_probability, group.held) == (share, held)
    assert (group.state == GroupState.GRADED) is held
    assert (group.review_by is not None) is held


def test_manual_holds_every_group():
    group = complete_group(run=make_run(policy=Policy.MANUAL))
    grade(group)
    assert group.held and group in RolloutGroup.objects.awaiting_review()


def test_a_strong_signal_holds_a_group_within_the_budget_of_its_step():
    run = make_run(policy=Policy.AUTO, hold_budget=1)
    first, second = complete_group(run=run), complete_group(run=run)
    for group in (first, second):
        Signal.objects.create(
            trajectory=group.trajectories.first(), detector="H1", is_strong=True, words="the test file is gone"
        )
        grade(group)
    assert (first.held, second.held) == (True, False)
    assert first.hold_reason == decisions.SIGNAL_HOLD


@pytest.mark.parametrize(
    ("outcomes", "end"),
    [
        ("PP", EndReason.FILTERED_ALL_PASSED),
        ("FF", EndReason.FILTERED_ALL_FAILED),
        ("P", EndReason.FILTERED_ALL_PASSED),
        ("II", EndReason.EXCLUDED_NO_VALID_TRAJECTORY),
    ],
)
def test_what_cannot_train_is_decided_without_a_grade(outcomes, end):
    group = complete_group(outcomes=outcomes)
    decisions.after_complete(group, by="test")
    assert group.end_reason == end and group.state == GroupState.DECIDED


def test_a_reward_that_is_no_number_excludes_the_group():
    group = complete_group()
    group.trajectories.filter(letter="A").update(reward="NaN")
    decisions.after_complete(group, by="test")
    assert group.end_reason == EndReason.EXCLUDED_BAD_REWARD


def test_a_quarantined_task_excludes_its_groups():
    run = make_run(policy=Policy.AUTO)
    group = complete_group(run=run, task=make_task(team=run.team, is_broken=True))
    decisions.after_complete(group, by="test")
    assert group.end_reason == EndReason.EXCLUDED_BROKEN_EVALUATION


def test_ineligible_groups_pass_through():
    group = complete_group(eligible=False, outcomes="PP")
    decisions.after_complete(group, by="test")
    assert kinds(group) == [DecisionKind.INELIGIBLE]


def test_method_outcome_and_a_paused_run_need_no_grade():
    plain = complete_group(run=make_run(method=Method.OUTCOME))
    paused = complete_group(run=make_run(paused=True))
    for group in (plain, paused):
        decisions.after_complete(group, by="test")
    assert kinds(plain) == [DecisionKind.BASELINE]
    assert paused.decisions.get().reason == "paused"


def test_approve_records_who_and_what_they_saw():
    group, alice = held_group(outcomes="PPF"), make_user(username="alice")
    verdict = decisions.newest_verdict(group)
    decision = decisions.approve(group, seen_verdict=verdict.pk, user=alice)
    assert (decision.by, decision.user, decision.verdict) == ("alice", alice, verdict)
    assert group.events.last().by == "alice"


def test_approve_refuses_a_verdict_that_is_no_longer_the_newest():
    group = held_group(outcomes="PPF")
    seen = decisions.newest_verdict(group)
    newer = add_verdict(group, {"A": 5}, parent=seen)
    with pytest.raises(Conflict, match="newer verdict") as refused:
        decisions.approve(group, seen_verdict=seen.pk, user=make_user())
    assert (refused.value.got, refused.value.expected) == (seen.pk, newer.pk)


def test_approving_twice_is_refused_and_adds_nothing():
    group, user = held_group(outcomes="PPF"), make_user()
    seen = decisions.newest_verdict(group).pk
    decisions.approve(group, seen_verdict=seen, user=user)
    with pytest.raises(Conflict, match="already counts"):
        decisions.approve(RolloutGroup.objects.get(pk=group.pk), seen_verdict=seen, user=user)
    assert group.decisions.count() == 1


def test_a_page_that_is_stale_cannot_decide_over_a_deadline():
    group, user = held_group(outcomes="PPF"), make_user()
    stale = RolloutGroup.objects.get(pk=group.pk)
    decisions.fall_back(group, user=user, reason="skipped")
    with pytest.raises(WrongState, match="changed while we looked"):
        decisions.fall_back(stale, user=user, reason="skipped")


def test_the_review_deadline_lets_the_valid_verdict_count():
    group = held_group(outcomes="PPF", review_by=clock.now() - timedelta(seconds=1))
    assert deadlines.sweep() == 1
    decision = group.decisions.get()
    assert (decision.kind, decision.by) == (DecisionKind.VERDICT, "policy:deadline")
    assert deadlines.sweep() == 0


def test_no_deadline_lets_a_verdict_count_in_shadow():
    run = make_run(policy=Policy.SHADOW)
    group = held_group(run=run, outcomes="PPF", review_by=clock.now() - timedelta(seconds=1))
    assert deadlines.sweep() == 1
    decision = group.decisions.get()
    assert (decision.kind, decision.reason, decision.verdict) == (DecisionKind.FALLBACK, decisions.SHADOW, None)


def test_the_grading_deadline_falls_back_and_the_late_grader_is_refused():
    group = complete_group(grade_by=clock.now() - timedelta(seconds=1))
    group.claim(by="slow", lease_s=60)
    deadlines.sweep()
    assert group.decisions.get().reason == "deadline"
    with pytest.raises(job.LeaseLost):
        job.store_verdict(group, reply_for(group), fencing=group.fencing)
    assert group.verdicts.count() == 0


def test_the_jobs_own_deadline_counts_when_it_is_the_earliest():
    group = held_group(outcomes="PPF", review_by=clock.now() + timedelta(hours=1))
    assert deadlines.want(group.run, group.life.n, [group.key], within_s=0) == 1
    assert deadlines.want(group.run, group.life.n, [group.key], within_s=60) == 0, "an earlier deadline stays"
    deadlines.sweep()
    assert group.decisions.get().by == "policy:deadline"


def test_a_lost_lease_is_graded_by_somebody_else_and_the_zombie_is_refused():
    group = complete_group()
    zombie = RolloutGroup.objects.get(pk=group.pk)
    assert zombie.claim(by="zombie", lease_s=60)
    assert not group.claim(by="other", lease_s=60), "the lease still lasts"
    RolloutGroup.objects.filter(pk=group.pk).update(claimed_until=clock.now() - timedelta(seconds=1))
    assert group.claim(by="other", lease_s=60)
    with pytest.raises(job.LeaseLost):
        job.store_verdict(zombie, reply_for(group), fencing=zombie.fencing)
    job.store_verdict(group, reply_for(group), fencing=group.fencing)
    assert group.verdicts.count() == 1


def test_a_group_that_kills_its_graders_falls_back_after_three():
    group = complete_group(grading_attempts=job.ATTEMPTS)
    job.drain()
    assert "3 graders died" in str(group.verdicts.get().problems)
    assert group.decisions.get().kind == DecisionKind.FALLBACK


@pytest.mark.django_db(transaction=True)
def test_of_two_people_who_approve_at_once_one_wins():
    group, users = held_group(outcomes="PPF"), [make_user(), make_user()]
    seen, start, lost = decisions.newest_verdict(group).pk, Barrier(2), []

    def approve(user):
        mine = RolloutGroup.objects.get(pk=group.pk)
        start.wait()
        try:
            decisions.approve(mine, seen_verdict=seen, user=user)
        except (Conflict, WrongState) as refused:
            lost.append(refused)
        finally:
            connection.close()

    threads = [Thread(target=approve, args=[user]) for user in users]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(lost) == 1 and group.decisions.count() == 1
