"""Who is drawn for a person: by influence x uncertainty, never with probability 0, and stored."""

import pytest

from grading.calibration.sampling import hold_probability
from grading.models import Role, RolloutGroup
from grading.review import decisions
from grading.states import Policy
from tests.factories import make_group, make_run, make_user
from tests.verdicts import grade


def test_a_usual_group_is_drawn_with_the_share_and_others_by_their_weight():
    assert hold_probability(0.2, 1.0, 1.0) == pytest.approx(0.2)
    assert hold_probability(0.2, 0.0, 1.0) == pytest.approx(1 - 0.8**0.5)  # m = 1/2
    assert hold_probability(0.2, 9.0, 1.0) == pytest.approx(1 - 0.8**2.5)  # m = 1/2 + 1/2 4, bounded
    assert hold_probability(0.2, 3.0, None) == 0.2


def test_a_share_of_none_or_all_is_kept_and_nonsense_is_refused():
    assert (hold_probability(0.0, 5.0, 1.0), hold_probability(1.0, 0.0, 1.0)) == (0.0, 1.0)
    with pytest.raises(ValueError, match="expected 0 to 1"):
        hold_probability(1.5, 0.0, 1.0)


@pytest.fixture
def run(db):
    return make_run(policy=Policy.SAMPLED, hold_share=0.2)


def graded(run, scores) -> RolloutGroup:
    group = make_group(run=run, state="complete", outcomes="PPF")
    grade(group, scores)
    return group


def test_a_group_whose_verdict_moves_more_credit_is_drawn_more_often_and_both_are_stored(run):
    first = graded(run, {"A": 5, "B": 4})
    dull, wild = graded(run, {"A": 5, "B": 5}), graded(run, {"A": 5, "B": 1})
    assert first.hold_probability == 0.2 and first.influence > 0
    assert 0 < dull.hold_probability < 0.2 < wild.hold_probability
    assert RolloutGroup.objects.get(pk=dull.pk).hold_probability == dull.hold_probability


def test_a_fifth_of_the_drawn_groups_asks_two_people_where_there_are_two(run, monkeypatch):
    monkeypatch.setattr(decisions, "draw", lambda: 0.19)
    alone = graded(run, {"A": 5, "B": 4})
    assert (alone.held, alone.reviews_wanted, alone.overlap_probability) == (True, 1, 0.0)
    for _ in range(2):
        make_user(role=Role.REVIEWER, team=run.team)
    group = make_group(run=run, state="complete", outcomes="PPF")
    grade(group, {"A": 5, "B": 2})
    assert (group.held, group.reviews_wanted, group.overlap_probability) == (True, 2, 0.2)
