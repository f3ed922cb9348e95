import json
from dataclasses import replace

import pytest

from grading.errors import Conflict, Fenced, WrongState
from grading.grader import job
from grading.grader.shape import Revision
from grading.ingest import assemble, lives
from grading.models import RolloutGroup
from grading.review import decisions
from grading.review.recount import OUTDATED
from grading.states import DecisionKind, EndReason, GroupState, Method, Policy
from tests.factories import make_group, make_run, make_user
from tests.verdicts import grade, held_group, line_of, reply_for
from training_bridge import delivery, pausing
from training_bridge.models import Delivery

pytestmark = pytest.mark.django_db


def member(group, letter="A"):
    return group.trajectories.get(letter=letter)


def amend(group, letter, outcome, **fields):
    id = member(group, letter).external_id
    assemble.amend(group, external_id=id, outcome=outcome, reason="flaky test", by="job", **fields)
    group.refresh_from_db()


def complete(outcomes="PPF", **fields):
    run = fields.pop("run", None) or make_run(policy=fields.pop("policy", Policy.AUTO))
    group = make_group(run=run, state=GroupState.COMPLETE, outcomes=outcomes, **fields)
    decisions.after_complete(group, by="test")
    return group


def decided(outcomes="PPF", *, deliver: bool = False, **fields):
    group = complete(outcomes, **fields)
    if group.state == GroupState.COMPLETE:
        grade(group)
    if deliver:
        delivery.deliver(group.run)
        group.refresh_from_db()
    return group


def told(group) -> list[tuple[str, str]]:
    return list(group.decisions.values_list("kind", "reason"))


def kinds(group) -> list[str]:
    return [kind for kind, _ in told(group)]


def newest_row(group) -> dict:
    delivery.deliver(group.run)
    group.refresh_from_db()
    row = json.loads(Delivery.objects.filter(group=group).order_by("-epoch", "-seq").first().text)
    assert row["version"] == group.version and sum(r["advantage"] for r in row["rows"]) == pytest.approx(0, abs=1e-12)
    return row


@pytest.mark.parametrize("deliver", [False, True])
def test_a_pass_amended_to_a_failure_is_left_out_of_the_ranking(deliver):
    group = decided("PPPF", deliver=deliver)
    amend(group, "A", "failed")
    row = newest_row(group)
    verdict = group.decisions.get(version=2).verdict
    assert kinds(group) == ["verdict", "verdict"] and verdict.candidates.count() == 2
    amended = next(r for r in row["rows"] if r["trajectory"] == member(group).external_id)
    assert (amended["outcome"], amended["advantage"], amended["factor"]) == ("failed", -0.5, None)


@pytest.mark.parametrize("deliver", [False, True])
def test_a_failure_amended_to_a_pass_has_no_factor_so_the_group_falls_back_and_says_so(deliver):
    group = decided("PPFF", deliver=deliver)
    amend(group, "C", "passed")
    row = newest_row(group)
    assert told(group)[1] == (DecisionKind.FALLBACK, OUTDATED)
    assert (row["regime"], row["reason"], row["train"]) == ("fallback", OUTDATED, True)
    assert decisions.newest_verdict(group).is_valid is False


def test_amending_it_back_brings_the_verdict_back():
    group = decided("PPFF", deliver=True)
    before = newest_row(group)
    amend(group, "C", "passed")
    amend(group, "C", "failed")
    assert kinds(group) == ["verdict", "fallback", "verdict"]
    assert newest_row(group)["rows"] == before["rows"]


def test_a_pass_that_turns_out_to_be_infra_invalid_is_masked_and_the_rest_keeps_its_verdict():
    group = decided("PPPF", deliver=True)
    amend(group, "A", "infra_invalid")
    row = newest_row(group)
    masked = next(r for r in row["rows"] if r["trajectory"] == member(group).external_id)
    assert kinds(group) == ["verdict", "verdict"] and (masked["reward"], masked["advantage"]) == (None, 0)


def test_a_revised_order_keeps_its_argument_for_those_who_are_left():
    group = complete("PPPF", policy=Policy.MANUAL)
    group.claim(by="test", lease_s=60)
    reply, ids = reply_for(group), [member(group, letter).external_id for letter in "ABC"]
    argued = Revision((ids[0], ids[1]), "smaller", (line_of(member(group, "A")),))
    order = {"T1": ((ids[0],), (ids[1],), (ids[2],)), "T2": (), "T3": ()}
    job.store_verdict(group, replace(reply, order=order, revisions=(argued,)), fencing=group.fencing)
    group.refresh_from_db()
    amend(group, "B", "failed")
    newest = decisions.newest_verdict(group)
    assert newest.is_valid and newest.ranking["T1"] == [[ids[0]], [ids[2]]]


def test_a_shaped_reward_amended_changes_the_numbers_and_not_the_ranking():
    group = decided("PPF", deliver=True)
    amend(group, "A", "passed", reward="0.25")
    row = newest_row(group)
    assert row["version"] == 2 and [r["reward"] for r in row["rows"]] == [0.25, 1, 0]


def test_a_reward_that_is_no_number_excludes_the_group_and_a_good_one_brings_it_back():
    group = decided("PPF", deliver=True)
    amend(group, "A", "passed", reward="NaN")
    assert newest_row(group)["reason"] == EndReason.EXCLUDED_BAD_REWARD
    amend(group, "A", "passed", reward="0.5")
    assert newest_row(group)["train"] and kinds(group) == ["verdict", "excluded", "verdict"]


def test_the_same_again_is_no_amendment():
    group = decided("PPF", deliver=True)
    amend(group, "A", "passed")
    assert group.version == 1 and group.state == GroupState.DELIVERED


def test_an_all_passed_group_with_a_failure_after_all_is_graded():
    group = decided("PPP", deliver=True)
    amend(group, "A", "failed")
    assert group.state == GroupState.GRADING
    job.drain()
    assert newest_row(group)["train"] and kinds(group) == ["filtered", "verdict"]


def test_a_held_group_stays_held_over_the_new_rows_and_the_seen_verdict_is_refused():
    group = held_group(outcomes="PPPF")
    seen = decisions.newest_verdict(group)
    amend(group, "A", "failed")
    assert group.held and group.state == GroupState.GRADED
    with pytest.raises(Conflict, match="newer verdict"):
        decisions.approve(group, seen_verdict=seen.pk, user=make_user())
    newest = decisions.newest_verdict(group)
    decisions.approve(group, seen_verdict=newest.pk, user=make_user())
    assert newest_row(group)["regime"] in ("exact", "bounded")


def test_a_held_group_whose_verdict_is_outdated_cannot_be_approved_and_falls_back_at_its_deadline():
    group = held_group(outcomes="PPFF")
    amend(group, "C", "passed")
    newest = decisions.newest_verdict(group)
    with pytest.raises(WrongState, match="not valid"):
        decisions.approve(group, seen_verdict=newest.pk, user=make_user())
    decisions.fall_back(group, user=make_user(), reason="")
    assert newest_row(group)["reason"] == "skipped"


def test_a_group_under_a_grader_goes_back_to_the_queue():
    group = complete("PPPF")
    group.claim(by="slow", lease_s=600)
    amend(group, "A", "failed")
    assert (group.state, group.claimed_until, group.grading_attempts) == (GroupState.COMPLETE, None, 0)
    assert job.drain() == 1 and kinds(group) == ["verdict"]
    assert group.verdicts.get().candidates.count() == 2


def test_a_group_under_a_grader_that_does_not_train_any_more_ends_now():
    group = complete("PF")
    group.claim(by="slow", lease_s=600)
    amend(group, "A", "failed")
    assert group.end_reason == EndReason.FILTERED_ALL_FAILED
    with pytest.raises(job.LeaseLost):
        job.store_verdict(group, reply_for(group), fencing=1)


def test_a_zombie_from_before_the_group_was_filtered_and_re_opened_is_refused():
    group = complete("PPF")
    group.claim(by="zombie", lease_s=600)
    zombie = group.fencing
    amend(group, "C", "passed")
    assert group.state == GroupState.DECIDED
    amend(group, "C", "failed")
    assert group.state == GroupState.GRADING and group.fencing > zombie
    with pytest.raises(job.LeaseLost):
        job.store_verdict(group, reply_for(group), fencing=zombie)


@pytest.mark.parametrize(
    ("run", "kind"),
    [
        ({"method": Method.OUTCOME}, DecisionKind.BASELINE),
        ({"policy": Policy.SHADOW}, DecisionKind.FALLBACK),
        ({"paused": True}, DecisionKind.FALLBACK),
    ],
)
def test_what_was_decided_without_a_verdict_is_decided_the_same_again(run, kind):
    group = decided("PPPF", run=make_run(**run), deliver=True)
    amend(group, "A", "failed")
    first, second = told(group)
    assert first == second and first[0] == kind and newest_row(group)["version"] == 2


def test_shadow_grades_corrects_and_still_delivers_outcome_advantages():
    group = decided("PPF", run=make_run(policy=Policy.SHADOW), deliver=True)
    newest = decisions.newest_verdict(group)
    with pytest.raises(WrongState, match="shadow"):
        decisions.approve(group, seen_verdict=newest.pk, user=make_user())
    amend(group, "A", "failed")
    assert decisions.newest_verdict(group).parent == newest and newest_row(group)["reason"] == "shadow"


def test_a_persons_word_stands_over_an_amendment():
    group = held_group(outcomes="PPPF")
    decisions.fall_back(group, user=make_user(), reason="the task is odd")
    amend(group, "A", "failed")
    assert told(group) == [("fallback", "the task is odd")] * 2


def test_a_graders_invalid_verdict_is_not_mended_by_an_amendment():
    group = complete("PPPF", policy=Policy.MANUAL)
    group.claim(by="test", lease_s=60)
    reply = reply_for(group)
    invalid = job.store_verdict(group, replace(reply, candidates=reply.candidates[1:]), fencing=group.fencing)
    group.refresh_from_db()
    amend(group, "A", "failed")
    assert not invalid.is_valid and decisions.newest_verdict(group) == invalid


def test_nothing_is_amended_in_a_life_that_is_gone():
    group = complete("PPF")
    lives.issue_life(group.run)
    with pytest.raises(Fenced):
        amend(group, "A", "failed")
    assert newest_row(group)["reason"] == EndReason.ABANDONED


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"outcomes": "PP"}, "ended as filtered_all_passed"),
        ({"outcomes": "II"}, "ended as excluded_no_valid_trajectory"),
        ({"eligible": False}, "is not graded"),
        ({"run": {"method": Method.OUTCOME}}, "is not graded"),
    ],
)
def test_no_click_makes_a_group_count_that_cannot(fields, why):
    run = make_run(**fields.pop("run", {}))
    group = decided(run=run, **fields)
    for click in (
        lambda: decisions.fall_back(group, user=make_user(), reason="x"),
        lambda: decisions.approve(group, seen_verdict=1, user=make_user()),
    ):
        with pytest.raises(WrongState, match=why):
            click()
    assert group.decisions.count() == 1


def test_an_abandoned_group_stays_abandoned_whoever_clicks():
    group = held_group(outcomes="PPF")
    page = RolloutGroup.objects.get(pk=group.pk)
    lives.issue_life(group.run)
    seen = decisions.newest_verdict(group).pk
    with pytest.raises(WrongState, match="changed while we looked"):
        decisions.approve(page, seen_verdict=seen, user=make_user())
    group.refresh_from_db()
    with pytest.raises(WrongState, match="ended as abandoned"):
        decisions.approve(group, seen_verdict=seen, user=make_user())
    assert kinds(group) == ["abandoned"]


def test_while_paused_nobody_approves_but_anybody_may_let_it_fall_back():
    group = held_group(outcomes="PPF")
    pausing.switch(group.run, paused=True, reason="entropy", by="alice")
    group = RolloutGroup.objects.get(pk=group.pk)
    with pytest.raises(WrongState, match="is paused"):
        decisions.approve(group, seen_verdict=decisions.newest_verdict(group).pk, user=make_user())
    decisions.fall_back(group, user=make_user(), reason="")
    with pytest.raises(Conflict, match="already falls back"):
        decisions.fall_back(group, user=make_user(), reason="")
    assert kinds(group) == ["fallback"]
