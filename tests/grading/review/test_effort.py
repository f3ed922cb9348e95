"""What a person's reviews cost and changed, and who may read it."""

import pytest
from django.urls import reverse

from grading.grader.shape import Cited
from grading.models import Review, Role
from grading.review import decisions, reviews
from grading.review.effort import effort_of
from tests.factories import make_run, make_user
from tests.verdicts import held_group, line_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def run():
    return make_run(policy="manual")


@pytest.fixture
def alice(run):
    return make_user(username="alice", role=Role.REVIEWER, team=run.team)


def corrected(run, user, *, seconds: float):
    """Three tied passes, one lowered below them: T1 1 1 · T2 0.85."""
    group = held_group(run=run, outcomes="PPPF", hold_reason="policy manual")
    a, seen = group.trajectories.get(letter="A"), decisions.newest_verdict(group).pk
    said = {"scores": {a.external_id: {"minimality": 2}}, "flags": {}, "reason": "too wide"}
    said["citations"] = {a.external_id: [Cited("minimality", line_of(a))]}
    made = reviews.correct(group, parent=seen, user=user, attention_s=seconds, **said)
    reviews.approve(group, seen_verdict=made.pk, user=user, attention_s=seconds)
    return group


def found_right(run, user, *, seconds: float | None = None):
    group = held_group(run=run, outcomes="PPF", hold_reason="policy manual")
    reviews.approve(group, seen_verdict=decisions.newest_verdict(group).pk, user=user, attention_s=seconds)
    return group


def test_minutes_per_changed_advantage_by_hand(run, alice):
    # 120 s with one changed factor (1 to 0.85), 60 s with none, one not measured: 3 min in all for 1.
    corrected(run, alice, seconds=120)
    found_right(run, alice, seconds=60)
    found_right(run, alice)
    effort = effort_of(list(Review.objects.filter(reviewer=alice)))
    assert (effort.reviews, effort.changed_reviews, effort.measured, effort.median_min) == (3, 1, 2, 1.5)
    assert (effort.changed_groups, effort.changed_advantages, effort.min_per_change) == (1, 1, 3.0)


def test_what_no_longer_counts_changed_nothing(run, alice):
    group = corrected(run, alice, seconds=60)
    group.refresh_from_db()
    decisions.fall_back(group, user=alice, reason="not sure any more")
    effort = effort_of(list(Review.objects.filter(reviewer=alice)))
    assert (effort.changed_advantages, effort.min_per_change) == (0, None)


def test_nobody_who_did_nothing_divides_by_zero():
    effort = effort_of([])
    assert (effort.reviews, effort.median_min, effort.min_per_change) == (0, None, None)


def test_finished_reviews_are_found_again_and_only_by_their_team(client, run, alice):
    group = found_right(run, alice, seconds=30)
    client.force_login(alice)
    said = client.get(reverse("my-reviews"), follow=True).content.decode()
    assert "My finished reviews" in said and reverse("group", args=[group.pk]) in said and "found it right" in said
    colleague = make_user(role=Role.VIEWER, team=run.team)
    client.force_login(colleague)
    assert group.task.key in client.get(reverse("reviewer", args=[alice.pk])).content.decode()
    assert "alice" in client.get(reverse("run-reviews", args=[run.public_id])).content.decode()
    client.force_login(make_user(role=Role.ADMIN))
    assert client.get(reverse("reviewer", args=[alice.pk])).status_code == 404
    assert client.get(reverse("run-reviews", args=[run.public_id])).status_code == 404


def test_what_a_person_did_in_another_team_is_not_shown(client, run, alice):
    other = make_run(policy="manual")
    alice.memberships.create(team=other.team, role=Role.REVIEWER)
    group = found_right(other, alice)
    client.force_login(make_user(role=Role.VIEWER, team=run.team))
    said = client.get(reverse("reviewer", args=[alice.pk])).content.decode()
    assert group.task.key not in said and "0 reviews" in said


def test_an_answer_about_a_group_that_still_waits_is_shown_to_its_author_only(client, run, alice):
    group = held_group(run=run, outcomes="PPF", reviews_wanted=2, hold_reason="policy manual")
    seen = decisions.newest_verdict(group).pk
    reviews.submit(group, parent=seen, user=alice, reason="", scores={}, flags={}, is_right=True)
    for user, expected in ((alice, True), (make_user(role=Role.REVIEWER, team=run.team), False)):
        client.force_login(user)
        said = client.get(reverse("reviewer", args=[alice.pk])).content.decode()
        assert ("found it right" in said) is expected
        assert "No finished review" in client.get(reverse("run-reviews", args=[run.public_id])).content.decode()
