"""Several people answer for one group, each alone; agreement counts at once, a third person settles a difference."""

from threading import Barrier, Thread

import pytest
from django.db import connection

from grading.errors import BadInput, Conflict, Overtaken, WrongState
from grading.grader.shape import Cited
from grading.models import Decision, Membership, Review, Role, RolloutGroup, Verdict
from grading.review import corrections, decisions, queue, reviews
from grading.review.rounds import Round, Turn
from grading.states import GroupState
from tests.factories import make_user
from tests.verdicts import add_verdict, held_group, line_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def group():
    return held_group(outcomes="PPF", reviews_wanted=2, hold_reason="policy manual")


@pytest.fixture
def people(group):
    return [make_user(username=n, role=Role.REVIEWER, team=group.run.team) for n in ("alice", "bob", "carol")]


def lower(group, letter: str, score: int = 2) -> dict:
    """Minimality of one candidate lowered, with a citation."""
    trajectory = group.trajectories.get(letter=letter)
    return {
        "scores": {trajectory.external_id: {"minimality": score}},
        "citations": {trajectory.external_id: [Cited("minimality", line_of(trajectory))]},
    }


def submit(group, user, **said) -> Review:
    seen = said.pop("parent", None) or decisions.newest_verdict(group).pk
    usual = {"reason": "it rewrites too much", "scores": {}, "flags": {}}
    return reviews.submit(group, user=user, parent=seen, **usual | said)


def turns(group, *people) -> list[Turn]:
    group.refresh_from_db()
    return [Round.of(group).turn(user) for user in people]


def test_each_answers_alone_and_nothing_is_decided_before_all_are_in(group, people):
    alice, bob, carol = people
    assert turns(group, alice, bob, carol) == [Turn.REVIEW] * 3
    with pytest.raises(WrongState, match="0 of 2 independent reviews"):
        reviews.approve(group, seen_verdict=decisions.newest_verdict(group).pk, user=alice)
    submit(group, alice, is_right=True)
    assert turns(group, alice, bob) == [Turn.WAIT, Turn.REVIEW]
    with pytest.raises(WrongState, match="1 of 2"):
        reviews.fall_back(group, user=alice, reason="enough")
    assert not Decision.objects.exists() and Verdict.objects.count() == 1


def test_an_untouched_ranking_is_no_answer_until_somebody_says_that_it_is_right(group, people):
    with pytest.raises(BadInput, match="untouched"):
        submit(group, people[0])
    review = submit(group, people[0], is_right=True)
    assert review.answer["ranking"] == decisions.newest_verdict(group).ranking and not review.answer["is_changed"]


def test_an_answer_needs_evidence_like_any_correction(group, people):
    edits = lower(group, "A") | {"citations": {}}
    with pytest.raises(BadInput, match="citation"):
        submit(group, people[0], **edits)
    with pytest.raises(corrections.NotValid):  # cited is B, lowered A
        submit(group, people[0], **lower(group, "A") | {"citations": lower(group, "B")["citations"]})
    assert not Review.objects.filter(state="submitted").exists()


def test_who_agrees_that_it_is_right_lets_the_graders_verdict_count(group, people):
    alice, bob, _ = people
    first = submit(group, alice, is_right=True)
    submit(group, bob, is_right=True)
    assert turns(group, alice, bob) == [Turn.AGREED] * 2
    decision = reviews.count(group, review=first.pk, user=bob)
    assert (decision.verdict_id, decision.by) == (decisions.newest_verdict(group).pk, "bob")
    assert Verdict.objects.count() == 1


def test_who_agrees_on_a_change_makes_it_the_verdict_that_counts(group, people):
    alice, bob, _ = people
    submit(group, alice, **lower(group, "A"))
    second = submit(group, bob, **lower(group, "A"))
    decision = reviews.count(group, review=second.pk, user=alice)
    made = decision.verdict
    assert (made.author, made.parent_id) == (alice, group.verdicts.first().pk)
    assert made.candidates.get(trajectory__letter="A").scores["minimality"] == 2
    assert "bob" in made.reason and made.is_valid


def test_where_two_differ_a_third_person_decides(group, people):
    alice, bob, carol = people
    first = submit(group, alice, **lower(group, "A"))
    submit(group, bob, **lower(group, "B"))
    assert turns(group, alice, bob, carol) == [Turn.OTHERS, Turn.OTHERS, Turn.THIRD]
    assert RolloutGroup.objects.get(pk=group.pk).uncertainty == 1.0
    with pytest.raises(WrongState, match="somebody who gave none"):
        reviews.count(group, review=first.pk, user=alice)
    assert queue.claim_first(alice) is None and queue.claim_first(carol) == group
    decision = reviews.count(group, review=first.pk, user=carol)
    assert decision.verdict.author == carol
    assert Review.objects.get(pk=first.pk).verdict == decision.verdict
    assert Review.objects.filter(reviewer=carol).count() == 0  # who decides adds no answer


def test_the_third_person_may_also_correct_the_verdict_themselves(group, people):
    alice, bob, carol = people
    submit(group, alice, **lower(group, "A"))
    submit(group, bob, **lower(group, "B"))
    seen = decisions.newest_verdict(group).pk
    made = reviews.correct(group, parent=seen, user=carol, reason="neither", flags={}, **lower(group, "A", 3))
    reviews.approve(group, seen_verdict=made.pk, user=carol)
    assert Decision.objects.get().verdict == made


def test_two_who_are_alone_in_their_team_are_not_stuck(group, people):
    alice, bob, carol = people
    Membership.objects.filter(user=carol).delete()
    submit(group, alice, **lower(group, "A"))
    submit(group, bob, **lower(group, "B"))
    assert turns(group, alice, bob) == [Turn.THIRD] * 2


def test_only_seats_count_and_an_answer_stays_as_it_is(group, people):
    alice, bob, carol = people
    queue.claim(group, user=alice)
    queue.claim(group, user=bob)
    with pytest.raises(Conflict, match="alice, bob have all 2"):
        submit(group, carol, is_right=True)
    submit(group, alice, is_right=True)
    with pytest.raises(Conflict, match="in already"):
        submit(group, alice, **lower(group, "A"))
    with pytest.raises(Conflict, match="in already"):
        reviews.decline(group, user=alice)


def test_an_answer_to_a_verdict_that_was_replaced_is_not_taken_silently(group, people):
    seen = decisions.newest_verdict(group).pk
    add_verdict(group, {"A": 5, "B": 4})
    with pytest.raises(Overtaken):
        submit(group, people[0], parent=seen, is_right=True)


def test_a_deadline_still_decides_without_any_review(group, people):
    submit(group, people[0], is_right=True)
    decisions.by_policy(group, decisions.graders_verdict(group), by=decisions.BY_DEADLINE)
    group.refresh_from_db()
    assert group.state == GroupState.DECIDED and turns(group, people[1]) == [Turn.DECIDE]


def test_one_who_decides_alone_leaves_a_review_with_its_time():
    group = held_group(outcomes="PPF", hold_reason="policy manual")
    dora = make_user(role=Role.REVIEWER, team=group.run.team)
    queue.claim(group, user=dora)
    Review.objects.update(started_at=Review.objects.get().started_at.replace(year=2020))
    seen = decisions.newest_verdict(group).pk
    made = reviews.correct(group, parent=seen, user=dora, reason="wide", flags={}, attention_s=40, **lower(group, "A"))
    assert Review.objects.get().state == "open"  # a correction decides nothing
    reviews.approve(group, seen_verdict=made.pk, user=dora, attention_s=61)
    review = Review.objects.get()
    assert (review.state, review.attention_s, review.verdict, review.seen_verdict_id) == ("submitted", 61, made, seen)
    assert review.answer["is_changed"] and review.answer["ranking"] == made.ranking


def test_attention_is_never_longer_than_the_time_that_passed(group, people):
    queue.claim(group, user=people[0])
    assert submit(group, people[0], is_right=True, attention_s=5000).attention_s < 60


@pytest.mark.django_db(transaction=True)
def test_of_four_who_want_two_seats_at_once_two_have_them():
    group = held_group(outcomes="PPF", reviews_wanted=2)
    users = [make_user(role=Role.REVIEWER, team=group.run.team) for _ in range(4)]
    start, refused = Barrier(4), []

    def sit(user):
        start.wait()
        try:
            reviews.begin(group, user=user)
        except Conflict:
            refused.append(user)
        finally:
            connection.close()

    threads = [Thread(target=sit, args=[user]) for user in users]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(refused) == 2 and Review.objects.filter(until__isnull=False).count() == 2
