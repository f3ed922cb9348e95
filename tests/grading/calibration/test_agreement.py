"""Agreement out of the rows: grader with people, people with people, blind and shown apart; nothing undefined is 0."""

import pytest

from grading.calibration import agreement, answers
from grading.calibration.agreement import FIGURES, Compared, Said, measure
from grading.models import Review
from tests.factories import make_group, make_run, make_user
from tests.grading.calibration.said import answered, blind, shown
from tests.verdicts import add_verdict

pytestmark = pytest.mark.django_db
TIERS = {"T1": ["A"], "T2": ["B"], "T3": ["C"]}


@pytest.fixture
def run():
    return make_run()


def found(run) -> dict[str, list[Compared]]:
    return answers.compared(Review.objects.filter(group__run=run))


def test_an_order_given_blind_is_compared_with_the_verdict_that_was_there(run):
    group = answered(run, {"A": 5, "B": 4, "C": 3})
    blind(group, "B", "A", "C")
    kinds = found(run)
    # The grader says A > B > C, the person B > A > C: 2 of 3 pairs, tau (2 - 1) / 3.
    pairs = kinds["grader_blind"][0].pairs()
    assert (pairs.accuracy, pairs.tau_b) == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert measure(kinds["grader_blind"], FIGURES["top_1"]).value == 0
    assert not kinds["grader_shown"] and not kinds["people_blind"]


def test_a_correction_does_not_pass_for_the_grader(run):
    group = answered(run, {"A": 5, "B": 4, "C": 3})
    person = make_user(role="reviewer", team=run.team)
    add_verdict(group, {"A": 3, "B": 4, "C": 5}, grader="person", author=person)
    blind(group, "A", "B", "C")
    assert found(run)["grader_blind"][0].pairs().accuracy == 1


def test_people_are_compared_with_each_other_only_where_they_answered_alone(run):
    both = answered(run, {"A": 5, "B": 4}, reviews_wanted=2)
    shown(both, {"A": 5, "B": 4}, {"T1": ["A", "B"]})
    shown(both, {"A": 3, "B": 4}, {"T1": ["B"], "T2": ["A"]})
    one_after_the_other = answered(run, {"A": 5, "B": 4})
    shown(one_after_the_other, {"A": 5, "B": 4}, {"T1": ["A", "B"]})
    shown(one_after_the_other, {"A": 5, "B": 4}, {"T1": ["A", "B"]})
    people = found(run)["people_shown"]
    assert {one.group for one in people} == {both.pk}
    got = measure(people, FIGURES["pairs"])
    assert (got.value, got.n, got.groups) == (0.0, 1, 1)  # the same pair from both sides is one pair


def test_scores_and_tiers_by_hand(run):
    group = answered(run, {"A": 5, "B": 4, "C": 3})
    shown(group, {"A": 5, "B": 3, "C": 3}, TIERS)
    one = found(run)["grader_shown"][0]
    # people 5 3 3, grader 5 4 3: the only disagreement is 1 apart.
    assert one.score_table("approach")[2].tolist() == [0, 0, 1, 1, 0]
    assert measure([one], FIGURES["approach raw"]).value == pytest.approx(2 / 3)
    assert one.tier_table().tolist() == [[1, 0, 0], [1, 0, 0], [0, 1, 0]]  # 4 throughout is T1, 3 throughout T2


def test_what_others_must_not_know_yet_is_in_no_figure(run):
    group = answered(run, {"A": 5, "B": 4})
    blind(group, "A", "B")
    open_one = make_group(run=run, state="graded", held=True, outcomes="PPF")
    add_verdict(open_one, {"A": 5, "B": 4})
    blind(open_one, "B", "A")
    assert {one.group for one in found(run)["grader_blind"]} == {group.pk}


def test_undefined_figures_have_words_instead_of_zeros():
    tied, ordered = Said({"a": 1, "b": 1}), Said({"a": 1, "b": 2})
    assert measure([Compared(1, tied, ordered)], FIGURES["pairs"]).why == agreement.TIED_ALL
    assert measure([Compared(1, tied, ordered)], FIGURES["tau_b"]).value is None
    assert agreement.undefined_groups([Compared(1, tied, ordered), Compared(2, ordered, ordered)]) == 1
    assert measure([Compared(1, ordered, ordered)], FIGURES["tier weighted κ"]).why == agreement.NO_TIERS
    alike = Said({"a": 1}, {"a": 2}, {"a": {"approach": 4}})
    assert measure([Compared(1, alike, alike)], FIGURES["approach weighted κ"]).why == agreement.ONE_LABEL
    assert measure([], FIGURES["approach α ordinal"]).why == agreement.NOBODY
    bare = Said({"a": 1})
    assert measure([Compared(1, bare, bare)], FIGURES["approach α ordinal"]).why == agreement.NO_SCORES


def test_a_pair_of_equal_w_says_nothing_about_the_slope():
    one = Compared(1, Said({"a": 1, "b": 2, "c": 3}), Said({}), {"a": 4.0, "b": 4.0, "c": 4.5})
    groups, apart, prefers = agreement.preferences([one])
    assert sorted(zip(apart.tolist(), prefers.tolist(), strict=True)) == [(0.0, 0.5), (0.5, 0.0), (0.5, 0.0)]
    assert set(groups) == {1}


@pytest.fixture
def room(run, client):
    user = make_user(role="viewer", team=run.team)
    client.force_login(user)
    for n in range(6):
        group = answered(run, {"A": 5, "B": 4, "C": 3}, reviews_wanted=2)
        blind(group, *(("A", "B", "C") if n % 2 else ("B", "AC")))
        shown(group, {"A": 5, "B": 4, "C": 2}, TIERS)
        shown(group, {"A": 5, "B": 3, "C": 2}, TIERS)
    return client


def test_the_page_shows_every_figure_with_its_n_and_leads_to_the_groups(room, run):
    html = room.get(f"/calibration/agreement?run={run.public_id}").content.decode()
    assert "before they saw its verdict" in html and "in 6 groups" in html
    assert "nothing was rated" not in html.split("Ranking")[0]
    listed = room.get(f"/calibration/agreement?run={run.public_id}&figure=pairs&kind=grader_blind")
    assert "6 groups, the lowest first" in listed.content.decode()
    assert listed.context["chosen"]["rows"][0]["value"] < 1
    assert room.get(f"/calibration/agreement?team={run.team.slug}").context["team"] == run.team


def test_other_teams_answers_are_nowhere(room, run):
    other = answered(make_run(), {"A": 5, "B": 4})
    blind(other, "B", "A")
    for where in (f"run={other.run.public_id}", f"team={other.run.team.slug}"):
        context = room.get(f"/calibration/agreement?{where}").context
        assert context["is_empty"] and context["scope"] == ""
    assert room.get(f"/calibration/agreement?run={run.public_id}").context["kinds"][0]["n"] == 6


def test_a_page_without_answers_says_what_makes_some(client):
    client.force_login(make_user(role="viewer"))
    assert b"Nobody has answered yet" in client.get("/calibration/agreement").content
