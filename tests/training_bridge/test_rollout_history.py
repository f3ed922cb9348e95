"""The whole way of one rollout, with the numbers of each stage, for people and for machines."""

import pytest
from django.urls import reverse

from grading.models import Signal
from grading.review import decisions
from tests.factories import make_group, make_life, make_run, make_team, make_token, make_user
from tests.training_bridge.monitor.rows import Job
from tests.verdicts import add_verdict
from training_bridge import delivery, rollout_history

pytestmark = pytest.mark.django_db


@pytest.fixture
def reviewer(client):
    user = make_user(username="rita", role="reviewer", team=make_team())
    client.force_login(user)
    user.team = user.memberships.get().team
    return user


def walked_group(user):
    """Two passes and a failure: graded, corrected by a person, approved, delivered, applied."""
    run = make_run(team=user.team, policy="manual")
    job = Job(make_life(run=run))
    group = make_group(run=run, state="graded", held=True, outcomes="PPF", step=7)
    a = group.trajectories.get(letter="A")
    a.counts = {"turns": 12, "response_tokens": 340}
    a.save()
    Signal.objects.create(trajectory=a, detector="H3", words="it ends early", is_strong=False)
    first = add_verdict(group, {"A": 3, "B": 5})
    said = {"parent": first, "grader": "person", "author": user, "reason": "A is the plain one"}
    second = add_verdict(group, {"A": 5, "B": 3}, **said)
    decisions.approve(group, seen_verdict=second.pk, user=user)
    delivery.deliver(run)
    job.receipt(group, "applied", step=9)
    return group


def by_stage(rows) -> dict[str, dict]:
    return {row["stage"]: row for row in rows}


def test_every_stage_stands_with_its_numbers(reviewer):
    group = walked_group(reviewer)
    rollout = group.trajectories.select_related("group__life", "group__rubric").get(letter="B")
    rows = rollout_history.history_of(rollout)
    assert [row["stage"] for row in rows if row["stage"] not in ("declared", "complete", "received")] == [
        "verdict", "correction", "decision", "delivery", "receipt",
    ]  # fmt: skip
    told = by_stage(rows)
    assert told["verdict"]["numbers"]["factor"] == 1.0 and told["verdict"]["words"] == "T1"
    correction = told["correction"]
    assert (correction["by"], correction["why"], correction["words"]) == ("rita", "A is the plain one", "T2")
    assert told["decision"]["by"] == "rita" and told["decision"]["words"] == "version 1: verdict"
    # A = 1 - 2/3; lambda = (2/3) / (1/3 + 0.85/3) = 2 / 1.85; advantage = lambda 0.85 / 3
    numbers = told["delivery"]["numbers"]
    assert numbers["outcome_advantage"] == pytest.approx(1 / 3) and numbers["factor"] == pytest.approx(0.85)
    assert numbers["lambda"] == pytest.approx(2 / 1.85)
    assert numbers["advantage"] == pytest.approx(2 / 1.85 * 0.85 / 3)
    assert (numbers["seq"], numbers["epoch"], numbers["version"]) == (1, 1, 1)
    assert told["receipt"]["words"] == "version 1: applied at step 9" and told["receipt"]["by"] == "job"


def test_a_failure_has_no_place_and_keeps_its_advantage(reviewer):
    group = walked_group(reviewer)
    told = by_stage(rollout_history.history_of(group.trajectories.get(letter="C")))
    assert told["verdict"]["words"] == "not ranked: it was no passing candidate"
    numbers = told["delivery"]["numbers"]
    assert numbers["advantage"] == pytest.approx(numbers["outcome_advantage"]) == pytest.approx(-2 / 3)
    assert "factor" not in numbers


def test_the_page_is_reached_from_its_neighbours_and_by_id(client, reviewer):
    group = walked_group(reviewer)
    path = reverse("rollout-history", args=[group.pk, "A"])
    page = client.get(path).content.decode()
    for words in ("A is the plain one", "version 1: applied at step 9", "+0.360", "340", "as it was"):
        assert words in page, words
    assert "<b>1</b>" in page.partition(">place<")[2][:40] and ">rank<" not in page  # on the wire rank is 0
    for name, args in (("trajectory", [group.pk, "A"]), ("history", [group.pk])):
        assert path in client.get(reverse(name, args=args)).content.decode()
    external_id = group.trajectories.get(letter="A").external_id
    assert external_id in page
    assert client.get(reverse("rollouts"), {"id": external_id}).headers["Location"] == path
    assert "No decided rollout" in client.get(reverse("rollouts"), {"id": "x\x00"}).content.decode()


def test_before_the_decision_letters_stand_for_ids_and_a_blind_reviewer_sees_no_verdict(client, reviewer):
    run = make_run(team=reviewer.team, policy="manual")
    group = make_group(run=run, state="graded", held=True, is_blind=True, outcomes="PPF")
    add_verdict(group, {"A": 3})
    external_id = group.trajectories.get(letter="A").external_id
    page = client.get(reverse("rollout-history", args=[group.pk, "A"])).content.decode()
    assert external_id not in page and "Verdicts are hidden" in page and "scripted" not in page
    assert "No decided rollout" in client.get(reverse("rollouts"), {"id": external_id}).content.decode()


def test_another_team_sees_nothing(client, reviewer):
    other = make_user(role="admin", team=make_team())
    other.team = other.memberships.get().team
    group = walked_group(other)
    assert client.get(reverse("rollout-history", args=[group.pk, "A"])).status_code == 404
    assert client.get(reverse("rollout-history", args=[group.pk, "Z"])).status_code == 404
    external_id = group.trajectories.get(letter="A").external_id
    assert "No decided rollout" in client.get(reverse("rollouts"), {"id": external_id}).content.decode()


def test_a_machine_reads_it_by_the_jobs_own_id(client, reviewer):
    group = walked_group(reviewer)
    rollout = group.trajectories.get(letter="A")
    token = make_token(run=group.run, purposes=["read"])[1]
    path = f"/api/v1/runs/{group.run.public_id}/trajectories/{rollout.external_id}/history"
    headers = {"Authorization": f"Bearer {token}"}
    said = client.get(path, headers=headers).json()
    assert (said["external_id"], said["group"], said["step"]) == (rollout.external_id, group.key, 7)
    told = by_stage(said["history"])
    assert told["inspected" if "inspected" in told else "received"]["numbers"] is not None
    assert told["delivery"]["numbers"]["advantage"] == pytest.approx(2 / 1.85 / 3)
    assert told["correction"]["link"]["kind"] == "verdict"
    assert client.get(path + "?life=2", headers=headers).status_code == 404
    assert client.get(path).status_code == 401
    other = make_token(purposes=["read"])[1]
    assert client.get(path, headers={"Authorization": f"Bearer {other}"}).status_code == 404
