"""What is watched is read in the order it came, and what happens to a group later changes nothing of it."""

import pytest
from django.utils import timezone

from grading.calibration import watching
from grading.calibration.drift import alarms
from grading.calibration.identity import EVERYBODY
from grading.models import Review, RolloutGroup
from tests.factories import make_run, make_user
from tests.grading.calibration.said import answered, blind

pytestmark = pytest.mark.django_db


@pytest.fixture
def run():
    return make_run()


def streams(run) -> dict:
    return watching.streams_of(RolloutGroup.objects.filter(run=run), Review.objects.filter(group__run=run), EVERYBODY)


def test_agreement_is_the_first_blind_order_of_each_group_by_when_it_was_given(run):
    late, early = (answered(run, {"A": 5, "B": 4, "C": 3}) for _ in range(2))
    blind(early, "A", "B", "C", ranked_at=timezone.now())
    blind(late, "C", "B", "A", ranked_at=timezone.now())
    blind(early, "C", "B", "A", ranked_at=timezone.now())  # a second opinion comes too late to be watched
    assert list(streams(run)["agreement"].items()) == [(early.pk, 1.0), (late.pk, 0.0)]


def test_fallbacks_and_corrections_are_those_of_the_first_decision(run):
    failed, kept = answered(run, {"A": 5, "B": 4}), answered(run, {"A": 5, "B": 4})
    rita = make_user(role="reviewer", team=run.team)
    failed.decisions.create(version=1, kind="fallback", reason="grader_failure", by="policy:auto")
    kept.decisions.create(version=1, kind="verdict", verdict=kept.verdicts.get(), by="rita", user=rita)
    kept.decisions.create(version=2, kind="fallback", reason="grader_failure", by="policy:auto")
    found = streams(run)
    assert found["fallback"] == {failed.pk: 1.0, kept.pk: 0.0} and found["corrections"] == {kept.pk: 0.0}


def test_a_grader_that_people_stop_agreeing_with_is_an_alarm_that_says_what_to_do(run):
    for n in range(90):
        blind(answered(run, {"A": 5, "B": 4, "C": 3}), *("ABC" if n < 50 else "CBA"), ranked_at=timezone.now())
    watched = watching.watched_of(streams(run))
    assert watched["agreement"].left_at < 20 and not watched["fallback"].has_left
    (words,) = alarms(None, [], list(watched.items()))
    assert "Agreement: 1.00 in the grader's first 50 groups, 0.00 since" in words and "Grade the anchors again" in words
