"""Every address, tried by those who may not: other teams, viewers, strangers."""

import pytest
from django.urls import reverse

from grading.models import Grading, MachineToken, Role
from tests.factories import make_run, make_token, make_user
from tests.verdicts import held_group

pytestmark = pytest.mark.django_db

PAGES = ("runs", "queue", "queue-next", "groups", "tasks", "teams", "alerts", "audits", "rollouts", "calibration")
GROUP_PAGES = ("group", "history", "advantage-panel", "group-deliveries", "group-news")
CANDIDATE_PAGES = ("trajectory", "trajectory-log", "events-print", "rollout-history", "group-file", "event")
RUN_PAGES = (
    "monitor", "run-series", "run-series-csv", "run-pause", "run-alerts", "run-settings", "run-reviews", "grader",
)  # fmt: skip
GROUP_POSTS = (
    "claim", "release", "draft", "correct", "approve", "fall-back", "leak", "broken", "review", "count", "decline",
    "order", "comment",
)  # fmt: skip


class Address:
    """A row of the table: name, address, and the role that its POST asks for."""

    def __init__(self, name: str, *args, post: str = ""):
        self.name, self.url, self.post = name, reverse(name, args=args), post


def table(group) -> list[Address]:
    token, _ = make_token(run=group.run)
    team, run = group.run.team, group.run.public_id
    member = make_user(role=Role.VIEWER, team=team).memberships.get()
    verdict = group.verdicts.last().pk
    rows = [Address(name, group.pk) for name in GROUP_PAGES]
    rows += [Address("verdict", group.pk, verdict)]
    rows += [Address(name, group.pk, "A") for name in CANDIDATE_PAGES[:4]]
    rows += [Address(name, group.pk, "A", 0) for name in CANDIDATE_PAGES[4:]]
    rows += [Address("events", group.pk, "A", kind) for kind in ("txt", "ndjson")]
    grading = Grading.objects.create(group=group, grader="static").pk
    rows += [Address("grading", grading), Address("grading-print", grading), Address("grading-events", grading, "txt")]
    rows += [Address(name, run) for name in RUN_PAGES]
    rows += [Address("team", team.slug), Address("reviewer", member.user_id), Address("task", group.task.pk)]
    rows += [Address(f"group-{action}", group.pk, post=Role.REVIEWER) for action in GROUP_POSTS]
    rows += [Address(f"task-{action}", group.task.pk, post=Role.REVIEWER) for action in ("quarantine", "release")]
    rows += [
        Address(name, run, post=Role.ADMIN)
        for name in ("token-new", "run-pause-switch", "webhook-secret", "webhook-test")
    ]
    rows += [Address("alert-rule", run, "entropy", post=Role.ADMIN)]
    rows += [Address("token-revoke", run, token.pk, post=Role.ADMIN), Address("member-add", team.slug, post=Role.ADMIN)]
    rows += [Address(name, team.slug, member.pk, post=Role.ADMIN) for name in ("member-role", "member-remove")]
    return rows


@pytest.fixture
def group():
    return held_group(outcomes="PF", events=[{"kind": "action", "text": "ls"}])


def test_people_of_another_team_find_nothing_behind_any_address(client, group):
    client.force_login(make_user(role=Role.ADMIN))
    for row in table(group):
        answer = client.post(row.url, {"reason": "x"}) if row.post else client.get(row.url)
        assert answer.status_code == 404, f"{row.name}: {answer.status_code}"
    assert MachineToken.objects.get().revoked_at is None


def test_a_stranger_is_sent_to_the_sign_in_everywhere(client, group):
    for row in [*table(group), *(Address(name) for name in PAGES)]:
        answer = client.post(row.url) if row.post else client.get(row.url)
        assert (answer.status_code, answer.url.split("?")[0]) == (302, reverse("login")), row.name


def test_a_viewer_reads_every_page_and_may_post_nowhere(client, group):
    client.force_login(make_user(role=Role.VIEWER, team=group.run.team))
    for row in table(group):
        if row.name == "trajectory-log":
            continue  # this group has none
        answer = client.post(row.url, {"reason": "x"}) if row.post else client.get(row.url)
        assert answer.status_code == (403 if row.post else 200), f"{row.name}: {answer.status_code}"
    for name in PAGES:
        assert client.get(reverse(name)).status_code in (200, 302), name


def test_a_reviewer_elsewhere_is_only_a_viewer_here(client, group):
    user = make_user(role=Role.VIEWER, team=group.run.team)
    user.memberships.create(team=make_run().team, role=Role.ADMIN)
    client.force_login(user)
    for row in table(group):
        if row.post:
            assert client.post(row.url, {"reason": "x"}).status_code == 404, row.name
    settings = reverse("run-settings", args=[group.run.public_id])
    assert client.post(settings, {"policy": "auto"}).status_code == 404


def test_a_member_without_any_role_is_refused(client):
    client.force_login(make_user())
    assert client.get(reverse("queue")).status_code == 403


def test_lists_show_only_rows_of_ones_teams(client, group):
    client.force_login(make_user(role=Role.ADMIN))
    for name in PAGES:
        html = client.get(reverse(name), follow=True).content.decode()
        assert group.task.key not in html and group.run.public_id not in html, name


def test_wrong_methods_are_refused(client, group):
    client.force_login(make_user(role=Role.ADMIN, team=group.run.team))
    for row in table(group):
        if row.post:
            # What a refused correction's page links to leads back to the group.
            expected = 302 if row.name in ("group-correct", "group-review", "group-order") else 405
            assert client.get(row.url).status_code == expected, row.name


def test_no_page_may_stand_in_a_frame_of_another_site(client):
    said = client.get("/sign-in").headers
    assert said["X-Frame-Options"] == "DENY" and "frame-ancestors 'none'" in said["Content-Security-Policy"]
    assert said["X-Content-Type-Options"] == "nosniff" and said["Referrer-Policy"] == "same-origin"
