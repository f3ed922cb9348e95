"""A broken task ends its groups, and its release brings them back, whoever is killed meanwhile."""

import json
from datetime import timedelta

import pytest

from grading import clock
from grading.errors import BadInput, Conflict
from grading.models import Task
from grading.review import deadlines, findings
from grading.states import EndReason, GroupState, Policy
from tests.factories import make_group, make_run, make_task, make_user
from tests.grading.review.test_findings import complete, delivered, kinds, newest_row
from tests.verdicts import grade, held_group
from training_bridge import delivery
from training_bridge.models import Delivery

pytestmark = pytest.mark.django_db


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
