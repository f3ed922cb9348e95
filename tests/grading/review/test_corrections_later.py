"""Corrections of what was delivered, found or never graded."""

import pytest

from grading.errors import WrongState
from grading.grader import gather
from grading.review import corrections, decisions, findings
from grading.states import GroupState, Policy
from tests.factories import make_group, make_run, make_user
from tests.grading.review.test_corrections import correct, member, ranked
from tests.verdicts import add_verdict, held_group, line_of
from training_bridge import delivery
from training_bridge.models import Delivery

pytestmark = pytest.mark.django_db


def test_a_correction_after_delivery_waits_for_approval_and_then_goes_out_as_a_new_version():
    group = held_group(outcomes="PPF")
    decisions.approve(group, seen_verdict=decisions.newest_verdict(group).pk, user=make_user())
    delivery.deliver(group.run)
    verdict = correct(group)
    delivery.deliver(group.run)
    assert Delivery.objects.count() == 1, "saving it decides nothing"
    group.refresh_from_db()
    decisions.approve(group, seen_verdict=verdict.pk, user=make_user())
    delivery.deliver(group.run)
    first, second = Delivery.objects.order_by("seq")
    assert (second.version, second.seq, second.decision.verdict) == (2, 2, verdict)
    assert first.text != second.text


@pytest.mark.parametrize("state", [GroupState.COLLECTING, GroupState.COMPLETE, GroupState.GRADING])
def test_before_the_grader_spoke_there_is_nothing_to_correct(state):
    group = make_group(run=make_run(policy=Policy.MANUAL), state=state, outcomes="PPF")
    add_verdict(group)
    group.trajectories.filter(letter="").update(letter="A")
    with pytest.raises(WrongState, match="no verdict to correct yet"):
        corrections.correct(group, parent=1, user=make_user(), reason="x", scores={}, flags={}, citations={})


def test_a_group_decided_without_a_verdict_has_none_to_correct():
    group = make_group(run=make_run(), state=GroupState.DECIDED, outcomes="PPF")
    with pytest.raises(WrongState, match="there is none to correct"):
        corrections.correct(group, parent=1, user=make_user(), reason="x", scores={}, flags={})


def test_a_correction_after_a_finding_leaves_the_found_one_out():
    group = held_group(outcomes="PPPF")
    findings.confirm(member(group, "B"), kind="hack", reason="hard-coded", citations=[line_of(member(group, "B"))],
                     user=make_user())  # fmt: skip
    verdict = correct(group)
    assert ranked(verdict, "T2") == ["A"] and ranked(verdict, "T1") == ["C"]
    assert member(group, "B").integrity == "hack"


def test_a_correction_does_not_bring_back_a_withdrawn_finding():
    group = held_group(outcomes="PPPF")
    b = member(group, "B")
    findings.confirm(b, kind="hack", reason="hard-coded", citations=[line_of(b)], user=make_user())
    findings.withdraw(b, reason="a table of constants is the task", user=make_user())
    correct(group)
    assert member(group, "B").integrity == "" and gather.effective(group).status == "ok"
