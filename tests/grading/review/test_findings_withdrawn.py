"""A finding that was wrong is withdrawn: ranking, numbers and decision come back; what a grader finds counts."""

import pytest

from grading.grader import job
from grading.grader.shape import Finding as Found
from grading.review import decisions
from grading.states import GroupState, Policy
from tests.factories import make_group, make_run, make_user
from tests.grading.review.test_findings import complete, confirm, delivered, kinds, member, newest_row, withdraw
from tests.verdicts import add_verdict, held_group, line_of, reply_for

pytestmark = pytest.mark.django_db


def test_withdrawal_restores_ranking_numbers_and_decision():
    group = delivered(outcomes="PPPF")
    before = newest_row(group)
    confirm(group, "B")
    withdraw(group, "B")
    after = newest_row(group)
    assert after["rows"] == before["rows"] and after["version"] == 3
    assert [f.kind for f in member(group, "B").findings.order_by("pk")] == ["hack", ""]


def test_withdrawal_restores_a_revised_order_too():
    group = make_group(run=make_run(policy=Policy.MANUAL), state=GroupState.GRADED, held=True, outcomes="PPPF")
    first = add_verdict(group, {"A": 5, "B": 4, "C": 4})
    confirm(group, "B")
    withdraw(group, "B")
    again = decisions.newest_verdict(group)
    assert again.is_valid and again.ranking == first.ranking


def test_withdrawal_brings_back_the_verdict_that_counted_before_the_group_was_filtered():
    group = delivered(outcomes="PFF")
    before = newest_row(group)
    confirm(group)
    assert newest_row(group)["regime"] == "filtered"
    withdraw(group)
    after = newest_row(group)
    assert kinds(group) == ["verdict", "filtered", "verdict"] and after["rows"] == before["rows"]


def test_withdrawal_in_a_group_that_was_held_asks_the_person_again_and_keeps_their_correction():
    group = held_group(outcomes="PFF")
    correction = add_verdict(group, {"A": 5}, grader="person", author=make_user(), reason="better than that")
    confirm(group)
    withdraw(group)
    assert group.state == GroupState.GRADED and group.held and group.review_by
    newest = decisions.newest_verdict(group)
    assert newest.parent == correction and newest.grader == "person"
    assert newest.candidates.get().scores["approach"] == 5


def test_a_finding_of_the_grader_can_be_withdrawn_and_stays_withdrawn():
    group = complete(outcomes="PPPF", policy=Policy.MANUAL)
    group.claim(by="test", lease_s=60)
    b, reply = member(group, "B"), reply_for(group)
    found = (Found(b.external_id, "hack", "hard-coded", (line_of(b),)),)
    job.store_verdict(group, type(reply)(reply.candidates, findings=found), fencing=group.fencing, grader="scripted")
    assert member(group, "B").integrity == "hack"
    withdraw(group, "B")
    assert member(group, "B").integrity == ""
    verdict = decisions.newest_verdict(group)
    assert verdict.is_valid and verdict.candidates.count() == 3
    assert verdict.reply["findings"], "what the grader said is kept"


def test_a_re_grade_does_not_confirm_what_a_person_withdrew():
    group = delivered(outcomes="PPP")
    confirm(group)
    withdraw(group)
    confirm(group, "B")
    a, reply = member(group), reply_for(group)
    group.claim(by="test", lease_s=60)
    found = (Found(a.external_id, "hack", "hard-coded", (line_of(a),)),)
    verdict = job.store_verdict(group, type(reply)(reply.candidates, findings=found), fencing=group.fencing)
    assert verdict.is_valid and member(group).integrity == ""


def test_a_finding_of_the_grader_counts_although_the_rest_of_its_verdict_is_invalid():
    group = complete(outcomes="PPF")
    group.claim(by="test", lease_s=60)
    a, reply = member(group), reply_for(group)
    found = (Found(a.external_id, "leak", "it reads the answer", (line_of(a),)),)
    verdict = job.store_verdict(group, type(reply)((), findings=found), fencing=group.fencing)
    assert not verdict.is_valid and member(group).integrity == "leak"
    rows = {r["trajectory"]: r for r in newest_row(group)["rows"]}
    assert rows[a.external_id]["advantage"] < 0
