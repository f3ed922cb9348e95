"""Who may do what: users in teams by role, machines by token and purpose."""

import hashlib
import secrets

from django.contrib.auth.models import AbstractUser
from django.db import models

from grading import clock
from grading.models.rows import team_rows

PURPOSES = ("ingest", "train", "read")


class User(AbstractUser):
    @property
    def name(self) -> str:
        return self.get_full_name() or self.username

    def may(self, role: str, team) -> bool:
        return self.is_superuser or self.memberships.filter(team=team, role__in=Role.at_least(role)).exists()


class Role(models.TextChoices):
    VIEWER = "viewer"
    REVIEWER = "reviewer"
    ADMIN = "admin"

    @classmethod
    def at_least(cls, role: str) -> list[str]:
        return cls.values[cls.values.index(role) :]


class Team(models.Model):
    slug = models.SlugField(max_length=60, unique=True)
    name = models.CharField(max_length=100)

    objects = team_rows("pk").as_manager()

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    team = models.ForeignKey(Team, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role)

    objects = team_rows("team").as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "user"], name="one_role_per_team")]


def digest_of(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


class MachineToken(models.Model):
    """A job's key to one run. Only its digest is stored; the token itself is shown once."""

    run = models.ForeignKey("grading.Run", models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    purposes = models.JSONField(default=list)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    revoked_at = models.DateTimeField(null=True)

    objects = team_rows("run__team", "run").as_manager()

    is_authenticated = True  # Django's word for "not anonymous", asked by REST permissions

    @classmethod
    def issue(cls, run, *, name: str, purposes=("ingest", "train"), by=None) -> tuple["MachineToken", str]:
        """A new row, and the token that is shown this once."""
        token = f"gagar_{secrets.token_urlsafe(32)}"
        row = cls.objects.create(run=run, name=name, purposes=sorted(purposes), digest=digest_of(token), created_by=by)
        return row, token

    @classmethod
    def find(cls, token: str) -> "MachineToken | None":
        return cls.objects.select_related("run__team").filter(digest=digest_of(token), revoked_at=None).first()

    def may(self, purpose: str) -> bool:
        return purpose in self.purposes

    def revoke(self) -> None:
        MachineToken.objects.filter(pk=self.pk, revoked_at=None).update(revoked_at=clock.now())
