"""People judge blind, one group after the other; the reveal comes at the end, or early with a reason."""

from dataclasses import replace

import pytest

from grading.audit import sessions
from grading.audit.judged import Said
from grading.audit.reading import result_of
from grading.errors import BadInput, Conflict, LeaseLost, NotAllowed, WrongState
from grading.models import Audit, AuditGroup, AuditVerdict
from grading.scoring.criteria import CRITERIA
from tests.factories import make_user
from tests.grading.audit.rooms import make_audit, make_runs

pytestmark = pytest.mark.django_db


def said_of(group, score=4, **changes):
    letters = group.candidates.values_list("letter", flat=True)
    return [Said(letter, dict.fromkeys(CRITERIA, score), frozenset()) for letter in letters]


@pytest.fixture
def audit():
    return make_audit(runs=make_runs(patches=(b"", b"")))


@pytest.fixture
def ann(audit):
    return make_user(role="reviewer", team=audit.team)


def by_arm(group, scores):
    """Score each candidate by its arm: what a person does who sees the difference."""
    return [
        Said(one.letter, dict.fromkeys(CRITERIA, scores[one.arm.number]), frozenset())
        for one in group.candidates.select_related("arm")
    ]


def test_two_people_get_two_groups_and_each_keeps_theirs(audit, ann):
    bob = make_user(role="reviewer", team=audit.team)
    mine, his = sessions.next_group(audit, ann), sessions.next_group(audit, bob)
    assert mine != his
    assert sessions.next_group(audit, ann) == mine
    assert sessions.next_group(audit, make_user(role="reviewer", team=audit.team)) is None
    with pytest.raises(LeaseLost):
        sessions.give(his, said_of(his), user=ann)
    sessions.release(his, user=bob)
    sessions.give(mine, said_of(mine), user=ann)
    assert sessions.next_group(audit, ann) == his


def test_an_audit_by_a_person_ends_in_a_result(ann):
    audit = make_audit(runs=make_runs(tasks=3))
    while group := sessions.next_group(audit, ann):
        sessions.give(group, by_arm(group, {0: 5, 1: 3}), user=ann)
    assert sessions.is_finished(audit)
    with pytest.raises(NotAllowed):
        result_of(audit)
    audit = sessions.reveal(audit, by=ann.username)
    found = result_of(audit)
    assert [e.value for e in found.overall["W"]] == [5, 3]
    assert found.groups == 3 and audit.reveal_reason == ""
    with pytest.raises(Conflict):
        sessions.reveal(audit, by=ann.username)


def test_an_early_reveal_needs_an_admin_and_a_reason_and_ends_the_session(audit, ann):
    group = sessions.next_group(audit, ann)
    with pytest.raises(WrongState):
        sessions.reveal(audit, by=ann.username)
    with pytest.raises(BadInput):
        sessions.reveal(audit, by="root", may_early=True)
    sessions.reveal(audit, by="root", reason="a release is due", may_early=True)
    with pytest.raises(WrongState):
        sessions.give(group, said_of(group), user=ann)
    assert Audit.objects.get().reveal_reason == "a release is due"
    assert not AuditVerdict.objects.exists()


def test_everybody_is_scored_once(audit, ann):
    group = sessions.next_group(audit, ann)
    with pytest.raises(BadInput, match="every candidate once"):
        sessions.give(group, said_of(group)[1:], user=ann)


def test_identical_patches_get_the_same_scores_unless_a_flag_tells_them_apart(audit, ann):
    group = sessions.next_group(audit, ann)
    said = said_of(group)
    other = replace(said[0], scores=dict.fromkeys(CRITERIA, 2))
    with pytest.raises(BadInput, match="same patch"):
        sessions.give(group, [other, *said[1:]], user=ann)
    flagged = replace(other, flags=frozenset({"severe_process_issue"}))
    assert sessions.give(group, [flagged, *said[1:]], user=ann).is_valid
    assert AuditGroup.objects.get(pk=group.pk).state == AuditGroup.State.DONE


def test_a_grader_s_audit_is_no_person_s(ann):
    with pytest.raises(WrongState, match="static"):
        sessions.next_group(make_audit(runs=make_runs(method="outcome"), grader="static"), ann)
