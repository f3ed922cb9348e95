"""What a form changes against the verdict that stands."""

import pytest

from grading.review.correction_form import Posted
from grading.review.drafts import draft_of, rebased, stand
from grading.scoring.criteria import CRITERIA
from tests.verdicts import add_verdict, held_group

pytestmark = pytest.mark.django_db


def posted(verdict=None, *, scores=None, flags=None, places=None, drawn=None) -> Posted:
    """A form as the page posts it: whoever is not named stays as the page shows it."""
    return Posted(verdict, "because", scores or {}, flags or {}, places or {}, (), (), drawn or {})


def whole(score: int, **changed) -> dict:
    return dict.fromkeys(CRITERIA, score) | changed


def letters(order, group):
    by_id = {t.external_id: t.letter for t in group.trajectories.all()}
    return {tier: [sorted(by_id[id] for id in tied) for tied in groups] for tier, groups in order.items() if groups}


@pytest.fixture
def group():
    """A, B, C pass with 4, 5, 5: T1 is B=C, then A."""
    group = held_group(outcomes="PPPF")
    add_verdict(group, {"A": 4, "B": 5, "C": 5})
    return group


def test_a_form_that_changes_nothing_is_no_edit(group):
    scores = {"A": whole(4), "B": whole(5), "C": whole(5)}
    draft = draft_of(stand(group), posted(scores=scores, places={"A": 2, "B": 1, "C": 1}))
    assert (draft.scores, draft.flags, draft.order, draft.errors) == ({}, {}, None, ())
    assert sorted(draft.factors.values()) == [0.9, 1.0, 1.0]


def test_a_score_moves_a_card_to_the_tier_and_place_it_earns(group):
    # With scripts the page has redrawn the places: A stands first in T2, B and C share place 1 of T1.
    scores = {"A": whole(4, precision=3), "B": whole(5), "C": whole(5)}
    draft = draft_of(stand(group), posted(scores=scores, places={"A": 1, "B": 1, "C": 1}))
    a = group.trajectories.get(letter="A").external_id
    assert draft.scores == {a: {"precision": 3}} and draft.order is None
    assert draft.grades.tier[a] == 2 and draft.factors[a] == 0.85


def test_places_split_a_tie_and_tie_across(group):
    draft = draft_of(stand(group), posted(places={"B": 1, "C": 2, "A": 3}))
    assert letters(draft.order, group) == {"T1": [["B"], ["C"], ["A"]]}
    draft = draft_of(stand(group), posted(places={"B": 1, "C": 1, "A": 1}))
    assert letters(draft.order, group) == {"T1": [["A", "B", "C"]]}


DRAWN_WITHOUT_A = {"A": (2, 1), "B": (1, 1), "C": (1, 1)}


@pytest.fixture
def led():
    """A, B, C pass with 5, 4, 4: T1 is A, then B=C. The page was drawn while A stood in T2."""
    group = held_group(outcomes="PPPF")
    add_verdict(group, {"A": 5, "B": 4, "C": 4})
    return group, {"scores": {"A": whole(5), "B": whole(4), "C": whole(4)}, "drawn": DRAWN_WITHOUT_A}


def test_a_place_that_the_page_drew_by_itself_is_no_edit_when_a_score_is_taken_back(led):
    group, form = led
    draft = draft_of(stand(group), posted(places={"A": 1, "B": 1, "C": 1}, **form))
    assert (draft.scores, draft.order) == ({}, None)
    assert sorted(draft.factors.values()) == [0.9, 0.9, 1.0]


def test_a_card_that_comes_back_to_its_tier_stands_by_its_score_between_those_that_were_moved(led):
    group, form = led
    draft = draft_of(stand(group), posted(places={"A": 1, "B": 1, "C": 2}, **form))
    assert letters(draft.order, group) == {"T1": [["A"], ["B"], ["C"]]}


def test_who_was_overtaken_has_moved_only_what_they_moved(led):
    group, form = led
    seen = stand(group)
    mine = posted(seen.verdict.pk, places={"A": 1, "B": 1, "C": 1}, **form)
    add_verdict(group, {"A": 5, "B": 4, "C": 4})
    again = rebased(mine, seen=seen, newest=stand(group))
    assert (again.places, again.drawn) == ({"A": 1, "B": 2, "C": 2}, {})


def test_a_flag_is_set_and_taken_back(group):
    a = group.trajectories.get(letter="A").external_id
    scores = {"A": whole(4)}
    draft = draft_of(stand(group), posted(scores=scores, flags={"A": frozenset({"unrequested_rewrite"})}))
    assert draft.flags == {a: {"unrequested_rewrite": True}} and draft.grades.tier[a] == 3


def test_a_stranger_is_an_error_and_no_edit(group):
    draft = draft_of(stand(group), posted(scores={"D": whole(5), "Z": whole(5)}))
    assert draft.scores == {} and len(draft.errors) == 2  # D failed: nobody ranks it


def test_who_was_overtaken_keeps_what_they_changed(group):
    seen = stand(group)
    add_verdict(group, {"A": 5, "B": 5, "C": 4})  # somebody else's
    newest = stand(group)
    mine = posted(
        seen.verdict.pk,
        scores={"A": whole(4), "B": whole(5, approach=2), "C": whole(5)},
        places={"A": 2, "B": 1, "C": 1},
    )
    form = rebased(mine, seen=seen, newest=newest)
    assert form.scores["B"]["approach"] == 2  # mine
    assert form.scores["A"] == whole(5) and form.scores["C"] == whole(4)  # theirs
    draft = draft_of(newest, form)
    b = group.trajectories.get(letter="B").external_id
    assert draft.scores == {b: {"approach": 2}}
