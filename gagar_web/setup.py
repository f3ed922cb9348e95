"""First set-up: tables, the default team, the first admin."""

import secrets

from django.core.management import call_command
from django.db import transaction

from grading.models import Membership, Role, Team, User

FIRST_ADMIN = "admin"


def set_up() -> str | None:
    """Bring the tables up to date and make the first admin. Returns its password, this once, or None."""
    call_command("migrate", verbosity=0)
    with transaction.atomic():
        team, _ = Team.objects.get_or_create(slug="default", defaults={"name": "Default team"})
        if User.objects.filter(is_superuser=True).exists():
            return None
        password = secrets.token_urlsafe(12)
        admin = User.objects.create_superuser(FIRST_ADMIN, password=password)
        Membership.objects.get_or_create(team=team, user=admin, defaults={"role": Role.ADMIN})
    return password


def say(password: str | None, url: str) -> str:
    if password is None:
        return f"Gagar is at {url}  (sign in as {FIRST_ADMIN}; forgotten? manage.py changepassword {FIRST_ADMIN})"
    return f"Gagar is at {url}\nsign in as {FIRST_ADMIN} with the password {password}  (shown this once)"
