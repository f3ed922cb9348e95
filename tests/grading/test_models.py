from datetime import timedelta
from threading import Barrier, Thread

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import IntegrityError, connection, transaction

from grading import clock
from grading.errors import FrozenRow, LeaseLost, WrongState
from grading.models import (
    Decision,
    Evidence,
    Finding,
    GroupEvent,
    Life,
    MachineToken,
    Membership,
    RolloutGroup,
    RubricVersion,
    Run,
    Signal,
    Task,
    TaskEvent,
    Team,
    Trajectory,
    Verdict,
    VerdictCandidate,
)
from grading.review import decisions, findings
from grading.states import MOVES, GroupState, Policy
from tests.factories import flash, make_group, make_life, make_run, make_task, make_team, make_token, make_user
from tests.verdicts import add_verdict, held_group, line_of
from training_bridge import delivery, intake
from training_bridge.models import Delivery, MetricPoint, Receipt, Stream
from training_bridge.protocol import messages

pytestmark = pytest.mark.django_db
HISTORY = [GroupEvent, Verdict, VerdictCandidate, Evidence, Decision, Finding, TaskEvent, RubricVersion, Receipt]
OWNED = [
    Team, Membership, Run, Life, Task, TaskEvent, MachineToken, RolloutGroup, GroupEvent, Trajectory, Signal, Finding,
    Verdict, VerdictCandidate, Evidence, Decision, Stream, Delivery, Receipt, MetricPoint,
]  # fmt: skip


def lived_group(team=None) -> RolloutGroup:
    """A delivered group with at least one row of every kind behind it, and its own team's token and reviewer."""
    run = make_run(team=team or make_team(), policy=Policy.MANUAL)
    alice = make_user(role="reviewer", team=run.team)
    group = held_group(run=run, outcomes="PPPF")
    add_verdict(group, {"A": 3})
    rollout = group.trajectories.get(letter="B")
    findings.confirm(rollout, kind="leak", reason="it looked", citations=[line_of(rollout)], user=alice)
    Signal.objects.create(trajectory=rollout, detector="H1", is_strong=True, words="the test file is gone")
    decisions.approve(group, seen_verdict=decisions.newest_verdict(group).pk, user=alice)
    delivery.deliver(run)
    receipt = messages.Receipt(n=1, life=group.life.n, group=group.key, version=1, status="applied", step=2)
    intake.note(group.life, [receipt, messages.Metrics(n=2, step=2, values={"loss": 0.5})])
    findings.quarantine(group.task, reason="flaky", user=alice)
    make_token(run=run)
    group.refresh_from_db()
    return group


# ---- history is never edited ----


def test_no_row_of_history_can_be_edited_or_deleted():
    lived_group()
    for model in HISTORY:
        row = model.objects.first()
        assert row is not None, model
        for attempt in (row.save, row.delete, model.objects.all().delete):
            with pytest.raises(FrozenRow, match=model.__name__):
                attempt()
        with pytest.raises(FrozenRow, match="never edited"):
            model.objects.filter(pk=row.pk).update(pk=row.pk)


def test_a_new_object_under_an_old_key_overwrites_nothing():
    group = lived_group()
    old = group.decisions.get()
    with pytest.raises(IntegrityError), transaction.atomic():
        Decision(pk=old.pk, group=group, version=9, kind="fallback", by="mallory").save()
    assert group.decisions.get().by == old.by


def test_a_related_manager_is_no_way_round():
    group = lived_group()
    for rows in (group.events, group.decisions, group.verdicts, group.task.events):
        with pytest.raises(FrozenRow):
            rows.all().delete()


def test_decisions_of_a_group_are_numbered_once():
    group = make_group()
    Decision.objects.create(group=group, version=1, kind="fallback", by="a")
    with pytest.raises(IntegrityError), transaction.atomic():
        Decision.objects.create(group=group, version=1, kind="fallback", by="b")


# ---- the only door ----


def seen(who, role="viewer") -> dict[str, int]:
    return {model.__name__: model.objects.visible_to(who, role).count() for model in OWNED}


def test_a_member_sees_every_row_of_their_team_and_none_of_another():
    group, other = lived_group(), lived_group()
    mine, theirs = make_user(role="viewer", team=group.run.team), make_user(role="admin", team=other.run.team)
    for model in OWNED:
        rows = {who: set(model.objects.visible_to(who)) for who in (mine, theirs)}
        assert rows[mine] and rows[theirs], model
        assert not rows[mine] & rows[theirs], model
        assert rows[mine] | rows[theirs] == set(model.objects.all()), model


@pytest.mark.parametrize(
    ("role", "may"),
    [("viewer", ["viewer"]), ("reviewer", ["viewer", "reviewer"]), ("admin", ["viewer", "reviewer", "admin"])],
)
def test_a_role_opens_what_needs_at_most_that_role(role, may):
    group = held_group(outcomes="PPF")
    user = make_user(role=role, team=group.run.team)
    opened = [asked for asked in ("viewer", "reviewer", "admin") if RolloutGroup.objects.visible_to(user, asked)]
    assert opened == may
    assert [asked for asked in ("viewer", "reviewer", "admin") if user.may(asked, group.run.team)] == may


def test_a_role_in_one_team_is_none_in_another():
    group = held_group(outcomes="PPF")
    user = make_user(role="admin")
    Membership.objects.create(user=user, team=group.run.team, role="viewer")
    assert RolloutGroup.objects.visible_to(user) and not RolloutGroup.objects.visible_to(user, "reviewer")


def test_a_superuser_sees_all_and_nobody_else_does():
    lived_group(), lived_group()
    root = make_user(is_superuser=True)
    assert seen(root, "admin") == {model.__name__: model.objects.count() for model in OWNED}
    for nobody in (make_user(), AnonymousUser(), make_user(is_superuser=True, is_active=False)):
        assert not any(seen(nobody).values())


def test_a_token_sees_its_own_run_and_its_teams_tasks():
    group, other = lived_group(), lived_group()
    sibling = make_run(team=group.run.team)
    held_group(run=sibling, outcomes="PPF")
    token, strange = make_token(run=group.run)[0], make_token(run=other.run)[0]
    assert set(Run.objects.visible_to(token)) == {group.run}
    assert set(RolloutGroup.objects.visible_to(token)) == {group}
    assert group.task in Task.objects.visible_to(token) and other.task not in Task.objects.visible_to(token)
    for model in (Trajectory, Verdict, Decision, GroupEvent, Delivery, Stream, Receipt, MetricPoint):
        rows = set(model.objects.visible_to(token))
        assert rows and not rows & set(model.objects.visible_to(strange)), model


def test_a_token_is_stored_as_a_digest_and_gone_when_revoked():
    token, key = make_token()
    assert key not in str(token.__dict__) and MachineToken.find(key) == token
    assert token.may("ingest") and not token.may("read")
    token.revoke()
    assert MachineToken.find(key) is None and MachineToken.find("") is None


# ---- moves ----


@pytest.mark.parametrize("here", GroupState)
def test_only_moves_of_the_table_happen_and_each_leaves_a_line(here):
    for to in GroupState:
        group = make_group(state=here)
        if to in MOVES[here]:
            group.move(to, by="alice", reason="because")
            line = group.events.get()
            assert (line.old, line.new, line.by, line.reason) == (here, to, "alice", "because")
        else:
            with pytest.raises(WrongState, match="cannot become"):
                group.move(to, by="alice")
            assert not group.events.exists()
        assert RolloutGroup.objects.get(pk=group.pk).state == (to if to in MOVES[here] else here)


def test_a_move_from_a_state_that_is_gone_changes_nothing():
    group = make_group(state=GroupState.GRADED)
    stale = RolloutGroup.objects.get(pk=group.pk)
    group.move(GroupState.GRADING, by="a")
    with pytest.raises(WrongState, match="left graded while we looked"):
        stale.move(GroupState.DECIDED, by="b", version=7)
    stale.refresh_from_db()
    assert (stale.state, stale.version, stale.events.count()) == (GroupState.GRADING, 0, 1)


# ---- leases ----


def test_a_claim_fences_the_one_before_and_the_history_has_no_hole():
    group = make_group(state=GroupState.COMPLETE, outcomes="PPF")
    late = RolloutGroup.objects.get(pk=group.pk)
    assert group.claim(by="first", lease_s=60) and group.fencing == 1
    RolloutGroup.objects.filter(pk=group.pk).update(claimed_until=clock.now() - timedelta(seconds=1))
    assert late.claim(by="second", lease_s=60) and late.fencing == 2
    with pytest.raises(LeaseLost):
        group.keep_claim(fencing=1, lease_s=60)
    late.keep_claim(fencing=2, lease_s=600)
    assert RolloutGroup.objects.get(pk=group.pk).claimed_until > clock.now() + timedelta(seconds=500)
    assert list(group.events.values_list("old", "new")) == [("complete", "grading"), ("grading", "grading")]


@pytest.mark.parametrize("fields", [{"bodies_ready": False}, {"state": GroupState.GRADED}, {"state": "decided"}])
def test_what_is_not_ready_cannot_be_claimed(fields):
    group = make_group(outcomes="PPF", **{"state": GroupState.COMPLETE} | fields)
    assert not group.claim(by="test", lease_s=60) and group.fencing == 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("left_behind", [False, True])
def test_of_four_workers_who_claim_at_once_one_gets_the_group(left_behind):
    flash()
    group = make_group(state=GroupState.COMPLETE, outcomes="PPF")
    if left_behind:
        gone = clock.now() - timedelta(seconds=1)
        RolloutGroup.objects.filter(pk=group.pk).update(state=GroupState.GRADING, claimed_until=gone, fencing=3)
    start, took = Barrier(4), []

    def claim(n):
        mine = RolloutGroup.objects.get(pk=group.pk)
        start.wait()
        try:
            if mine.claim(by=f"worker {n}", lease_s=60):
                took.append((mine.claimed_by, mine.fencing))
        finally:
            connection.close()

    threads = [Thread(target=claim, args=[n]) for n in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    group.refresh_from_db()
    assert took == [(group.claimed_by, group.fencing)]
    assert group.fencing == (4 if left_behind else 1) and group.events.count() == 1


def test_rows_awaiting_review_are_those_that_somebody_must_see():
    held, free = held_group(outcomes="PPF"), make_group(state=GroupState.GRADED, outcomes="PPF")
    assert list(RolloutGroup.objects.awaiting_review()) == [held] and free.is_open


@pytest.mark.skipif(connection.vendor != "sqlite", reason="other databases choose by their statistics")
def test_the_search_for_uninspected_groups_does_not_grow_with_the_run():
    plan = RolloutGroup.objects.uninspected(clock.now()).order_by("pk")[:1].explain()
    assert "group_uninspected" in plan and "SCAN" not in plan


def test_the_deadline_is_the_earliest_that_applies_in_the_state():
    now = clock.now()
    times = {name: now + timedelta(hours=n) for n, name in enumerate(("collect_by", "grade_by", "review_by"), 1)}
    life = make_life()
    assert make_group(life=life, **times, wanted_by=now).deadline == times["collect_by"], "a want waits for rollouts"
    assert make_group(life=life, state="complete", **times).deadline == times["grade_by"]
    assert make_group(life=life, state="graded", **times, wanted_by=now).deadline == now
    assert make_group(life=life, state="delivered", **times).deadline is None
    assert make_task().is_broken is False
