"""What was wrong in many groups is taken back with one reason, each with its own row; who refuses is said and left."""

import pytest
from django.urls import reverse

from grading.errors import BadInput
from grading.models import Finding, GroupEvent, Role, RolloutGroup, Signal, SignalRuling, Trajectory
from grading.review import bulk, findings, placing, queue
from tests.factories import make_run, make_user
from tests.verdicts import add_flag, held_group, line_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def run():
    return make_run(policy="manual")


@pytest.fixture
def alice(run):
    return make_user(username="alice", role=Role.REVIEWER, team=run.team)


def found(run, user, *, kind: str = "leak", letter: str = "A") -> RolloutGroup:
    group = held_group(run=run, outcomes="PPPF", hold_reason="policy manual")
    trajectory = group.trajectories.get(letter=letter)
    findings.confirm(trajectory, kind=kind, reason="it looked", citations=[line_of(trajectory)], user=user)
    return group


def test_one_reason_withdraws_many_with_a_row_each_and_they_count_anew(run, alice):
    groups = [found(run, alice) for _ in range(3)]
    tally = bulk.withdraw(groups, kind="", reason="the detector was wrong", user=alice)
    assert (tally.changed, tally.groups, tally.refused) == (3, 3, [])
    assert not Trajectory.objects.exclude(integrity="").exists()
    rows = Finding.objects.filter(kind="")
    assert [row.reason for row in rows] == ["the detector was wrong"] * 3 and rows.first().by == "alice"
    for group in groups:
        assert GroupEvent.objects.filter(group=group, reason__contains="the detector was wrong").exists()
        assert group.verdicts.last().candidates.filter(trajectory__letter="A").exists()  # ranked again


def test_only_the_kind_that_was_asked_for_is_withdrawn(run, alice):
    groups = [found(run, alice), found(run, alice, kind="hack")]
    assert bulk.withdraw(groups, kind="hack", reason="no hack", user=alice).changed == 1
    assert Trajectory.objects.get(integrity="leak").group == groups[0]


def test_a_group_that_somebody_else_holds_is_left_and_said(run, alice):
    groups = [found(run, alice), found(run, alice)]
    queue.claim(groups[0], user=make_user(username="bob", role=Role.REVIEWER, team=run.team))
    tally = bulk.withdraw(groups, kind="", reason="wrong", user=alice)
    assert tally.changed == 1 and len(tally.refused) == 1 and "bob holds group" in tally.refused[0]


@pytest.mark.parametrize("said", [{"reason": " "}, {"kind": "x"}])
def test_a_bulk_needs_a_reason_and_a_known_kind(run, alice, said):
    with pytest.raises(BadInput):
        bulk.withdraw([found(run, alice)], user=alice, **{"kind": "", "reason": "wrong"} | said)
    with pytest.raises(BadInput):
        bulk.withdraw([], kind="", reason="wrong", user=alice)


def test_groups_are_found_by_finding_and_signal_selected_and_withdrawn_on_the_page(client, run, alice):
    group, other = found(run, alice), held_group(run=run, outcomes="PPF")
    Signal.objects.create(trajectory=other.trajectories.first(), detector="H6", is_strong=False, words="looked")
    client.force_login(alice)
    by_finding = client.get(reverse("groups"), {"finding": "leak"}).content.decode()
    assert group.key in by_finding and other.key not in by_finding and "leak A" in by_finding
    by_signal = client.get(reverse("groups"), {"signal": "h6"}).content.decode()
    assert other.key in by_signal and group.key not in by_signal
    fields = {"group": [group.pk, other.pk, "x"], "kind": "", "reason": "wrong"}
    answer = client.post(f"{reverse('groups-withdraw')}?finding=leak", fields)
    assert answer.url == f"{reverse('groups')}?finding=leak"
    assert "1 finding withdrawn in 1 group." in client.get(answer.url).content.decode()


def test_who_may_not_review_a_group_withdraws_nothing_in_it(client, run, alice):
    group = found(run, alice)
    viewer = make_user(role=Role.VIEWER, team=run.team)
    fields = {"group": [group.pk], "kind": "", "reason": "wrong"}
    client.force_login(viewer)
    assert client.post(reverse("groups-withdraw"), fields).status_code == 403
    assert 'name="group"' not in client.get(reverse("groups")).content.decode()
    client.force_login(make_user(role=Role.ADMIN))
    assert client.post(reverse("groups-withdraw"), fields).status_code == 400
    assert Trajectory.objects.filter(integrity="leak").exists()


def hinted(run, *, is_strong: bool = True) -> RolloutGroup:
    group = held_group(run=run, outcomes="PPPF", hold_reason="strong integrity signal")
    Signal.objects.create(trajectory=group.trajectories.first(), detector="H7", is_strong=is_strong, words="it looked")
    placing.place_again(group)
    group.refresh_from_db()
    return group


def test_hints_ruled_wrong_leave_a_row_each_and_no_longer_make_a_group_uncertain(run, alice):
    groups = [hinted(run) for _ in range(2)]
    assert [group.uncertainty for group in groups] == [1.0, 1.0]
    assert bulk.rule_wrong(groups, detector="H1", reason="no", user=alice).changed == 0
    tally = bulk.rule_wrong(groups, detector="H7", reason="it reads its own notes", user=alice)
    assert (tally.changed, tally.groups) == (2, 2)
    rows = SignalRuling.objects.all()
    assert [(row.user, row.is_wrong, row.reason) for row in rows] == [(alice, True, "it reads its own notes")] * 2
    for group in groups:
        group.refresh_from_db()
        assert group.uncertainty < 1.0
        assert GroupEvent.objects.filter(group=group, reason="hints ruled wrong (H7): it reads its own notes").exists()
    assert bulk.rule_wrong(groups, detector="", reason="again", user=alice).changed == 0


def flagged(run, **fields) -> RolloutGroup:
    """A is in tier 3 for a flag alone."""
    group = held_group(run=run, outcomes="PPF", **fields)
    add_flag(group)
    return group


def test_a_flag_that_is_wrong_in_many_is_taken_back_by_corrections_that_cite_its_own_places(run, alice):
    groups = [flagged(run), flagged(run), held_group(run=run, outcomes="PPF")]
    assert {c.tier for c in groups[0].verdicts.last().candidates.all()} == {1, 3}
    tally = bulk.unflag(groups, flag="unrequested_rewrite", reason="the task asks for it", user=alice)
    assert (tally.changed, tally.groups, tally.refused) == (2, 2, [])
    for group in groups[:2]:
        made = group.verdicts.last()
        assert (made.author, made.reason) == (alice, "the task asks for it")
        assert {c.tier for c in made.candidates.all()} == {1}
        assert made.evidence.filter(about="unrequested_rewrite").exists()
        assert not group.decisions.exists()


def test_a_flag_taken_back_counts_at_once_where_that_is_asked_and_is_left_where_reviews_come_first(run, alice):
    groups = [flagged(run), flagged(run, reviews_wanted=2)]
    tally = bulk.unflag(groups, flag="unrequested_rewrite", reason="the task asks", user=alice, counts=True)
    assert (tally.changed, tally.groups) == (1, 1) and "cannot be decided yet" in tally.refused[0]
    assert groups[0].decisions.get().verdict == groups[0].verdicts.last()
    assert groups[1].verdicts.count() == 2 and not groups[1].decisions.exists()


def test_flags_and_hints_are_taken_back_on_the_page(client, run, alice):
    group = flagged(run)
    Signal.objects.create(trajectory=group.trajectories.first(), detector="H6", is_strong=False, words="looked")
    client.force_login(alice)
    fields = {"group": [group.pk], "reason": "wrong", "flag": "unrequested_rewrite", "detector": "H6"}
    answer = client.post(f"{reverse('groups-unflag')}?step=1", fields, follow=True)
    assert "1 flag taken back in 1 group. The corrections are saved" in answer.content.decode()
    answer = client.post(reverse("groups-rule-wrong"), fields, follow=True)
    assert "1 hint ruled wrong in 1 group." in answer.content.decode()
    client.force_login(make_user(role=Role.VIEWER, team=run.team))
    assert client.post(reverse("groups-unflag"), fields).status_code == 403
