"""Lists, trajectories, tasks, teams, runs and tokens, sign-in."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from grading.models import MachineToken, Role, Run
from grading.review.pages import task_register
from grading.states import GroupState
from tests.factories import PASSWORD, make_group, make_run, make_task, make_trajectory, make_user
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
        with CaptureQueriesContext(connection) as queries:
            html_of(client.get(reverse("queue")))
        costs.append(len(queries))
    assert costs[0] == costs[1] < 20


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
    with django_assert_max_num_queries(12):
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
    assert 'name="cite-1-place" data-cite="place" value="120"' in html and 'value="edit app.py"' in html


def test_search_finds_in_one_and_in_all(client, admin, long):
    assert html_of(client.get(trajectory(long, "?q=STEP+42"))).count('class="event-row"') == 1
    assert html_of(client.get(trajectory(long, "?q=step+42&in=all"))).count('class="event-row"') == 2
    cut = html_of(client.get(trajectory(long, "?q=step&in=all")))
    assert cut.count('class="event-row"') == 200 and "the first 200 shown" in cut
    assert "Nothing found" in html_of(client.get(trajectory(long, "?q=nowhere")))


def test_a_large_event_is_cut_and_comes_whole_as_a_file(client, admin, run):
    group = held_group(run=run, outcomes="P", events=[{"kind": "observation", "text": "x" * 100_000 + "end"}])
    address = reverse("event", args=[group.pk, "A", 0])
    body = html_of(client.get(address, {"part": "body"}))
    assert "open the whole" in body and "end<" not in body and len(body) < 70_000
    whole = client.get(address, {"part": "whole"})
    assert whole.content.endswith(b"xend") and whole["Content-Disposition"].startswith("attachment")


def test_a_log_is_a_file_and_never_a_page(client, admin, run):
    group = make_group(run=run, state=GroupState.COMPLETE)
    make_trajectory(group=group, letter="A", log=b"<script>alert(1)</script>")
    answer = client.get(reverse("trajectory-log", args=[group.pk, "A"]))
    assert answer.content == b"<script>alert(1)</script>" and answer["Content-Type"].startswith("text/plain")
    assert answer["X-Content-Type-Options"] == "nosniff" and answer["Content-Disposition"].startswith("attachment")


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


# --- teams, runs, tokens


def test_a_new_member_gets_a_password_that_is_shown_once(client, admin, run):
    team = reverse("team", args=[run.team.slug])
    client.post(reverse("member-add", args=[run.team.slug]), {"username": "newcomer", "role": "reviewer"})
    password = re.search(r"first password is <code>([^<]+)</code>", html_of(client.get(team)))[1]
    assert password not in html_of(client.get(team))
    client.post(reverse("logout"))
    said = client.post(reverse("login"), {"username": "newcomer", "password": password})
    assert said.url == reverse("runs")


def test_roles_change_and_members_go(client, admin, run):
    other = make_user(role=Role.VIEWER, team=run.team).memberships.get()
    client.post(reverse("member-role", args=[run.team.slug, other.pk]), {"role": "reviewer"})
    other.refresh_from_db()
    assert other.role == Role.REVIEWER
    client.post(reverse("member-remove", args=[run.team.slug, other.pk]))
    assert run.team.memberships.count() == 1
    last = admin.memberships.get()
    assert client.post(reverse("member-remove", args=[run.team.slug, last.pk])).status_code == 409


RUN = {
    "public_id": "new-run", "name": "New", "method": "redistribute", "policy": "sampled", "hold_share": "0.25",
    "hold_budget": "4", "collect_deadline_s": "3600", "grading_deadline_s": "", "review_deadline_s": "90",
}  # fmt: skip


def test_a_run_is_made_with_a_token_that_is_shown_once(client, admin, run):
    html_of(client.get(reverse("run-new"), {"team": run.team.slug}))
    made = client.post(reverse("run-new"), RUN | {"team": run.team.pk, "rubric": run.rubric.pk})
    assert made.url == reverse("run-settings", args=["new-run"])
    token = re.search(r'class="token">([^<]+)<', html_of(client.get(made.url)))[1]
    assert token not in html_of(client.get(made.url))
    found = MachineToken.find(token)
    assert (found.run.public_id, found.run.hold_share, found.run.grading_deadline_s) == ("new-run", 0.25, None)


def test_a_run_of_another_team_or_with_wrong_values_is_not_made(client, admin, run):
    foreign = RUN | {"team": make_run().team.pk, "rubric": run.rubric.pk}
    html_of(client.post(reverse("run-new"), foreign), 400)
    wrong = RUN | {"team": run.team.pk, "rubric": run.rubric.pk, "hold_share": "2", "public_id": "a b"}
    html_of(client.post(reverse("run-new"), wrong), 400)
    assert not Run.objects.filter(name="New").exists()


def test_policy_is_saved_and_wrong_values_come_back(client, admin, run):
    settings = reverse("run-settings", args=[run.public_id])
    fields = {
        key: RUN[key] for key in ("policy", "hold_share", "hold_budget", "collect_deadline_s", "review_deadline_s")
    }
    assert client.post(settings, fields).status_code == 302
    run.refresh_from_db()
    assert (run.policy, run.review_deadline_s) == ("sampled", 90)
    assert "Ensure this value" in html_of(client.post(settings, fields | {"hold_budget": "-1"}), 400)
    said = html_of(client.get(settings))
    assert "When a valid verdict counts: manual → sampled" in said and "Grading deadline: 900 → none" in said
    assert run.events.get().by == admin.username, "what was refused leaves no row"
    html_of(client.post(settings, fields | {"hold_share": "7"}), 400)


def test_tokens_are_made_and_revoked(client, admin, run):
    settings = reverse("run-settings", args=[run.public_id])
    client.post(reverse("token-new", args=[run.public_id]), {"name": "job 2", "purposes": ["ingest", "train"]})
    token = re.search(r'class="token">([^<]+)<', html_of(client.get(settings)))[1]
    row = MachineToken.find(token)
    client.post(reverse("token-revoke", args=[run.public_id, row.pk]))
    assert MachineToken.find(token) is None
    assert client.post(reverse("token-new", args=[run.public_id]), {"name": "x"}).status_code == 400


# --- sign-in


def test_sign_in_goes_on_to_where_one_wanted(client, run):
    make_user(team=run.team, **ADMIN)
    wanted = client.get(reverse("queue")).url
    html_of(client.get(wanted))
    said = client.post(wanted, {"username": "ada", "password": PASSWORD, "next": reverse("queue")})
    assert said.url == reverse("queue")
    assert client.get("/").url == reverse("runs")
    assert client.post(reverse("logout")).url == reverse("login")


def test_five_wrong_passwords_pause_the_name(client, run):
    make_user(team=run.team, **ADMIN)
    answers = [client.post(reverse("login"), {"username": "ada", "password": "wrong"}) for _ in range(6)]
    assert answers[0].status_code == 200 and "do not fit" in answers[0].content.decode()
    assert answers[-1].status_code == 429 and "Too many tries" in answers[-1].content.decode()
    assert client.post(reverse("login"), {"username": "ada", "password": PASSWORD}).status_code == 429


def test_a_password_is_changed(client, admin):
    fields = {"old_password": PASSWORD, "new_password1": "another long one 77", "new_password2": "another long one 77"}
    html_of(client.get(reverse("password_change")))
    html_of(client.post(reverse("password_change"), fields, follow=True))
    admin.refresh_from_db()
    assert admin.check_password("another long one 77")


def test_an_address_that_is_none_is_said_to_people_and_to_machines(client, admin):
    assert "There is nothing here" in html_of(client.get("/nowhere"), 404)
    assert client.get("/api/v1/nowhere").json()["what"]
