"""Fleet accuracy out of the rows: drawn groups alone count, each by its stored probability."""

import pytest

from grading.calibration import drawn
from grading.models import RolloutGroup
from grading.review.decisions import DRAWN, FLIPS_HOLD
from tests.factories import make_run, make_user
from tests.grading.calibration.said import answered, blind, shown

pytestmark = pytest.mark.django_db
BY_DRAW = {"hold_probability": 0.5, "hold_reason": f"{DRAWN} 0.5", "blind_probability": 1.0, "is_blind": True}


@pytest.fixture
def run():
    return make_run(policy="sampled", blind_share=1.0)


def found(run, **how):
    return drawn.drawn_of(RolloutGroup.objects.filter(run=run), **how)


def test_only_assigned_answers_count(run):
    by_draw = answered(run, {"A": 5, "B": 4, "C": 3}, **BY_DRAW)
    blind(by_draw, "B", "A", "C")
    chosen = answered(run, {"A": 5, "B": 4}, hold_probability=0.5, hold_reason=FLIPS_HOLD)
    blind(chosen, "B", "A")
    answered(run, {"A": 5, "B": 4}, hold_probability=0.5)
    answered(run, {"A": 5, "B": 4}, hold_probability=0.0)
    got = found(run)
    counted = (got.graded, got.never, got.forced, got.drawn, got.answered)
    assert [len(groups) for groups in counted] == [4, 1, 1, 1, 1] and got.answered == [by_draw.pk]
    frame = got.frame
    assert frame.drawn_G.sum() == 1 and len(frame.probability_G) == 3
    assert frame.sums(frame.credit_P).tolist() == [0, 0, 2] and frame.sums(frame.decided_P).tolist() == [0, 0, 3]


def test_a_blind_order_has_the_probability_of_both_draws(run):
    group = answered(run, {"A": 5, "B": 4}, **BY_DRAW | {"blind_probability": 0.2})
    blind(group, "A", "B")
    beside = answered(run, {"A": 5, "B": 4}, **BY_DRAW | {"blind_probability": 0.2, "is_blind": False})
    shown(beside, {"A": 3, "B": 4}, {"T1": ["B"], "T2": ["A"]})
    only_blind = found(run, truth=drawn.BLIND)
    assert only_blind.frame.probability_G.tolist() == pytest.approx([0.1, 0.1])
    assert only_blind.drawn == only_blind.answered == [group.pk]
    assert len(found(run).answered) == 2


def test_two_people_of_one_group_count_by_their_mean(run):
    group = answered(run, {"A": 5, "B": 4}, **BY_DRAW)
    blind(group, "A", "B")
    blind(group, "AB")
    frame = found(run).frame
    assert (frame.credit_P.tolist(), frame.decided_P.tolist()) == ([0.5], [0.5])  # half of them decide, and are right


def test_the_page_says_what_it_rests_on_and_hides_other_teams(run, client):
    client.force_login(make_user(role="viewer", team=run.team))
    for n in range(6):
        group = answered(run, {"A": 5, "B": 4, "C": 3}, **BY_DRAW)
        blind(group, *("ABC" if n % 3 else "BAC"))
        answered(run, {"A": 5, "B": 4, "C": 3}, hold_probability=0.5)
    page = client.get(f"/calibration/fleet?run={run.public_id}")
    reported = page.context["columns"][0]["powered"]
    assert reported.n == 6 and reported.groups == 12 and 0.6 < reported.value < 1
    assert b"could never be drawn" in page.content and b"People with people" in page.content
    stranger = make_run()
    answered(stranger, {"A": 5, "B": 4}, **BY_DRAW)
    assert client.get(f"/calibration/fleet?run={stranger.public_id}").context["is_empty"]


def test_a_run_where_nobody_can_be_drawn_has_no_figure_and_says_why(run, client):
    client.force_login(make_user(role="viewer", team=run.team))
    answered(run, {"A": 5, "B": 4}, hold_probability=0.0)
    page = client.get(f"/calibration/fleet?run={run.public_id}").content.decode()
    assert "no graded group could be drawn for a person" in page
