"""A person asks for another grading: before a decision it may count, after one it is something to read."""

from datetime import timedelta

import pytest

from grading import clock
from grading.errors import BadInput, Conflict, WrongShape, WrongState
from grading.grader import claims, crew, job, regrade
from grading.models import Grading, RolloutGroup
from grading.review import deadlines, decisions
from grading.states import DecisionKind, GroupState, Policy, Purpose
from tests.factories import make_group, make_run, make_user
from tests.grading.grader.test_job import complete, expire, kinds
from tests.grading.grader.test_running import server  # noqa: F401  (a fixture)

pytestmark = pytest.mark.django_db
State = Grading.State


def held(**fields):
    """A group that its first grader graded and a person has to decide."""
    group = complete(policy=Policy.MANUAL, **fields)
    job.drain()
    group.refresh_from_db()
    assert group.state == GroupState.GRADED and group.held
    return group


def decided():
    group = complete()
    job.drain()
    group.refresh_from_db()
    assert group.state == GroupState.DECIDED
    return group


def test_before_a_decision_it_is_a_training_verdict_and_the_hold_stays(server):  # noqa: F811
    group, alice = held(), make_user(username="alice")
    review_by = group.review_by
    asked = regrade.ask(group, by=alice, grader="single_pass", model="openai:other")
    group.refresh_from_db()
    assert (asked.state, asked.attempt, group.state, group.grade_by) == (State.RUNNING, 0, "grading", review_by)
    assert job.drain() == 1
    asked.refresh_from_db(), group.refresh_from_db()
    assert (asked.state, asked.attempt, asked.asked_by, asked.model) == (State.VALID, 1, "alice", "openai:other")
    verdict = decisions.newest_verdict(group)
    assert asked.verdict == verdict and (verdict.purpose, verdict.grader) == (Purpose.TRAINING, "single_pass")
    assert (group.state, group.held, group.hold_reason, group.review_by) == (
        GroupState.GRADED, True, "policy manual", review_by,
    )  # fmt: skip
    assert group.hold_probability == 1.0 and group.decisions.count() == 0
    decisions.approve(group, seen_verdict=verdict.pk, user=alice)
    assert kinds(group) == [(DecisionKind.VERDICT, "")]


def test_one_that_fails_takes_nothing_away_from_the_verdict_before_it(server):  # noqa: F811
    server.play("500")
    group = held()
    first = decisions.newest_verdict(group)
    asked = regrade.ask(group, by=make_user(), grader="single_pass")
    job.drain()
    asked.refresh_from_db(), group.refresh_from_db()
    assert asked.state == State.FAILED and asked.verdict.purpose == Purpose.EXTRA and not asked.verdict.is_valid
    assert (group.state, decisions.newest_verdict(group)) == (GroupState.GRADED, first)


def test_after_a_decision_it_is_an_extra_and_nothing_moves(server):  # noqa: F811
    group = decided()
    before = (group.state, group.version, group.fencing)
    asked = regrade.ask(group, by=make_user(), grader="single_pass")
    assert job.drain() == 1
    asked.refresh_from_db(), group.refresh_from_db()
    assert (asked.state, asked.verdict.purpose, asked.fencing) == (State.VALID, Purpose.EXTRA, 0)
    assert (group.state, group.version, group.fencing) == before and group.decisions.count() == 1
    assert group.decisions.get().verdict != asked.verdict


def test_one_that_a_deadline_overtakes_before_it_began_is_an_extra(server):  # noqa: F811
    group = held()
    asked = regrade.ask(group, by=make_user(), grader="single_pass")
    RolloutGroup.objects.filter(pk=group.pk).update(grade_by=clock.now() - timedelta(seconds=1))
    assert deadlines.sweep() == 1
    assert group.decisions.get().verdict == group.verdicts.get(), "the verdict that was there counts"
    job.drain()
    asked.refresh_from_db()
    assert (asked.state, asked.verdict.purpose) == (State.VALID, Purpose.EXTRA) and group.decisions.count() == 1


def test_one_that_a_deadline_overtakes_while_it_works_is_an_extra_too(server):  # noqa: F811
    group = held()
    regrade.ask(group, by=make_user(), grader="single_pass")
    begun = claims.next_claim(networked=True)
    RolloutGroup.objects.filter(pk=group.pk).update(grade_by=clock.now() - timedelta(seconds=1))
    assert deadlines.sweep() == 1
    decision = group.decisions.get()
    begun.group.run.refresh_from_db()
    job.grade(begun)
    begun.refresh_from_db()
    assert (begun.state, begun.verdict.purpose) == (State.VALID, Purpose.EXTRA)
    assert group.decisions.get() == decision and decision.verdict != begun.verdict


def test_who_asked_is_not_forgotten_when_the_worker_dies(server):  # noqa: F811
    group, extra, alice = held(), decided(), make_user(username="alice")
    for one in (group, extra):
        regrade.ask(one, by=alice, grader="single_pass")
        assert claims.next_claim(networked=True).group == one
    expire(group)
    job.drain()
    rows = list(group.gradings.exclude(asked_by="").values_list("state", "grader", "asked_by"))
    assert rows == [(State.DIED, "single_pass", "alice"), (State.VALID, "single_pass", "alice")]
    Grading.objects.filter(group=extra).update(started_at=clock.now() - timedelta(hours=1))
    assert claims.bury() == 1 and job.drain() == 1
    assert list(extra.gradings.exclude(asked_by="").values_list("state", flat=True)) == [State.DIED, State.VALID]


def test_an_extra_that_kills_its_workers_is_tried_three_times(server):  # noqa: F811
    group = decided()
    regrade.ask(group, by=make_user(), grader="single_pass")
    for left in (1, 1, 0):
        assert claims.next_claim(networked=True)
        Grading.objects.filter(group=group).update(started_at=clock.now() - timedelta(hours=1))
        assert claims.bury() == 1
        assert Grading.objects.filter(claims.QUEUED).count() == left
    assert claims.next_claim(networked=True) is None


@pytest.mark.parametrize("make", [held, decided])
def test_a_worker_that_stops_leaves_it_queued(server, make):  # noqa: F811
    group = make()
    regrade.ask(group, by=make_user(username="alice"), grader="single_pass")
    begun = claims.next_claim(networked=True)
    assert crew.give_back(begun)
    job.grade(begun)
    assert Grading.objects.get(pk=begun.pk).state == State.REFUSED
    again = claims.next_claim(networked=True)
    assert (again.group, again.asked_by, again.grader) == (group, "alice", "single_pass")


def test_what_cannot_be_graded_again_is_refused_in_words():
    alice, group = make_user(), held()
    with pytest.raises(BadInput, match="no such grader"):
        regrade.ask(group, by=alice, grader="external")
    with pytest.raises(WrongShape, match="option model"):
        regrade.ask(group, by=alice, model="m" * 300)
    regrade.ask(group, by=alice)
    with pytest.raises(Conflict, match="already"):
        regrade.ask(decided_twice(alice), by=alice)
    with pytest.raises(WrongState, match="first grading is still to come"):
        regrade.ask(complete(), by=alice)
    filtered = make_group(run=make_run(policy=Policy.AUTO), state=GroupState.COMPLETE, outcomes="PP")
    decisions.after_complete(filtered, by="test")
    with pytest.raises(WrongState, match="nothing to rank"):
        regrade.ask(filtered, by=alice)


def decided_twice(by):
    group = decided()
    regrade.ask(group, by=by)
    return group
