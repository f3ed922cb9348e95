"""The grader page of a run, its settings, a grading's transcript."""

from dataclasses import asdict

import pytest
from django.urls import reverse

from grading import bodies
from grading.grader.options import GradingOptions
from grading.models import Check, Grading, Role
from grading.review.pages import bounded
from grading.states import GroupState
from tests.factories import make_group, make_run, make_user
from tests.verdicts import add_verdict, held_group

pytestmark = pytest.mark.django_db
EVENTS = [
    {"kind": "system", "text": "You grade."},
    {"kind": "message", "role": "assistant", "text": "I read <script>alert(1)</script> first"},
    {"kind": "action", "tool": "read_patch", "args": {"candidate": "A"}},
]


@pytest.fixture
def run():
    return make_run(policy="manual", public_id="flash-code", grader="agentic")


@pytest.fixture
def admin(run, client):
    user = make_user(username="ada", role=Role.ADMIN, team=run.team)
    client.force_login(user)
    return user


def make_grading(group, **fields) -> Grading:
    stored = bodies.write_events(EVENTS)
    fields = {"grader": "agentic", "model": "secret-model", "transcript": stored.sha256, "event_count": 3} | fields
    return Grading.objects.create(group=group, **fields)


def html_of(answer, status: int = 200) -> str:
    assert answer.status_code == status, answer.content.decode()[-3000:]
    return answer.content.decode()


def test_a_run_without_gradings_says_so(client, admin, run):
    assert "No gradings here" in html_of(client.get(reverse("grader", args=[run.public_id])))


def test_figures_and_reasons_are_of_the_gradings(client, admin, run):
    group = held_group(run=run, outcomes="PPF")
    verdict = group.verdicts.get()
    make_grading(group, state="valid", verdict=verdict, turns=4, duration_s=2.5, cost_usd=0.25, flips=0.5)
    problems = [{"where": "candidates[3].scores.approach", "what": "A has no valid score", "got": "9", "expected": "1"}]
    for _ in range(2):
        make_grading(group, state="invalid", turns=6, duration_s=4.5, problems=problems)
    make_grading(group, state="failed", problems=[{"where": "", "what": "the endpoint answered 500"}])
    html = html_of(client.get(reverse("grader", args=[run.public_id])))
    assert "1 of 4" in html and "25.0%" in html.replace("\u202f", "").replace(" %", "%")
    assert "scores missing or out of 1 to 5" in html and "the endpoint answered 500" in html
    assert html.count("data-item") == 4
    only = html_of(client.get(reverse("grader", args=[run.public_id]), {"state": "failed"}))
    assert only.count("data-item") == 1


def test_the_page_costs_the_same_for_many_gradings(client, admin, run, django_assert_max_num_queries):
    for _ in range(4):
        group = held_group(run=run, outcomes="PPF")
        make_grading(group, state="valid", verdict=group.verdicts.get())
    with django_assert_max_num_queries(20):
        client.get(reverse("grader", args=[run.public_id]))


def test_of_many_gradings_the_newest_are_counted_and_the_page_says_so(client, admin, run, monkeypatch):
    group = make_group(run=run, state=GroupState.GRADED)
    for _ in range(4):
        make_grading(group, state="valid")
    assert "older ones stand" not in html_of(client.get(reverse("grader", args=[run.public_id])))
    monkeypatch.setattr(bounded, "COUNTED", 2)
    html = html_of(client.get(reverse("grader", args=[run.public_id])))
    assert "the newest 2; older ones stand in their group’s history" in html


def test_the_grader_and_its_options_are_changed_with_a_history_row(client, admin, run):
    posted = {"grader": "single_pass", "orders": "3", "max_cost_usd": "0.5", "orders_share": "", "checks": "on"}
    answer = client.post(reverse("grader-change", args=[run.public_id]), posted)
    assert answer.status_code == 302, answer.content.decode()[-2000:]
    run.refresh_from_db()
    assert (run.grader, run.grading) == ("single_pass", {"orders": 3, "max_cost_usd": 0.5})
    changes = run.events.order_by("-pk").first().changes
    assert changes["grader"] == ["agentic", "single_pass"] and changes["orders"] == ["the default", 3]
    assert "single_pass" in html_of(client.get(reverse("run-settings", args=[run.public_id])))


def test_a_wrong_option_is_said_at_its_field_and_changes_nothing(client, admin, run):
    answer = client.post(reverse("grader-change", args=[run.public_id]), {"grader": "agentic", "orders": "99"})
    assert "expected a whole number from 1 to 8" in html_of(answer, 400)
    run.refresh_from_db()
    assert run.grading == {}


def test_a_viewer_may_look_and_not_change(client, run):
    client.force_login(make_user(role=Role.VIEWER, team=run.team))
    assert "Change the grader" not in html_of(client.get(reverse("grader", args=[run.public_id])))
    assert client.post(reverse("grader-change", args=[run.public_id]), {"grader": "static"}).status_code == 403
    client.force_login(make_user(role=Role.ADMIN))
    assert client.get(reverse("grader", args=[run.public_id])).status_code == 404


def test_a_transcript_reads_like_a_trajectory_and_hides_the_model_until_the_decision(client, admin, run):
    group = held_group(run=run, outcomes="PPF")
    grading = make_grading(group, state="valid", verdict=group.verdicts.get(), order=["B", "A"])
    address = reverse("grading", args=[grading.pk])
    assert f'"{address}">how the grader got there' in html_of(
        client.get(reverse("verdict", args=[group.pk, grading.verdict_id]))
    )
    html = html_of(client.get(address, {"at": 1}))
    assert "read_patch" in html or "candidate" in html
    assert "&lt;script&gt;" in html and "<script>alert" not in html
    assert "secret-model" not in html and "B A" in html
    body = html_of(client.get(reverse("grading-event", args=[grading.pk, 1]), {"part": "body"}))
    assert "&lt;script&gt;" in body
    whole = client.get(reverse("grading-event", args=[grading.pk, 1]), {"part": "whole"})
    assert whole["Content-Disposition"].startswith("attachment") and b"<script>" in whole.content
    assert client.get(reverse("grading-event", args=[grading.pk, 9])).status_code == 404


def test_the_model_is_named_once_the_group_is_decided(client, admin, run):
    group = make_group(run=run, state=GroupState.DECIDED, outcomes="PF")
    grading = make_grading(group, state="valid", verdict=add_verdict(group))
    assert "secret-model" in html_of(client.get(reverse("grading", args=[grading.pk])))


def test_checks_of_a_grading_are_listed_with_their_output_as_a_download(client, admin, run):
    group = held_group(run=run, outcomes="PPF")
    grading = make_grading(group, state="valid", verdict=group.verdicts.get())
    check = Check.objects.create(
        group=group, trajectory=group.trajectories.get(letter="A"), grading=grading, name="check:1", key="0" * 64,
        asked={"argv": ["python3", "-c", "print(1)"]}, sandbox="bubblewrap", outcome="passed", duration_s=0.1,
        output=bodies.write_bytes(b"<b>1</b>"), output_bytes=8,
    )  # fmt: skip
    html = html_of(client.get(reverse("grading", args=[grading.pk])))
    assert "check:1" in html and "of A" in html and "passed" in html
    output = client.get(reverse("check-output", args=[group.pk, check.pk]), {"part": "whole"})
    assert output.content == b"<b>1</b>" and output["Content-Type"].startswith("text/plain")


def test_options_that_cannot_be_read_are_set_right_on_the_page(client, admin, run):
    run.grading = {"model": "gpt-5"}
    run.save()
    html_of(client.get(reverse("grader", args=[run.public_id])))
    fields = {name: value for name, value in asdict(GradingOptions()).items() if value is not None}
    answer = client.post(reverse("grader-change", args=[run.public_id]), {"grader": "agentic", **fields})
    run.refresh_from_db()
    assert answer.status_code == 302 and run.grading == {}


def test_the_list_says_how_to_set_an_endpoint_right(client, admin, run):
    problem = {"where": "", "what": "the host refused the call", "got": "HTTP 401: no", "expected": "GAGAR_GRADER_KEY"}
    make_grading(held_group(run=run, outcomes="PPF"), state="failed", retries=2, problems=[problem])
    html = html_of(client.get(reverse("grader", args=[run.public_id])))
    assert "HTTP 401: no, expected GAGAR_GRADER_KEY" in html
    assert "66.7" in html, "of three calls two were repeated"


def test_a_grading_in_several_orders_shows_each_of_them(client, admin, run):
    group = held_group(run=run, outcomes="PPF")
    grading = make_grading(group, state="valid", verdict=group.verdicts.get(), order=[["B", "A"], ["A", "B"]])
    assert "B A / A B" in html_of(client.get(reverse("grading", args=[grading.pk])))


def test_problems_name_letters_until_the_group_is_decided_and_never_ids_before(client, admin, run):
    group = held_group(run=run, outcomes="PPF")
    ids = dict(group.trajectories.values_list("letter", "external_id"))
    problem = {"where": "order.T1", "what": f"{ids['B']} is ranked in T1", "got": f"{ids['A']}", "expected": "T2"}
    grading = make_grading(group, state="invalid", problems=[problem])
    for address in (reverse("grader", args=[run.public_id]), reverse("grading", args=[grading.pk])):
        html = html_of(client.get(address))
        assert "B is ranked in T1" in html and not [id for id in ids.values() if id in html], address


def test_the_group_page_asks_for_another_grading_where_one_could_count_or_be_read(client):
    group = held_group(outcomes="PPF")
    url = reverse("group", args=[group.pk])
    client.force_login(make_user(role=Role.VIEWER, team=group.run.team))
    assert reverse("grade-again", args=[group.pk]) not in client.get(url).content.decode()
    client.force_login(make_user(role=Role.REVIEWER, team=group.run.team))
    assert reverse("grade-again", args=[group.pk]) in client.get(url).content.decode()
    filtered = make_group(run=group.run, outcomes="PP", state="decided", end_reason="filtered_all_passed")
    assert "Grade again" not in client.get(reverse("group", args=[filtered.pk])).content.decode()
