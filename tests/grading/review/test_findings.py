import json
from dataclasses import replace
from threading import Barrier, Thread

import pytest
from django.db import connection

from grading import clock
from grading.errors import BadInput, Conflict
from grading.grader import gather, job
from grading.models import RolloutGroup, Trajectory
from grading.review import deadlines, decisions, findings
from grading.review.anchors import Citation
from grading.states import DecisionKind, EndReason, GroupState, Method, Policy
from tests.factories import make_group, make_life, make_run, make_user
from tests.verdicts import add_verdict, grade, held_group, line_of, reply_for
from training_bridge import delivery, pausing
from training_bridge.models import Delivery

pytestmark = pytest.mark.django_db


def member(group, letter="A") -> Trajectory:
    return group.trajectories.get(letter=letter)


def confirm(group, letter="A", kind="hack", **fields):
    rollout = member(group, letter)
    said = {"reason": "it special-cases the test", "citations": [line_of(rollout)], "user": make_user()}
    finding = findings.confirm(rollout, kind=kind, **(said | fields))
    group.refresh_from_db()
    return finding


def withdraw(group, letter="A"):
    findings.withdraw(member(group, letter), reason="the constant is the task", user=make_user())
    group.refresh_from_db()


def complete(outcomes="PPF", **fields):
    run = fields.pop("run", None) or make_run(policy=fields.pop("policy", Policy.AUTO))
    group = make_group(run=run, state=GroupState.COMPLETE, outcomes=outcomes, **fields)
    decisions.after_complete(group, by="test")
    return group


def delivered(**fields):
    group = complete(**fields)
    if group.state == GroupState.COMPLETE:
        grade(group)
    delivery.deliver(group.run)
    group.refresh_from_db()
    assert group.state == GroupState.DELIVERED
    return group


def kinds(group):
    return list(group.decisions.values_list("kind", flat=True))


def newest_row(group) -> dict:
    delivery.deliver(group.run)
    group.refresh_from_db()
    row = json.loads(Delivery.objects.filter(group=group).order_by("-epoch", "-seq").first().text)
    assert row["version"] == group.version and sum(r["advantage"] for r in row["rows"]) == pytest.approx(0, abs=1e-12)
    return row


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"kind": "theft"}, "unknown kind"),
        ({"reason": " "}, "needs a reason"),
        ({"citations": []}, "no citation of this rollout"),
        ({"citations": [Citation("result", "somebody else", result="outcome")]}, "no citation of this rollout"),
    ],
)
def test_a_finding_needs_a_kind_a_reason_and_evidence_of_its_own(fields, why):
    group = held_group(outcomes="PPF")
    with pytest.raises(BadInput, match=why):
        confirm(group, **fields)
    assert member(group).integrity == "" and group.verdicts.count() == 1


def test_evidence_that_does_not_resolve_confirms_nothing():
    group = held_group(outcomes="PPF")
    with pytest.raises(BadInput, match="evidence that is there"):
        confirm(group, citations=[line_of(member(group), line=99)])
    with pytest.raises(BadInput, match="evidence that is there"):
        confirm(group, citations=[Citation("event", member(group).external_id, event=3, quote="cat answer")])
    assert group.events.count() == 0


def test_only_a_rollout_that_counts_can_be_found_to_leak():
    group = held_group(outcomes="PPFI")
    with pytest.raises(BadInput, match="infra_invalid"):
        confirm(group, "D")
    Trajectory.objects.filter(pk=member(group, "B").pk).update(is_late=True)
    with pytest.raises(BadInput, match="a late rollout"):
        confirm(group, "B")


def test_confirming_twice_or_withdrawing_nothing_conflicts():
    group = held_group(outcomes="PPPF")
    with pytest.raises(Conflict, match="no confirmed finding"):
        withdraw(group)
    confirm(group)
    with pytest.raises(Conflict, match="already confirmed as hack"):
        confirm(group)
    confirm(group, kind="leak")
    with pytest.raises(BadInput, match="a withdrawal needs a reason"):
        findings.withdraw(member(group), reason="", user=make_user())
    assert [f.kind for f in member(group).findings.order_by("pk")] == ["hack", "leak"]


def test_a_hack_in_a_held_group_takes_it_out_of_the_ranking_and_counts_the_tied_groups_anew():
    group = make_group(run=make_run(policy=Policy.MANUAL), state=GroupState.GRADED, held=True, outcomes="PPPF")
    seen = add_verdict(group, {"A": 3, "B": 2, "C": 1})  # A, B: T2 (K2 = 2), C: T3
    confirm(group, "A")
    assert group.state == GroupState.GRADED and group.held and kinds(group) == []
    verdict = decisions.newest_verdict(group)
    assert verdict.parent == seen and verdict.is_valid
    placed = {c.trajectory.letter: (c.tier, c.factor) for c in verdict.candidates.all()}
    assert placed == {"B": (3, 0.2), "C": (3, 0.2)}
    with pytest.raises(Conflict, match="newer verdict"):
        decisions.approve(group, seen_verdict=seen.pk, user=make_user())


def test_the_factors_of_the_second_tier_are_counted_without_the_hack():
    group = make_group(run=make_run(policy=Policy.MANUAL), state=GroupState.GRADING, fencing=1, outcomes="PPPF")
    reply = reply_for(group, {"A": 3, "B": 3, "C": 3})
    minimality = dict(zip((entry.id for entry in reply.candidates), (3, 2, 1), strict=True))
    entries = tuple(replace(e, scores={**e.scores, "minimality": minimality[e.id]}) for e in reply.candidates)
    verdict = job.store_verdict(group, replace(reply, candidates=entries), fencing=1)
    assert [c.factor for c in verdict.candidates.all()] == [0.85, 0.625, 0.4]  # K2 = 3
    confirm(group, "B")
    assert [c.factor for c in decisions.newest_verdict(group).candidates.all()] == [0.85, 0.4]  # K2 = 2


def test_a_hack_in_a_delivered_group_counts_as_failed_in_a_new_version():
    group = delivered(outcomes="PPPF")
    before = newest_row(group)
    confirm(group)
    after = newest_row(group)
    hacked = next(r for r in after["rows"] if r["trajectory"] == member(group).external_id)
    assert (before["version"], after["version"]) == (1, 2)
    assert (hacked["outcome"], hacked["integrity"], hacked["reward"], hacked["factor"]) == ("failed", "hack", 0, None)
    # R = (0, 1, 1, 0): the mean is 1/2
    assert hacked["advantage"] == pytest.approx(-0.5)
    assert kinds(group) == [DecisionKind.VERDICT] * 2


def test_with_shaped_rewards_a_hack_gets_the_lowest_reward_and_never_ends_above_zero():
    group = complete(outcomes="PPFF")
    for letter, reward in zip("ABCD", ("0.9", "0.8", "-0.5", "0.1"), strict=True):
        group.trajectories.filter(letter=letter).update(reward=reward)
    grade(group)
    confirm(group, "A")
    rows = {r["trajectory"]: r for r in newest_row(group)["rows"]}
    hacked = rows[member(group).external_id]
    assert hacked["reward"] == -0.5 and hacked["advantage"] < 0


def test_a_hack_that_leaves_nobody_passing_filters_the_group():
    held, sent = held_group(outcomes="PFF"), delivered(outcomes="PFF")
    for group in (held, sent):
        confirm(group)
        assert group.end_reason == EndReason.FILTERED_ALL_FAILED and group.state == GroupState.DECIDED
        row = newest_row(group)
        assert (row["regime"], row["reason"], row["train"]) == ("filtered", EndReason.FILTERED_ALL_FAILED, False)
    assert not held.held


def test_a_hack_in_an_all_passed_group_re_opens_it_and_it_is_graded_and_delivered_anew():
    group = delivered(outcomes="PPP")
    assert kinds(group) == [DecisionKind.FILTERED]
    RolloutGroup.objects.filter(pk=group.pk).update(grade_by=clock.now(), wanted_by=clock.now())
    confirm(group)
    assert group.state == GroupState.GRADING and group.end_reason == ""
    assert deadlines.sweep() == 0, "the deadlines of the first time are over; new ones begin"
    job.drain()
    row = newest_row(group)
    assert kinds(group) == [DecisionKind.FILTERED, DecisionKind.VERDICT]
    assert row["train"] and row["version"] == 2


def test_a_re_opened_group_that_no_grader_takes_still_ends_at_its_deadline():
    group = delivered(outcomes="PPP")
    confirm(group)
    RolloutGroup.objects.filter(pk=group.pk).update(grade_by=clock.now())
    deadlines.sweep()
    assert newest_row(group)["reason"] == "deadline"


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"method": Method.OUTCOME}, DecisionKind.BASELINE),
        ({"paused": True}, DecisionKind.FALLBACK),
    ],
)
def test_a_re_opened_group_that_needs_no_grade_is_decided_at_once(fields, kind):
    group = delivered(outcomes="PPP", run=make_run(**fields))
    confirm(group)
    assert kinds(group) == [DecisionKind.FILTERED, kind] and newest_row(group)["train"]


def test_an_ineligible_group_passes_through_whatever_is_found():
    group = delivered(outcomes="PPF", eligible=False)
    confirm(group)
    confirm(group, "B")
    assert kinds(group) == [DecisionKind.INELIGIBLE] * 3 and newest_row(group)["regime"] == "ineligible"


def test_a_finding_confirmed_while_a_grader_works_ends_its_claim_and_the_group_is_graded_as_it_is_now():
    group = complete(outcomes="PPPF")
    group.claim(by="slow", lease_s=60)
    fencing, reply = group.fencing, reply_for(group)
    confirm(group)
    assert group.state == GroupState.COMPLETE
    with pytest.raises(job.LeaseLost):
        job.store_verdict(group, reply, fencing=fencing)
    job.drain()
    assert newest_row(group)["regime"] in ("exact", "bounded") and kinds(group) == ["verdict"]


def test_a_finding_while_collecting_counts_when_the_group_is_complete():
    group = make_group(run=make_run(policy=Policy.AUTO), outcomes="PF")
    group.trajectories.filter(outcome="passed").update(letter="A")
    confirm(group)
    assert kinds(group) == [] and gather.effective(group).status == EndReason.FILTERED_ALL_FAILED


def test_an_unrelated_finding_does_not_make_an_unapproved_correction_count():
    group = delivered(outcomes="PPPF")
    counting = group.decisions.get().verdict
    add_verdict(group, {"A": 5}, parent=counting, grader="person", author=make_user(), reason="A is the best")
    confirm(group, "C")
    decided = group.decisions.get(version=2).verdict
    assert decided.parent == counting and decided.candidates.get(trajectory=member(group)).scores["approach"] == 4
    assert decisions.newest_verdict(group).candidates.get(trajectory=member(group)).scores["approach"] == 5


def test_a_finding_in_a_paused_run_sends_outcome_advantages():
    group = delivered(outcomes="PPPF")
    pausing.switch(group.run, paused=True, reason="entropy", by="alice")
    confirm(group)
    assert (newest_row(group)["regime"], newest_row(group)["reason"]) == ("fallback", "paused")


def test_an_abandoned_group_keeps_its_finding_and_stays_abandoned():
    life = make_life()
    group = held_group(outcomes="PPF", run=life.run)
    decisions.abandon(group, by="life:2")
    confirm(group)
    assert member(group).integrity == "hack" and kinds(group) == [DecisionKind.ABANDONED]


@pytest.mark.django_db(transaction=True)
def test_a_finding_and_an_approval_at_once_end_in_one_story():
    """Whoever is second sees what the first one did: the approval conflicts, or the finding makes a new version."""
    group, alice, bob = held_group(outcomes="PPPF"), make_user(), make_user()
    seen, start, lost = decisions.newest_verdict(group).pk, Barrier(2), []

    def approve():
        start.wait()
        try:
            decisions.approve(RolloutGroup.objects.get(pk=group.pk), seen_verdict=seen, user=alice)
        except Conflict as refused:
            lost.append(refused)
        finally:
            connection.close()

    def find():
        start.wait()
        rollout = member(group)
        findings.confirm(rollout, kind="hack", reason="x", citations=[line_of(rollout)], user=bob)
        connection.close()

    threads = [Thread(target=step) for step in (approve, find)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    group.refresh_from_db()
    if lost:
        assert kinds(group) == [] and group.held
    else:
        assert kinds(group) == ["verdict", "verdict"]
        assert group.decisions.get(version=2).verdict.candidates.count() == 2
