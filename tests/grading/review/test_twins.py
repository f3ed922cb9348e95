"""Who has the same patch ties: an edit of one holds for the others, in the draft and when it is saved."""

import pytest

from grading.grader.shape import CandidateReply, Cited
from grading.review import corrections
from grading.review.anchors import Citation
from grading.review.correction_form import read_form
from grading.review.drafts import draft_of, rebased, stand
from grading.review.twins import Said, twins_of, with_twins
from grading.scoring.criteria import CRITERIA
from grading.states import GroupState, Policy
from tests.factories import make_group, make_run, make_user
from tests.verdicts import add_verdict

LINE = Cited("minimality", Citation("patch_line", "h", path="lru.py", side="new", line=1))
EVENT = Cited("minimality", Citation("event", "h", event=0, quote="rm -rf"))
TWINS = twins_of({"h": "same", "o": "same", "a": "other"})
SEATS = {"h": (1, 1), "o": (1, 1), "a": (1, 2)}


def entries(**minimality: int) -> dict[str, CandidateReply]:
    return {id: CandidateReply(id, dict.fromkeys(CRITERIA, 4) | {"minimality": minimality.get(id, 4)}) for id in SEATS}


def carried(*, standing=None, scores=None, flags=None, places=None, citations=None) -> Said:
    said = Said(scores or {}, flags or {}, places or {}, citations or {}, {})
    return with_twins(said, standing or entries(), SEATS, TWINS)


def test_only_the_same_patch_makes_twins():
    assert TWINS == {"h": ("o",), "o": ("h",)}


def test_a_score_and_its_line_go_to_the_twin_and_to_nobody_else():
    said = carried(scores={"h": {"minimality": 2}}, citations={"h": (LINE,)})
    assert said.scores == {"h": {"minimality": 2}, "o": {"minimality": 2}}
    assert [c.citation.candidate for c in said.citations["o"]] == ["o"] and "a" not in said.citations
    assert said.followers == {"h": {"minimality": ("o",)}}


def test_a_flag_goes_to_the_twin():
    assert carried(flags={"h": {"unrequested_rewrite": True}}).flags["o"] == {"unrequested_rewrite": True}


@pytest.mark.parametrize("cited", [(EVENT,), (LINE, EVENT)])
def test_an_edit_that_cites_an_event_stays_with_its_candidate(cited):
    said = carried(scores={"h": {"minimality": 2, "approach": 3}}, citations={"h": cited})
    assert said.scores == {"h": {"minimality": 2, "approach": 3}, "o": {"approach": 3}}


def test_a_twin_that_was_edited_itself_keeps_its_own_score():
    said = carried(scores={"h": {"minimality": 2}, "o": {"minimality": 3}})
    assert said.scores == {"h": {"minimality": 2}, "o": {"minimality": 3}} and said.followers == {}


def test_a_score_in_which_an_event_tells_them_apart_already_does_not_travel():
    standing = entries(h=2)
    assert carried(standing=standing, scores={"h": {"minimality": 3}}).scores["o"] == {"minimality": 3}
    standing["h"] = CandidateReply("h", standing["h"].scores, citations=(EVENT,))
    assert carried(standing=standing, scores={"h": {"minimality": 3}}).scores == {"h": {"minimality": 3}}


def test_a_move_takes_the_twin_along_unless_an_event_is_cited_for_it():
    places = {"h": 2, "o": 1, "a": 2}
    line, event = Cited("revision", LINE.citation), Cited("revision", EVENT.citation)
    said = carried(places=places, citations={"h": (line,)})
    assert said.places == {"h": 2, "o": 2, "a": 2} and said.citations["o"][0].citation.candidate == "o"
    assert carried(places=places, citations={"h": (event,)}).places == places


PATCH = b"diff --git a/app.py b/app.py\n--- a/app.py\n+++ b/app.py\n@@ -1 +1,2 @@\n x\n+y\n"


@pytest.fixture
def group(db):
    """A and B hand in the same patch, C another; all 4."""
    group = make_group(
        run=make_run(policy=Policy.MANUAL), state=GroupState.GRADED, held=True, outcomes="PPPF",
        patches=[PATCH, PATCH, PATCH.replace(b"+y", b"+z"), b""], events=[{"kind": "action", "text": "cat hidden.py"}],
    )  # fmt: skip
    add_verdict(group)
    return group


def typed(**fields) -> dict[str, list[str]]:
    cite = {"letter": "A", "about": "minimality", "kind": "new", "place": "app.py:2", "quote": ""}
    cite |= fields.pop("cite", {})
    said = {"reason": "too wide"} | {f"cite-1-{part}": value for part, value in cite.items()} | fields
    return {name: [value] for name, value in said.items()}


def saved(group, fields):
    draft = draft_of(standing := stand(group), read_form(fields))
    verdict = corrections.correct(
        group, parent=standing.verdict.pk, user=make_user(), reason=draft.reason, scores=draft.scores,
        flags=draft.flags, order=draft.order, citations=draft.citations,
    )  # fmt: skip
    assert {p.trajectory.external_id: p.factor for p in verdict.candidates.all()} == draft.factors
    return {p.trajectory.letter: (p.tier, p.rank) for p in verdict.candidates.all()}


def test_one_changed_score_is_saved_as_its_draft_says_twin_included(group):
    assert saved(group, typed(**{"score-A-minimality": "3"})) == {"A": (2, 0), "B": (2, 0), "C": (1, 0)}


def test_one_moved_card_is_saved_with_its_twin(group):
    fields = typed(cite={"about": "revision"}, **{"place-A": "2", "place-B": "1", "place-C": "1"})
    assert saved(group, fields) == {"A": (1, 1), "B": (1, 1), "C": (1, 0)}


def test_fields_keep_the_places_that_a_person_moved_so_that_the_next_move_goes_on_from_there(group):
    down = draft_of(stand(group), read_form(typed(**{"place-B": "1", "place-A": "2", "place-C": "3"})))
    assert {letter: down.typed[id] for letter, id in down.standing.letters.items()} == {"A": 2, "B": 1, "C": 3}
    assert draft_of(stand(group), read_form(typed(**{"place-A": "1", "place-B": "1", "place-C": "2"}))).typed == {}


def test_a_cited_event_separates_twins(group):
    fields = typed(cite={"kind": "event", "place": "0", "quote": "hidden.py"}, **{"score-A-minimality": "3"})
    assert saved(group, fields) == {"A": (2, 0), "B": (1, 0), "C": (1, 0)}


def test_a_score_that_the_page_drew_for_a_twin_follows_and_is_no_edit_of_its_own(group):
    drawn = {"score-B-minimality": "3", "drawn-B-minimality": "3"}
    ids = {t.letter: t.external_id for t in group.trajectories.all()}
    draft = draft_of(stand(group), read_form(typed(**{"score-A-minimality": "2"}, **drawn)))
    assert draft.followers == {ids["A"]: {"minimality": (ids["B"],)}}
    assert draft.taken == {ids["B"]: {"minimality": 2}}
    assert draft_of(stand(group), read_form(typed(**{"score-A-minimality": "4"}, **drawn))).scores == {}
    own = draft_of(stand(group), read_form(typed(**{"score-A-minimality": "3"}, **drawn | {"score-B-minimality": "2"})))
    assert own.taken == {} and own.scores[ids["B"]] == {"minimality": 2}


def test_who_was_overtaken_types_nothing_for_a_twin(group):
    seen, form = stand(group), read_form(typed(**{"score-A-minimality": "3"}))
    add_verdict(group)
    again = rebased(form, seen=seen, newest=stand(group))
    assert (again.scores["A"]["minimality"], again.scores["B"]["minimality"]) == (3, 4)
