"""Steps about teams and their members, runs and machine tokens. A team always keeps an admin."""

import re
import secrets

from django.conf import settings
from django.db import transaction

from grading.errors import BadInput, Conflict
from grading.models import MachineToken, Membership, Role, Run, RunEvent, Team, User
from grading.models.people import PURPOSES
from grading.models.runs import POLICY

NAME = re.compile(r"[\w.@+-]{1,150}")
SLUG = re.compile(r"[a-z0-9_-]{1,60}")


@transaction.atomic
def open_team(*, name: str, slug: str, user) -> Team:
    """A new team; who makes it is its first admin."""
    name, slug = name.strip(), slug.strip()
    if not 1 <= len(name) <= 100:
        raise BadInput("a team needs a name", got=f"{len(name)} characters", expected="1 to 100")
    if not SLUG.fullmatch(slug):
        raise BadInput(
            "no address for a team", got=slug[:80] or "nothing", expected="1 to 60 small letters, digits, - and _"
        )
    team, is_new = Team.objects.get_or_create(slug=slug, defaults={"name": name})
    if not is_new:
        raise Conflict(f"the address {slug} is taken by another team: choose another one")
    Membership.objects.create(team=team, user=user, role=Role.ADMIN)
    return team


@transaction.atomic
def add_member(team: Team, *, username: str, role: str) -> tuple[Membership, str | None]:
    """Add somebody by name. An unknown name becomes an account; its password comes back, this once."""
    _check_role(role)
    if not NAME.fullmatch(username):
        raise BadInput(
            "no name for an account", got=username[:80] or "nothing", expected="letters, digits and . @ + - _"
        )
    user, password = User.objects.filter(username=username).first(), None
    if user is None:
        password = secrets.token_urlsafe(12)
        user = User.objects.create_user(username, password=password)
    membership, is_new = Membership.objects.get_or_create(team=team, user=user, defaults={"role": role})
    if not is_new:
        raise Conflict(f"{username} is a member already, as {membership.role}: set the role in the list")
    return membership, password


@transaction.atomic
def change_role(membership: Membership, *, role: str) -> None:
    _check_role(role)
    _keep_an_admin(membership, stays=role == Role.ADMIN)
    Membership.objects.filter(pk=membership.pk).update(role=role)


@transaction.atomic
def remove_member(membership: Membership) -> None:
    _keep_an_admin(membership, stays=False)
    Membership.objects.filter(pk=membership.pk).delete()


def _keep_an_admin(membership: Membership, *, stays: bool) -> None:
    """Admins are counted under the team's lock: of two who leave at once one stays."""
    Team.objects.select_for_update().get(pk=membership.team_id)
    admins = Membership.objects.filter(team=membership.team_id, role=Role.ADMIN)
    if not stays and not admins.exclude(pk=membership.pk).exists() and admins.exists():
        raise Conflict(f"{membership.user.username} is the last admin of {membership.team}: name another one first")


def _check_role(role: str) -> None:
    if role not in Role.values:
        raise BadInput("no such role", got=role[:40] or "nothing", expected=", ".join(Role.values))


@transaction.atomic
def open_run(run: Run, *, user) -> str:
    """Save a new run, graded as this server is set up to, and make its first token, which comes back this once."""
    run.created_by, run.grader = user, settings.GAGAR_GRADER
    run.save()
    record_new(run, by=user.username)
    return MachineToken.issue(run, name="job", by=user)[1]


def record_new(run: Run, *, by: str) -> RunEvent:
    """The first row of a run's history: how it was set up."""
    said = {name: getattr(run, name) for name in ("method", "grader", "mask_truncated", "neutral_when_equal", *POLICY)}
    said["rubric"] = run.rubric.number
    return RunEvent.objects.create(run=run, by=by, changes={name: [None, value] for name, value in said.items()})


@transaction.atomic
def change_policy(run: Run, *, policy: dict, user) -> RunEvent | None:
    """Set the policy's fields, and say in the run's history who changed what; None where nothing changed."""
    stored = Run.objects.select_for_update(no_key=True).get(pk=run.pk)
    changes = {name: [old, policy[name]] for name in POLICY if (old := getattr(stored, name)) != policy[name]}
    if not changes:
        return None
    Run.objects.filter(pk=run.pk).update(**{name: new for name, (_, new) in changes.items()})
    return RunEvent.objects.create(run=stored, by=user.username, changes=changes)


@transaction.atomic
def change_grader(run: Run, *, grader: str, grading: dict, user) -> RunEvent | None:
    """Set who grades the run and how, and say so in its history; None where nothing changed."""
    stored = Run.objects.select_for_update(no_key=True).get(pk=run.pk)
    changes = {} if stored.grader == grader else {"grader": [stored.grader, grader]}
    for name in sorted({*stored.grading, *grading}):
        old, new = stored.grading.get(name), grading.get(name)
        if old != new:
            changes[name] = ["the default" if old is None else old, "the default" if new is None else new]
    if not changes:
        return None
    Run.objects.filter(pk=run.pk).update(grader=grader, grading=grading)
    return RunEvent.objects.create(run=stored, by=user.username, changes=changes)


def new_token(run: Run, *, name: str, purposes: list[str], user) -> str:
    """Make a token; it comes back this once."""
    unknown = [purpose for purpose in purposes if purpose not in PURPOSES]
    if unknown or not purposes:
        raise BadInput("a token needs purposes", got=", ".join(unknown)[:80] or "none", expected=" or ".join(PURPOSES))
    if not name or len(name) > 100:
        raise BadInput("a token needs a name", got=f"{len(name)} characters", expected="1 to 100")
    return MachineToken.issue(run, name=name, purposes=purposes, by=user)[1]


@transaction.atomic
def new_webhook_secret(run: Run, *, user) -> RunEvent:
    """Another secret signs the run's webhook from now on; its history says who made it."""
    stored = Run.objects.select_for_update(no_key=True).get(pk=run.pk)
    Run.objects.filter(pk=run.pk).update(webhook_n=stored.webhook_n + 1)
    changes = {"webhook_secret": [stored.webhook_n, stored.webhook_n + 1]}
    return RunEvent.objects.create(run=stored, by=user.username, changes=changes)
