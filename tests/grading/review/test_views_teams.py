"""Teams, runs and tokens, sign-in."""

import re

import pytest
from django.urls import reverse

from grading.models import MachineToken, Role, Run
from tests.factories import PASSWORD, make_run, make_user

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
