"""Members of a team, its runs and tokens."""

import pytest

from grading import people
from grading.errors import BadInput, Conflict
from grading.models import MachineToken, Membership, Role, Run, User
from grading.models.runs import POLICY
from tests.factories import flash, make_run, make_team, make_user

pytestmark = pytest.mark.django_db


def test_an_unknown_name_becomes_an_account_with_a_password():
    team = make_team()
    membership, password = people.add_member(team, username="ada", role=Role.REVIEWER)
    assert membership.user.check_password(password) and membership.role == Role.REVIEWER


def test_a_known_name_keeps_its_password():
    user = make_user(username="ada")
    membership, password = people.add_member(make_team(), username="ada", role=Role.VIEWER)
    assert password is None and membership.user == user


def test_twice_is_a_conflict_and_a_strange_role_or_name_is_refused():
    team = make_team()
    people.add_member(team, username="ada", role=Role.VIEWER)
    with pytest.raises(Conflict, match="member already"):
        people.add_member(team, username="ada", role=Role.ADMIN)
    with pytest.raises(BadInput):
        people.add_member(team, username="bob", role="god")
    with pytest.raises(BadInput):
        people.add_member(team, username="<b>", role=Role.VIEWER)
    assert User.objects.count() == 1


def test_a_team_keeps_its_last_admin():
    team = make_team()
    admin = Membership.objects.get(user=make_user(role=Role.ADMIN, team=team))
    for leave in (lambda: people.remove_member(admin), lambda: people.change_role(admin, role=Role.VIEWER)):
        with pytest.raises(Conflict, match="last admin"):
            leave()
    make_user(role=Role.ADMIN, team=team)
    people.remove_member(admin)
    assert team.memberships.count() == 1


def test_a_new_run_comes_with_a_token_that_works():
    user, team = make_user(), make_team()
    token = people.open_run(Run(team=team, public_id="r1", name="R", rubric=flash()), user=user)
    assert MachineToken.find(token).run.public_id == "r1"


def test_a_runs_history_says_who_opened_it_and_who_changed_its_policy():
    ada, bob = make_user(username="ada"), make_user(username="bob")
    people.open_run(Run(team=make_team(), public_id="r1", name="R", rubric=flash()), user=ada)
    run = Run.objects.get(public_id="r1")
    policy = {name: getattr(run, name) for name in POLICY}
    assert people.change_policy(run, policy=policy, user=bob) is None
    Run.objects.filter(pk=run.pk).update(paused=True)  # somebody pauses the run while bob looks at the form
    people.change_policy(run, policy=policy | {"policy": "auto", "review_deadline_s": None}, user=bob)
    opened, changed = run.events.order_by("pk")
    assert (opened.by, opened.changes["policy"], opened.changes["rubric"]) == ("ada", [None, "shadow"], [None, 1])
    assert (changed.by, changed.changes) == ("bob", {"policy": ["shadow", "auto"], "review_deadline_s": [900, None]})
    run.refresh_from_db()
    assert (run.policy, run.review_deadline_s, run.paused) == ("auto", None, True)


def test_a_new_run_has_the_grader_that_the_operator_named(settings):
    settings.GAGAR_GRADER = "external"
    people.open_run(Run(team=make_team(), public_id="r1", name="R", rubric=flash()), user=make_user())
    assert Run.objects.get(public_id="r1").grader == "external"


@pytest.mark.parametrize(("name", "purposes"), [("", ["train"]), ("job", []), ("job", ["rule"])])
def test_a_token_needs_a_name_and_known_purposes(name, purposes):
    with pytest.raises(BadInput):
        people.new_token(make_run(), name=name, purposes=purposes, user=make_user())
