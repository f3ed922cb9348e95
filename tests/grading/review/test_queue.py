"""Who is first in the queue, and who holds what."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from grading import clock
from grading.errors import Conflict, WrongState
from grading.grader.shape import Cited
from grading.models import Review, ReviewClaim, Role, RolloutGroup
from grading.review import decisions, placing, queue, reviews
from grading.states import GroupState
from tests.factories import make_group, make_run, make_user
from tests.verdicts import add_verdict, held_group, line_of

pytestmark = pytest.mark.django_db


def order(groups=None) -> list[str]:
    return [w.group.key for w in queue.waiting(groups or RolloutGroup.objects.all())]


def test_the_spread_of_factors_by_hand():
    # mean (1 + 0.2) / 2 = 0.6: |1 / 0.6 - 1| + |0.2 / 0.6 - 1| = 2/3 + 2/3
    assert placing.spread([1.0, 0.2]) == pytest.approx(4 / 3)
    assert placing.spread([0.5, 0.5]) == 0 and placing.spread([]) == 0


def test_closeness_counts_who_stands_near_somebody_they_are_not_tied_with():
    rows = [(1, 0, 4.9, 1.0), (1, 0, 4.9, 1.0), (1, 1, 4.7, 0.9), (2, 0, 3.0, 0.85)]
    assert placing.closeness(rows) == 0.5  # 4.7 and its neighbour 4.9


def test_what_changes_most_comes_first_then_the_nearest_deadline():
    run, soon = make_run(policy="manual"), clock.now() + timedelta(seconds=60)
    calm = held_group(run=run, outcomes="PPF", key="calm")
    add_verdict(calm, {"A": 5, "B": 5})
    wide = held_group(run=run, outcomes="PPF", key="wide")
    add_verdict(wide, {"A": 5, "B": 2})
    pressed = held_group(run=run, outcomes="PPF", key="pressed", review_by=soon)
    add_verdict(pressed, {"A": 5, "B": 5})
    make_group(run=run, state=GroupState.UNGRADED, held=True, outcomes="PPF", key="no verdict")
    assert order() == ["no verdict", "wide", "pressed", "calm"]


def test_a_group_that_is_held_while_a_page_reads_the_queue_comes_with_the_next_look():
    run = make_run(policy="manual")
    held_group(run=run, outcomes="PPF", key="first")
    reading = queue.ordered(RolloutGroup.objects.all())
    held_group(run=run, outcomes="PPF", key="meanwhile")
    assert [row.group.key for row in queue.rows_of(list(reading)) if row.priority >= 0] == ["first"]
    assert sorted(order()) == ["first", "meanwhile"]


def test_the_queue_asks_a_constant_number_of_questions():
    run = make_run(policy="manual")
    costs = []
    for more in (1, 3):
        for _ in range(more):
            held_group(run=run, outcomes="PPF")
        placing.place(RolloutGroup.objects.all())
        with CaptureQueriesContext(connection) as queries:
            waiting = queue.waiting(RolloutGroup.objects.all())
        assert len(waiting) == RolloutGroup.objects.count()
        costs.append(len(queries))
    assert costs[0] == costs[1]


def test_a_claim_keeps_others_out_until_it_ends():
    group = held_group(outcomes="PF")
    alice, bob = (make_user(username=name, role=Role.REVIEWER, team=group.run.team) for name in ("alice", "bob"))
    queue.claim(group, user=alice)
    with pytest.raises(Conflict, match="alice holds"):
        queue.claim(group, user=bob)
    assert queue.claim_first(bob) is None and queue.claim_first(alice) == group
    ReviewClaim.objects.update(until=clock.now() - timedelta(seconds=1))
    assert queue.claim_first(bob) == group


def test_only_what_waits_is_claimed_and_a_decision_ends_the_claim():
    group = held_group(outcomes="PF", hold_reason="policy manual")
    alice = make_user(role=Role.REVIEWER, team=group.run.team)
    queue.claim(group, user=alice)
    decisions.fall_back(group, user=alice, reason="enough")
    assert not ReviewClaim.objects.exists()
    with pytest.raises(WrongState):
        queue.claim(group, user=alice)


def test_next_walks_the_queue_and_starts_again():
    run = make_run(policy="manual")
    groups = [held_group(run=run, outcomes="PF", key=key) for key in "abc"]
    user = make_user(role=Role.VIEWER, team=run.team)
    assert [queue.after(user, g.pk).key for g in groups] == ["b", "c", "a"]
    assert queue.after(user, None).key == "a"
    assert queue.after(make_user(role=Role.VIEWER), None) is None


def test_a_stored_place_opens_the_queue_in_few_questions():
    run = make_run(policy="manual")
    for _ in range(3):
        held_group(run=run, outcomes="PPF")
    placing.place(RolloutGroup.objects.all())
    with CaptureQueriesContext(connection) as queries:
        queue.waiting(RolloutGroup.objects.all())
    assert len(queries) <= 6  # is any without a place, groups, rollouts, claims, reviews; PostgreSQL tells its time


def test_a_new_correction_moves_the_group_in_the_queue():
    run = make_run(policy="manual")
    calm, other = (held_group(run=run, outcomes="PPF", key=key) for key in ("calm", "other"))
    assert order() == ["calm", "other"]
    alice = make_user(role=Role.REVIEWER, team=run.team)
    ids = dict(other.trajectories.values_list("letter", "external_id"))
    cited = {ids["A"]: [Cited("minimality", line_of(other.trajectories.get(letter="A")))]}
    seen, edits = decisions.newest_verdict(other).pk, {"scores": {ids["A"]: {"minimality": 1}}, "flags": {}}
    reviews.correct(other, parent=seen, user=alice, reason="too wide", citations=cited, **edits)
    assert order() == ["other", "calm"]


def test_what_somebody_declined_is_not_offered_again_after_any_claim_ends():
    group = held_group(outcomes="PF")
    alice, bob = (make_user(role=Role.REVIEWER, team=group.run.team) for _ in range(2))
    queue.claim(group, user=alice)
    reviews.decline(group, user=alice)
    ReviewClaim.objects.all().delete()
    assert queue.claim_first(alice) is None and queue.after(alice, None) is None
    assert queue.after(bob, None) == group and queue.claim_first(bob) == group


def test_who_takes_a_declined_group_after_all_may():
    group = held_group(outcomes="PF")
    alice = make_user(role=Role.REVIEWER, team=group.run.team)
    reviews.decline(group, user=alice)
    queue.claim(group, user=alice)
    queue.release(group, user=alice)
    assert queue.claim_first(alice) == group


def test_a_group_with_two_seats_is_offered_to_two_people_and_no_third():
    group = held_group(outcomes="PF", reviews_wanted=2)
    alice, bob, carol = (make_user(role=Role.REVIEWER, team=group.run.team) for _ in range(3))
    assert queue.claim_first(alice) == group and queue.claim_first(bob) == group
    assert queue.claim_first(carol) is None
    with pytest.raises(Conflict, match="have all 2 reviews"):
        queue.claim(group, user=carol)
    Review.objects.filter(reviewer=alice).update(until=clock.now() - timedelta(seconds=1))
    assert queue.claim_first(carol) == group  # who left locks nobody out
