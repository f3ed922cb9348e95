import json
from dataclasses import replace
from datetime import timedelta
from threading import Barrier, Thread

import pytest
from django.db import connection

from grading import clock
from grading.errors import BadInput, Conflict
from grading.grader import gather, job
from grading.grader.shape import Finding as Found
from grading.models import RolloutGroup, Task, Trajectory
from grading.review import deadlines, decisions, findings
from grading.review.anchors import Citation
from grading.states import DecisionKind, EndReason, GroupState, Method, Policy
from tests.factories import make_group, make_life, make_run, make_task, make_user
from tests.verdicts import add_verdict, grade, held_group, line_of, reply_for
from training_bridge import delivery
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
    delivery.set_mode(group.run, mode="outcome_only", reason="entropy", by="alice")
    confirm(group)
    assert (newest_row(group)["regime"], newest_row(group)["reason"]) == ("fallback", "paused")


def test_an_abandoned_group_keeps_its_finding_and_stays_abandoned():
    life = make_life()
    group = held_group(outcomes="PPF", run=life.run)
    decisions.abandon(group, by="life:2")
    confirm(group)
    assert member(group).integrity == "hack" and kinds(group) == [DecisionKind.ABANDONED]


# ---- broken tasks ----


def test_a_broken_task_ends_its_open_groups_now_and_later_ones_when_they_are_complete():
    run = make_run(policy=Policy.AUTO)
    task, alice = make_task(team=run.team), make_user()
    here = {"run": run, "task": task}
    waiting, working = complete(**here), complete(**here)
    working.claim(by="slow", lease_s=60)
    held = held_group(outcomes="PPF", **here)
    undelivered = complete(**here)
    grade(undelivered)
    other = complete(run=run)
    collecting = make_group(**here, outcomes="PP")
    findings.quarantine(task, reason="the base fails too", user=alice)
    for group in (waiting, working, held, undelivered):
        group.refresh_from_db()
        assert group.end_reason == EndReason.EXCLUDED_BROKEN_EVALUATION
        assert newest_row(group)["regime"] == "excluded"
    other.refresh_from_db(), collecting.refresh_from_db()
    assert (other.state, collecting.state) == (GroupState.COMPLETE, GroupState.COLLECTING)
    later = complete(**here)
    assert later.end_reason == EndReason.EXCLUDED_BROKEN_EVALUATION


def test_a_delivered_group_keeps_what_it_was_paid_unless_it_is_where_the_person_looked():
    run = make_run(policy=Policy.AUTO)
    task = make_task(team=run.team)
    elsewhere, here = delivered(run=run, task=task), delivered(run=run, task=task)
    findings.quarantine(task, reason="flaky", user=make_user(), group=here)
    elsewhere.refresh_from_db(), here.refresh_from_db()
    assert (elsewhere.version, here.version) == (1, 2)
    delivery.deliver(run)
    delivery.open_epoch(run, reason="test")
    again = json.loads(Delivery.objects.get(group=elsewhere, epoch=2).text)
    first = json.loads(Delivery.objects.get(group=elsewhere, epoch=1).text)
    assert again["rows"] == first["rows"], "one version says one thing, in every epoch"


def test_release_reverses_it():
    run = make_run(policy=Policy.AUTO)
    task, alice = make_task(team=run.team), make_user()
    counted, never = delivered(run=run, task=task), complete(run=run, task=task)
    held = held_group(outcomes="PPF", run=run, task=task)
    before = newest_row(counted)
    findings.quarantine(task, reason="flaky", user=alice, group=counted)
    findings.release(task, reason="it was the network", user=alice)
    for group in (counted, never, held):
        group.refresh_from_db()
    assert kinds(counted) == ["verdict", "excluded", "verdict"]
    assert newest_row(counted)["rows"] == before["rows"]
    assert kinds(never) == ["excluded", "fallback"] and newest_row(never)["train"]
    assert kinds(held) == ["excluded", "verdict"], "policy auto lets the grader's verdict count"
    assert [event.is_broken for event in task.events.order_by("pk")] == [True, False]


def test_quarantine_needs_a_reason_and_happens_once():
    task = make_task()
    with pytest.raises(BadInput, match="needs a reason"):
        findings.quarantine(task, reason="", user=make_user())
    with pytest.raises(Conflict, match="not quarantined"):
        findings.release(task, reason="x", user=make_user())
    findings.quarantine(task, reason="x", user=make_user())
    with pytest.raises(Conflict, match="already quarantined"):
        findings.quarantine(task, reason="x", user=make_user())


def marked(task, *, broken: bool) -> None:
    """As a process leaves it that was killed between the mark and the first group."""
    findings._mark(task, broken, "flaky", make_user(username=f"marker-{broken}"))


def test_what_a_killed_process_left_of_a_quarantine_or_a_release_is_done_by_the_sweep():
    run = make_run(policy=Policy.AUTO)
    task = make_task(team=run.team)
    held, sent = held_group(outcomes="PPF", run=run, task=task), delivered(run=run, task=task)
    marked(task, broken=True)
    deadlines.sweep()
    held.refresh_from_db(), sent.refresh_from_db()
    assert (held.end_reason, sent.version) == (EndReason.EXCLUDED_BROKEN_EVALUATION, 1)
    assert (held.decisions.get().by, held.decisions.get().user.username) == ("marker-True", "marker-True")
    deadlines.sweep()
    assert kinds(held) == ["excluded"], "a second sweep finds nothing to do"
    marked(task, broken=False)
    deadlines.sweep()
    assert kinds(held) == ["excluded", "verdict"]


def test_a_group_completed_beside_a_mark_is_found_by_the_sweep_and_the_sweep_ends():
    run = make_run(policy=Policy.MANUAL)
    task = make_task(team=run.team)
    findings.quarantine(task, reason="flaky", user=make_user())
    late = held_group(outcomes="PPF", run=run, task=task)  # its transaction still read the task as it was
    deadlines.sweep()
    late.refresh_from_db(), task.refresh_from_db()
    assert late.end_reason == EndReason.EXCLUDED_BROKEN_EVALUATION and task.settling_until
    Task.objects.filter(pk=task.pk).update(settling_until=clock.now() - timedelta(seconds=1))
    deadlines.sweep()
    task.refresh_from_db()
    assert task.settling_until is None and task.is_broken


def test_a_group_whose_patches_are_lost_does_not_keep_the_others_from_their_release():
    run = make_run(policy=Policy.AUTO)
    task, alice = make_task(team=run.team), make_user()
    lost, whole = delivered(run=run, task=task), held_group(outcomes="PPF", run=run, task=task)
    findings.quarantine(task, reason="flaky", user=alice, group=lost)
    lost.trajectories.update(patch="0" * 64)
    findings.release(task, reason="it was the network", user=alice)
    assert (kinds(lost), kinds(whole)) == (["verdict", "excluded"], ["excluded", "verdict"])


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
