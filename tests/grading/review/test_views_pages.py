"""Lists, trajectories, tasks, teams, runs and tokens, sign-in."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from grading.models import Role
from grading.review.pages import task_register
from grading.states import GroupState
from tests.factories import make_group, make_run, make_task, make_trajectory, make_user
from tests.verdicts import add_verdict, held_group

pytestmark = pytest.mark.django_db
ADMIN = {"username": "ada", "role": Role.ADMIN}


@pytest.fixture
def run():
    return make_run(policy="manual", public_id="flash-code")


@pytest.fixture
def admin(run, client):
    user = make_user(team=run.team, **ADMIN)
    client.force_login(user)
    return user


def html_of(answer, status: int = 200) -> str:
    assert answer.status_code == status, answer.content.decode()[-3000:]
    return answer.content.decode()


# --- queue


def test_the_queue_claims_the_first_and_walks_on(client, admin, run):
    narrow, wide = (held_group(run=run, outcomes="PPF", hold_reason="policy manual") for _ in range(2))
    add_verdict(wide, {"A": 5, "B": 2})
    html = html_of(client.get(reverse("queue")))
    assert html.index(f"group-{wide.pk}") < html.index(f"group-{narrow.pk}")
    first = client.post(reverse("queue-claim-first"))
    assert first.url == reverse("group", args=[wide.pk])
    assert client.get(reverse("queue-next"), {"after": wide.pk}).url == reverse("group", args=[narrow.pk])
    assert client.get(reverse("queue"), {"claimed": "me"}).content.decode().count("data-item") == 1
    assert client.get(reverse("queue"), {"claimed": "free"}).content.decode().count("data-item") == 1
    assert "The queue is empty" in html_of(client.get(reverse("queue"), {"run": "other"}))
    assert "No group waits" in html_of(client.get(reverse("queue"), {"because": "other"}))


def test_nothing_to_claim_says_so(client, admin):
    assert "Nothing is free" in html_of(client.post(reverse("queue-claim-first"), follow=True))


def test_the_queue_costs_the_same_for_many_groups(client, admin, run):
    costs = []
    for many in (1, 6):
        for _ in range(many):
            held_group(run=run, outcomes="PPF")
        html_of(client.get(reverse("queue")))  # places of groups that were held past the policy are counted once
        with CaptureQueriesContext(connection) as queries:
            html_of(client.get(reverse("queue")))
        costs.append(len(queries))
    assert costs[0] == costs[1] <= 20


# --- groups


def test_groups_are_filtered(client, admin, run):
    plain = make_group(run=run, state=GroupState.COMPLETE, outcomes="PF", key="plain", step=3)
    corrected = held_group(run=run, outcomes="PF", key="corrected")
    add_verdict(corrected, {"A": 5}, grader="person", author=admin)
    found = {
        "": {"plain", "corrected"},
        "step=3": {"plain"},
        "state=graded": {"corrected"},
        "corrected=1": {"corrected"},
        f"task={plain.task.key}": {"plain"},
        "run=nope": set(),
        "step=x&state=x": {"plain", "corrected"},
    }
    for query, keys in found.items():
        html = html_of(client.get(f"{reverse('groups')}?{query}"))
        assert {key for key in ("plain", "corrected") if f">{key}<" in html} == keys, query


@pytest.mark.parametrize("name", ["groups", "tasks"])
def test_lists_cost_the_same_for_many_rows(client, admin, run, name, django_assert_max_num_queries):
    for n in range(6):
        held_group(run=run, outcomes="PPF", step=n)
    with django_assert_max_num_queries(13):
        html_of(client.get(reverse(name)))


def test_a_nul_in_a_filter_is_only_a_filter(client, admin):
    html_of(client.get(reverse("groups"), {"task": "\x00", "run": "\x00"}))
    html_of(client.get(reverse("tasks"), {"q": "\x00"}))


# --- trajectory


@pytest.fixture
def long(run):
    events = [{"kind": "action", "text": f"step {n}"} for n in range(250)]
    events[120] = {"kind": "edit", "text": "edit app.py", "exit_code": 1, "at": "2026-01-02T03:04:05Z"}
    events[130] = {"kind": "observation", "text": "\x1b[31mFAILED\x1b[0m \x1b]8;;http://evil\x07link\x1b]8;;\x07"}
    events[240] = {"kind": "submit", "text": "submit"}
    return held_group(run=run, outcomes="PF", events=events)


def trajectory(group, query: str = "") -> str:
    return reverse("trajectory", args=[group.pk, "A"]) + query


def test_events_come_in_pages_from_the_server(client, admin, long):
    html = html_of(client.get(trajectory(long)))
    assert "step 99" in html and "step 100" not in html and "250 events" in html
    after = re.search(r'href="([^"]+after=99)"', html)[1]
    part = html_of(client.get(f"{after}&part=events"))
    assert "step 100" in part and "<html" not in part
    assert "e120</span></a>" in html and "e240</span></a>" in html  # jumps: first edit, submit


def test_an_event_is_opened_by_its_address(client, admin, long):
    html = html_of(client.get(trajectory(long, "?at=120")))
    assert 'data-event="120"' in html and "exit 1" in html and "03:04:05" in html and "step 119" in html
    event = reverse("event", args=[long.pk, "A", 130])
    body = html_of(client.get(event, {"part": "body"}))
    assert '<span class="ansi-red">FAILED</span>' in body and "evil" not in body and "link" in body
    assert "cite_place=130" in body
    assert "<html" in html_of(client.get(event))
    assert client.get(reverse("event", args=[long.pk, "A", 250])).status_code == 404


def test_a_link_to_cite_an_event_fills_the_form(client, admin, long):
    address = reverse("group", args=[long.pk])
    query = {"right": "A", "cite_letter": "A", "cite_kind": "event", "cite_place": "120", "cite_quote": "edit app.py"}
    html = html_of(client.get(address, query))
    assert 'name="cite-1-place" data-cite="place" value="120"' in html and "edit app.py</textarea>" in html


def test_search_finds_in_one_and_in_all(client, admin, long):
    assert html_of(client.get(trajectory(long, "?q=STEP+42"))).count('class="event-row"') == 1
    assert html_of(client.get(trajectory(long, "?q=step+42&in=all"))).count('class="event-row"') == 2
    cut = html_of(client.get(trajectory(long, "?q=step&in=all")))
    assert cut.count('class="event-row"') == 200 and "200 events have these words: nothing after" in cut
    assert "Nothing found" in html_of(client.get(trajectory(long, "?q=nowhere")))


def test_a_large_event_is_cut_and_comes_whole_as_a_file(client, admin, run):
    group = held_group(run=run, outcomes="P", events=[{"kind": "observation", "text": "x" * 100_000 + "end"}])
    address = reverse("event", args=[group.pk, "A", 0])
    body = html_of(client.get(address, {"part": "body"}))
    assert "open the whole" in body and "end<" not in body and len(body) < 70_000
    whole = client.get(address, {"part": "whole"})
    assert whole.content.endswith(b"xend") and whole["Content-Disposition"].startswith("attachment")


def test_no_events_and_events_of_nothing_say_so(client, admin, run):
    group = make_group(run=run, state=GroupState.COMPLETE)
    make_trajectory(group=group, letter="A")
    make_trajectory(group=group, letter="B", events=[])
    assert "events: none given" in html_of(client.get(trajectory(group)))
    assert "no events" in html_of(client.get(reverse("trajectory", args=[group.pk, "B"])))


# --- history


def test_history_tells_who_why_from_what_to_what(client, admin, run):
    group = held_group(run=run, outcomes="PPF")
    client.post(reverse("group-leak", args=[group.pk]), {
        "letter": "B", "kind": "leak", "reason": "saw the answer",
        "cite-1-kind": "new", "cite-1-place": "app.py:2",
    })  # fmt: skip
    client.post(reverse("group-fall-back", args=[group.pk]), {"reason": "cannot tell"})
    html = html_of(client.get(reverse("history", args=[group.pk])))
    for said in ("leak B", "saw the answer", "recount", "decision 1: fallback", "cannot tell", "ada"):
        assert said in html
    for verdict in group.verdicts.all():
        page = html_of(client.get(reverse("verdict", args=[group.pk, verdict.pk])))
        assert "as it was" in page
    assert client.get(reverse("verdict", args=[group.pk, 10**9])).status_code == 404


# --- tasks


def test_tasks_tell_what_they_are_like_and_are_quarantined(client, admin, run):
    hard, shaky = make_task(team=run.team, key="hard"), make_task(team=run.team, key="shaky")
    make_group(run=run, task=hard, state=GroupState.COMPLETE, outcomes="F" * 8)
    make_group(run=run, task=shaky, state=GroupState.COMPLETE, outcomes="PF", patches=[b"same", b"same"])
    html = html_of(client.get(reverse("tasks")))
    assert "always fails" in html and "flaky" in html and "50 %" in html
    client.post(reverse("task-quarantine", args=[hard.pk]), {"reason": "needs the network"})
    html = html_of(client.get(reverse("tasks"), {"broken": "1"}))
    assert "needs the network" in html and "shaky" not in html
    assert client.post(reverse("task-release", args=[hard.pk]), {"reason": ""}).status_code == 400
    client.post(reverse("task-release", args=[hard.pk]), {"reason": "mended"})
    assert "needs the network" not in html_of(client.get(reverse("tasks")))


def test_the_numbers_of_a_task_are_those_of_its_newest_groups(client, admin, run, monkeypatch):
    monkeypatch.setattr(task_register, "NEWEST", 2)
    task, rare = make_task(team=run.team, key="long"), make_task(team=run.team, key="rare")
    for step, outcomes in enumerate(("FFFF", "PF", "PPPF")):
        make_group(run=run, task=task, step=step, state=GroupState.COMPLETE, outcomes=outcomes)
    make_group(run=run, task=rare, state=GroupState.COMPLETE, outcomes="PI")
    found = task_register.tasks_page(run.team.tasks.all(), admin, {})["rows"]
    numbers = {row["task"].key: (row["groups"], row["rollouts"], row["pass_rate"], row["rates"]) for row in found}
    assert numbers == {"long": (3, 6, pytest.approx(4 / 6), [0.5, 0.75]), "rare": (1, 1, 1.0, [1.0])}
    assert "newest 2 groups" in html_of(client.get(reverse("tasks")))
