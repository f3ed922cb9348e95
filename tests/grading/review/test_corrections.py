from dataclasses import replace
from threading import Barrier, Thread

import pytest
from django.db import connection

from grading.errors import BadInput, Conflict
from grading.grader import job
from grading.grader.shape import CandidateReply, Cited, GraderReply, Revision
from grading.models import RolloutGroup, Verdict
from grading.review import corrections, decisions, refusal_words
from grading.review.anchors import Citation
from grading.scoring.criteria import CRITERIA
from grading.states import GroupState, Policy
from tests.factories import make_group, make_run, make_user
from tests.verdicts import add_verdict, held_group, line_of, reply_for

pytestmark = pytest.mark.django_db


def member(group, letter="A"):
    return group.trajectories.get(letter=letter)


def cite(group, letter, about="minimality", **fields):
    return {member(group, letter).external_id: (Cited(about, replace(line_of(member(group, letter)), **fields)),)}


def correct(group, *, letter="A", scores=None, flags=None, citations=None, order=None, **fields) -> Verdict:
    """A correction of one candidate's minimality unless told otherwise."""
    id = member(group, letter).external_id
    said = {"parent": decisions.newest_verdict(group).pk, "user": make_user(), "reason": "it rewrites the parser"}
    return corrections.correct(
        group,
        scores={id: {"minimality": 2} if scores is None else scores},
        flags={id: flags} if flags else {},
        order=order,
        citations=cite(group, letter) if citations is None else citations,
        **(said | fields),
    )


def ids(group, tiers: dict[str, list[str]]) -> dict:
    """Tied groups by letter to an order by id: {"T1": ["A", "BC"]}."""
    return {
        tier: tuple(tuple(member(group, letter).external_id for letter in tied) for tied in groups)
        for tier, groups in tiers.items()
    }


def ranked(verdict, tier="T1") -> list[str]:
    letters = {t.external_id: t.letter for t in verdict.group.trajectories.all()}
    return ["".join(sorted(letters[id] for id in tied)) for tied in verdict.ranking[tier]]


def test_a_correction_is_a_verdict_with_parent_author_reason_and_evidence_and_decides_nothing():
    group, alice = held_group(outcomes="PPF"), make_user(username="alice")
    parent = decisions.newest_verdict(group)
    verdict = correct(group, user=alice)
    assert (verdict.parent, verdict.author, verdict.grader) == (parent, alice, "person")
    assert verdict.is_valid and verdict.rubric == parent.rubric and verdict.reason == "it rewrites the parser"
    assert verdict.evidence.get(about="minimality").state == "exact"
    placed = verdict.candidates.get(trajectory=member(group))
    assert placed.tier == 2 and placed.scores["minimality"] == 2 and placed.reasons["minimality"] == verdict.reason
    group.refresh_from_db()
    assert group.state == GroupState.GRADED and group.decisions.count() == 0
    assert "correction" in group.events.last().reason and group.events.last().by == "alice"


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"reason": "  "}, "needs a reason"),
        ({"citations": {}}, "needs a citation"),
        ({"scores": {"minimality": 6}}, "no valid score"),
        ({"scores": {"minimality": "2"}}, "no valid score"),
        ({"scores": {"beauty": 3}}, "unknown scores"),
        ({"flags": {"severe_process_issue": True}}, "severe_process_issue raised and no citation"),
        ({"flags": {"ugly": True}}, "unknown flags"),
    ],
)
def test_a_correction_that_would_not_be_valid_is_refused_and_nothing_is_stored(fields, why):
    group = held_group(outcomes="PPF")
    with pytest.raises(BadInput, match=why):
        correct(group, **fields)
    assert group.verdicts.count() == 1


def test_a_refused_correction_names_every_problem():
    group = held_group(outcomes="PPF")
    with pytest.raises(BadInput) as refused:
        correct(group, scores={"minimality": 9, "approach": 2}, citations=cite(group, "A", line=99))
    for problem in ("no valid score", "does not resolve", "approach 2 and no citation"):
        assert problem in refused.value.got


def test_a_refusal_has_words_for_people_and_others_for_machines():
    group = held_group(outcomes="PPF")
    lost = [Cited("minimality", replace(line_of(member(group)), **fields)) for fields in (
        {"path": "lru.py"}, {"quote": "nowhere"}, {"line": 99})]  # fmt: skip
    lost.append(Cited("revision", Citation("event", member(group).external_id, event=7, quote="rm")))
    with pytest.raises(corrections.NotValid) as refused:
        correct(group, scores={"approach": 3}, citations={member(group).external_id: lost})
    letters = {t.external_id: t.letter for t in group.trajectories.all()}
    e = refused.value
    assert refusal_words.sentences(e.problems, e.reply, e.material, letters) == (
        "Citation of A about minimality: the patch of A does not touch lru.py",
        "Citation of A about minimality: no changed line of app.py has these words, at line 2 or elsewhere",
        "Citation of A about minimality: new line 99 of app.py is not in this patch",
        "Citation of A about the order: there is no event 7 and no other of the 0 has them",
        "A has approach 3 and no citation about it, expected one for every flag and every score below 4",
    )
    assert "candidates[0].citations[0]: the citation does not resolve" in e.got


@pytest.mark.parametrize("about", ["minimality", "revision"])
def test_a_citation_of_what_is_not_there_is_refused_also_where_it_argues_for_no_order(about):
    group = held_group(outcomes="PPF")
    with pytest.raises(BadInput, match="does not resolve"):
        correct(group, scores={"minimality": 5}, citations=cite(group, "A", about, line=99))


def test_evidence_of_another_candidate_proves_nothing():
    group = held_group(outcomes="PPF")
    with pytest.raises(BadInput, match="it is evidence of"):
        correct(group, citations={member(group, "A").external_id: (Cited("minimality", line_of(member(group, "B"))),)})


def test_only_passing_rollouts_of_the_group_can_be_scored():
    group = held_group(outcomes="PPF")
    with pytest.raises(BadInput, match="a failed rollout gets no rank"):
        correct(group, letter="C")
    with pytest.raises(BadInput, match="no such candidate"):
        correct(group, citations=cite(group, "A") | {"a stranger": ()})


def test_a_stale_parent_conflicts_and_nothing_is_stored():
    group = held_group(outcomes="PPF")
    seen = decisions.newest_verdict(group)
    newer = correct(group)
    with pytest.raises(Conflict, match="newer verdict") as refused:
        correct(group, parent=seen.pk)
    assert (refused.value.got, refused.value.expected) == (seen.pk, newer.pk)
    assert group.verdicts.count() == 2


def test_a_tier_changes_only_by_a_score_or_a_flag():
    group = held_group(outcomes="PPF")
    argued = cite(group, "A", "revision")
    with pytest.raises(BadInput, match="ranked in T2"):
        correct(group, scores={}, citations=argued, order=ids(group, {"T1": ["B"], "T2": ["A"]}))
    by_flag = correct(
        group, scores={}, flags={"unrequested_rewrite": True}, citations=cite(group, "A", "unrequested_rewrite")
    )
    assert ranked(by_flag, "T1") == ["B"] and ranked(by_flag, "T3") == ["A"]


def test_an_order_with_a_split_needs_a_revision_that_names_who_moves():
    group = held_group(outcomes="PPF")  # A and B both 4 everywhere: tied
    split = ids(group, {"T1": ["A", "B"]})
    with pytest.raises(BadInput, match="no revision names it"):
        correct(group, scores={}, order=split)
    verdict = correct(group, scores={}, order=split, citations=cite(group, "A", "revision"))
    assert ranked(verdict) == ["A", "B"]
    assert [placed.factor for placed in verdict.candidates.all()] == [1.0, 0.9]


def test_an_order_may_tie_what_the_scores_part():
    group = make_group(run=make_run(policy=Policy.MANUAL), state=GroupState.GRADED, held=True, outcomes="PPF")
    add_verdict(group, {"A": 5, "B": 4})
    verdict = correct(
        group, scores={}, order=ids(group, {"T1": ["AB"]}), citations=cite(group, "B", "revision"), letter="B"
    )
    assert ranked(verdict) == ["AB"] and {placed.factor for placed in verdict.candidates.all()} == {1.0}


def test_the_graders_revision_still_argues_for_the_part_of_the_order_that_a_person_leaves():
    group = make_group(run=make_run(policy=Policy.MANUAL), state=GroupState.GRADED, held=True, outcomes="PPPF")
    reply = reply_for(group)
    split = ids(group, {"T1": ["A", "BC"]})
    argued = Revision((member(group).external_id,), "smaller", (line_of(member(group)),))
    group.claimed_until = None
    RolloutGroup.objects.filter(pk=group.pk).update(state=GroupState.GRADING, fencing=1)
    job.store_verdict(group, replace(reply, order=split, revisions=(argued,)), fencing=1, grader="scripted")
    moved = ids(group, {"T1": ["A", "B"], "T2": ["C"], "T3": []})
    verdict = correct(group, letter="C", order=moved)
    assert ranked(verdict, "T1") == ["A", "B"] and ranked(verdict, "T2") == ["C"]


def test_no_order_means_by_weighted_score_also_over_a_revised_one():
    group = held_group(outcomes="PPF")
    correct(group, scores={}, order=ids(group, {"T1": ["A", "B"]}), citations=cite(group, "A", "revision"))
    assert ranked(correct(group, scores={})) == ["AB"]


def test_identical_patches_stay_tied_unless_an_event_tells_them_apart():
    patch = b"diff --git a/app.py b/app.py\n--- a/app.py\n+++ b/app.py\n@@ -1 +1,2 @@\n x\n+y\n"
    group = make_group(
        run=make_run(policy=Policy.MANUAL), state=GroupState.GRADED, held=True, outcomes="PPF", patches=[patch] * 3,
        events=[{"kind": "action", "text": "cat hidden/answer.py"}],
    )  # fmt: skip
    add_verdict(group)
    split = ids(group, {"T1": ["A", "B"]})
    with pytest.raises(BadInput, match="same patch, byte for byte"):
        correct(group, scores={}, order=split, citations=cite(group, "A", "revision"))
    event = Citation("event", member(group).external_id, event=0, quote="hidden/answer.py")
    argued = {member(group).external_id: (Cited("revision", event),)}
    assert ranked(correct(group, scores={}, order=split, citations=argued)) == ["A", "B"]


def test_an_ungraded_group_is_mended_by_full_scores_whatever_the_grader_invented():
    group = make_group(run=make_run(policy=Policy.MANUAL), state=GroupState.COMPLETE, outcomes="PPF")
    group.claim(by="test", lease_s=60)
    a = member(group).external_id
    elsewhere = Citation("result", "x", result="y")
    nonsense = GraderReply(
        (
            CandidateReply(a, {"approach": 17, "beauty": 5}, citations=(Cited("approach", elsewhere),)),
            CandidateReply("nobody", dict.fromkeys(CRITERIA, 4)),
        ),
        order={"T1": (("nobody",),)},
        revisions=(Revision(("nobody",), ""),),
    )  # fmt: skip
    invalid = job.store_verdict(group, nonsense, fencing=group.fencing, grader="scripted")
    group.refresh_from_db()
    assert not invalid.is_valid and group.state == GroupState.UNGRADED and group.held
    both = {member(group, letter).external_id: dict.fromkeys(CRITERIA, 5) for letter in "AB"}
    verdict = corrections.correct(
        group, parent=invalid.pk, user=make_user(), reason="both are fine", scores=both, flags={},
        citations=cite(group, "A", "approach"),
    )  # fmt: skip
    assert verdict.is_valid and ranked(verdict) == ["AB"]
    decisions.approve(group, seen_verdict=verdict.pk, user=make_user())
    assert group.state == GroupState.DECIDED


def test_half_of_the_scores_do_not_mend_an_ungraded_group():
    group = make_group(run=make_run(policy=Policy.MANUAL), state=GroupState.COMPLETE, outcomes="PPF")
    group.claim(by="test", lease_s=60)
    job.store_verdict(group, GraderReply(()), fencing=group.fencing, grader="scripted")
    group.refresh_from_db()
    with pytest.raises(BadInput, match="is missing"):
        correct(group, scores=dict.fromkeys(CRITERIA, 5))


@pytest.mark.django_db(transaction=True)
def test_of_two_corrections_at_once_one_is_stored_and_the_other_conflicts():
    group, users = held_group(outcomes="PPF"), [make_user(), make_user()]
    seen, start, lost = decisions.newest_verdict(group).pk, Barrier(2), []

    def save(user):
        start.wait()
        try:
            correct(RolloutGroup.objects.get(pk=group.pk), user=user, parent=seen)
        except Conflict as refused:
            lost.append(refused)
        finally:
            connection.close()

    threads = [Thread(target=save, args=[user]) for user in users]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(lost) == 1 and group.verdicts.count() == 2
