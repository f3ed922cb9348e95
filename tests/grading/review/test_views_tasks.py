"""A task's page; a team that somebody makes."""

import pytest
from django.urls import reverse

from grading import bodies
from grading.models import Role, Team
from grading.review.pages import task_register
from grading.states import GroupState
from tests.factories import PATCH, make_group, make_run, make_task, make_trajectory, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def run():
    return make_run(policy="manual")


@pytest.fixture
def admin(run, client):
    user = make_user(username="ada", role=Role.ADMIN, team=run.team)
    client.force_login(user)
    return user


def html_of(answer, status: int = 200) -> str:
    assert answer.status_code == status, answer.content.decode()[-3000:]
    return answer.content.decode()


def page_of(task) -> str:
    return reverse("task", args=[task.pk])


def test_a_task_says_what_it_asks_and_stands_on(client, admin, run):
    task = make_task(
        team=run.team, key="off-by-one", statement="# It is off\n\n<b>by \x1b[31mone\x1b[0m</b>", base_commit="abc123",
        repository_url="https://git.example/x.git", reference_patch=bodies.write_bytes(PATCH),
    )  # fmt: skip
    html = html_of(client.get(page_of(task)))
    assert "&lt;b&gt;by" in html and '<span class="ansi-red">one</span>' in html
    assert "abc123" in html and "git.example/x.git" in html
    assert "never a criterion" in html and "is-add" in html


def test_a_task_without_anything_says_so(client, admin, run):
    html = html_of(client.get(page_of(make_task(team=run.team, statement=""))))
    for words in ("The job gave none", "none given", "No rollout yet", "No group yet", "Nobody quarantined it"):
        assert words in html


def test_a_task_counts_by_step_and_shows_its_newest_groups(client, admin, run, monkeypatch):
    monkeypatch.setattr(task_register, "NEWEST", 2)
    task = make_task(team=run.team)
    for step, outcomes in enumerate(("FFFF", "PF", "PPPF")):
        make_group(run=run, task=task, step=step, state=GroupState.COMPLETE, outcomes=outcomes, key=f"at-{step}")
    answer = client.get(page_of(task))
    assert [(row["step"], row["valid"], row["passed"]) for row in answer.context["steps"]] == [(2, 4, 3), (1, 2, 1)]
    assert [group.key for group in answer.context["newest_groups"]] == ["at-2", "at-1"]


def test_one_patch_with_two_outcomes_is_shown_with_both(client, admin, run):
    task = make_task(team=run.team)
    group = make_group(run=run, task=task, state=GroupState.COMPLETE, outcomes="F")
    for letter, outcome in (("Y", "P"), ("Z", "F")):
        make_trajectory(group=group, letter=letter, outcome=outcome, patch=b"same")
    html = html_of(client.get(page_of(task)))
    assert "One patch, two outcomes" in html and "flaky" in html
    assert f"{group.key}, Y" in html and f"{group.key}, Z" in html


def test_the_page_costs_the_same_for_many_groups(client, admin, run, django_assert_max_num_queries):
    task = make_task(team=run.team)
    for step in range(8):
        make_group(run=run, task=task, step=step, state=GroupState.COMPLETE, outcomes="PF")
    with django_assert_max_num_queries(20):
        html_of(client.get(page_of(task)))


def test_a_task_is_quarantined_and_released_on_its_page_with_history(client, admin, run):
    task = make_task(team=run.team)
    said = {"reason": "needs <i>the network</i>", "back": "task"}
    assert client.post(reverse("task-quarantine", args=[task.pk]), said).url == page_of(task)
    assert client.post(reverse("task-release", args=[task.pk]), {"reason": "it works", "back": "task"}).url
    html = html_of(client.get(page_of(task)))
    assert "needs &lt;i&gt;the network" in html and "it works" in html and html.count("<td>ada</td>") == 2


def test_a_team_is_made_by_an_admin_who_becomes_its_admin(client, admin):
    assert "New team" in html_of(client.get(reverse("teams")))
    answer = client.post(reverse("team-new"), {"name": "Second team", "slug": "second"})
    assert answer.url == reverse("team", args=["second"])
    assert Team.objects.get(slug="second").memberships.get().user == admin


@pytest.mark.parametrize(
    ("said", "status", "words"),
    [
        ({"name": "", "slug": "x"}, 400, "a team needs a name"),
        ({"name": "X", "slug": "Über team"}, 400, "no address for a team"),
        ({"name": "X", "slug": "taken"}, 409, "is taken by another team"),
    ],
)
def test_a_team_that_cannot_be_made_says_why_and_keeps_what_was_typed(client, admin, said, status, words):
    Team.objects.create(slug="taken", name="Taken")
    html = html_of(client.post(reverse("team-new"), said), status)
    assert words in html and f'value="{said["name"]}"' in html


def test_who_administers_no_team_makes_none(client, run):
    client.force_login(make_user(role=Role.REVIEWER, team=run.team))
    assert "New team" not in html_of(client.get(reverse("teams")))
    assert client.post(reverse("team-new"), {"name": "X", "slug": "x"}).status_code == 403
