"""A step whose deadline has passed: decided in few commits, and one lost race takes nobody along."""

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from grading import clock
from grading.errors import WrongState
from grading.models import Decision, RolloutGroup
from grading.review import deadlines, decisions
from grading.states import DecisionKind, GroupState, Policy
from tests.factories import make_group, make_life, make_run, make_user
from tests.verdicts import add_verdict

pytestmark = pytest.mark.django_db


def overdue_groups(many: int) -> list[RolloutGroup]:
    run = make_run()
    life, past = make_life(run=run), clock.now() - timedelta(seconds=1)
    groups = [
        make_group(run=run, life=life, state=GroupState.GRADED, outcomes="PPF", review_by=past) for _ in range(many)
    ]
    for group in groups:
        add_verdict(group)
    return groups


def test_a_whole_step_is_decided_and_each_bell_rings_once_a_commit(django_capture_on_commit_callbacks):
    overdue_groups(deadlines.AT_ONCE + 3)
    with django_capture_on_commit_callbacks() as bells:
        assert deadlines.sweep() == deadlines.AT_ONCE + 3
    assert len(bells) == len({bell.args for bell in bells}) == 2  # the test's own transaction is one commit
    assert not RolloutGroup.objects.filter(state=GroupState.GRADED).exists()


def test_a_group_that_somebody_decided_meanwhile_takes_nobody_along():
    groups = overdue_groups(3)
    assert deadlines.decide_overdue([groups[1].pk]) == 1
    assert deadlines.decide_overdue([group.pk for group in groups]) == 2
    assert [group.decisions.count() for group in groups] == [1, 1, 1]


def test_a_step_of_any_size_is_decided_in_the_same_number_of_questions(django_assert_num_queries):
    few, many = overdue_groups(2), overdue_groups(20)
    with CaptureQueriesContext(connection) as asked:
        assert deadlines.decide_overdue([group.pk for group in few]) == 2
    with django_assert_num_queries(len(asked)):
        assert deadlines.decide_overdue([group.pk for group in many]) == 20
    assert len(asked) < 15


def test_groups_end_side_by_side_for_reasons_of_their_own():
    """One is filtered, one has no verdict, one has: each is decided as it would be alone."""
    run, past = make_run(policy=Policy.AUTO), clock.now() - timedelta(seconds=1)
    said = {"run": run, "life": make_life(run=run), "review_by": past, "state": GroupState.GRADED}
    graded, passed = make_group(outcomes="PPF", **said), make_group(outcomes="PP", **said)
    refused = make_group(outcomes="PPF", **said | {"state": GroupState.UNGRADED})
    verdict = add_verdict(graded)
    assert deadlines.decide_overdue([graded.pk, passed.pk, refused.pk]) == 3
    told = [(d.kind, d.reason, d.verdict_id) for d in Decision.objects.order_by("group_id")]
    assert told == [("verdict", "", verdict.pk), ("filtered", "", None), ("fallback", "deadline", None)]
    passed.refresh_from_db()
    assert (passed.end_reason, passed.version) == ("filtered_all_passed", 1)
    assert [e.reason for e in passed.events.filter(new="decided")] == ["filtered_all_passed"]


def test_groups_are_moved_together_only_as_they_were_read():
    groups = overdue_groups(2)
    RolloutGroup.objects.filter(pk=groups[1].pk).update(state=GroupState.GRADING)
    with pytest.raises(WrongState, match="one left graded"), transaction.atomic():
        decisions.decide_all([decisions.Choice(group, DecisionKind.FALLBACK, "test") for group in groups])
    assert not Decision.objects.exists()
    assert RolloutGroup.objects.get(pk=groups[0].pk).state == GroupState.GRADED


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "then the verdict counts"),
        ({"paused": True}, "then outcome advantages go out"),
    ],
)
def test_the_clock_says_what_its_end_will_decide(client, fields, words):
    run = make_run(policy=Policy.MANUAL, **fields)
    review_by = clock.now() + timedelta(seconds=60)
    group = make_group(
        run=run, state=GroupState.GRADED, held=True, hold_reason="policy manual", outcomes="PPF", review_by=review_by
    )
    add_verdict(group)
    client.force_login(make_user(role="reviewer", team=run.team))
    assert words in client.get(f"/groups/{group.pk}/").content.decode()
    RolloutGroup.objects.update(review_by=clock.now() - timedelta(seconds=1))
    deadlines.sweep()
    kind = RolloutGroup.objects.get().decisions.get().kind
    assert kind == (DecisionKind.FALLBACK if fields else DecisionKind.VERDICT)
