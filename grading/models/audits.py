"""A quality audit: rollouts of several methods pooled by task, judged blind. Who made what is told at the reveal."""

import secrets
from datetime import timedelta

from django.db import models, transaction
from django.db.models import F, Q

from grading import clock
from grading.errors import LeaseLost
from grading.models.rows import Frozen, FrozenRows, TeamRows, team_rows

PERSON = "person"
MOST_PER_ARM = 3  # rollouts of a method in one group, as in the paper


def new_code() -> str:
    """A group's name in addresses: drawn, so that it says nothing."""
    return secrets.token_hex(6)


class Audit(models.Model):
    """One comparison. Its name and its arms are shown once it is revealed; until then it is a number."""

    team = models.ForeignKey("grading.Team", models.PROTECT, related_name="audits")
    name = models.CharField(max_length=120)
    rubric = models.ForeignKey("grading.RubricVersion", models.PROTECT, related_name="+")
    grader = models.CharField(max_length=60)  # person, a grader of ours, or the name of a program of the team's own
    model = models.CharField(max_length=120, blank=True)
    per_arm = models.PositiveSmallIntegerField(default=MOST_PER_ARM)
    seed = models.PositiveIntegerField()
    windows = models.JSONField(default=list)  # checkpoints: [[first step, last step], …]; [] = one of all steps
    left_out = models.JSONField(default=dict)  # why tasks are not in it -> how many
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey("grading.User", models.SET_NULL, null=True, related_name="+")
    revealed_at = models.DateTimeField(null=True)
    revealed_by = models.CharField(max_length=150, blank=True)
    reveal_reason = models.CharField(max_length=200, blank=True)  # why before the end; "" = it was finished

    objects = team_rows("team").as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(per_arm__gte=1, per_arm__lte=MOST_PER_ARM), name="audit_rollouts_of_an_arm"
            ),
        ]

    def __str__(self) -> str:
        return f"audit {self.pk}"

    @property
    def title(self) -> str:
        """Its number, until it is revealed: a name that somebody gave it may say what is compared."""
        return self.name if self.is_revealed else f"Audit {self.pk}"

    @property
    def is_revealed(self) -> bool:
        return self.revealed_at is not None

    @property
    def by_person(self) -> bool:
        return self.grader == PERSON


class AuditArm(models.Model):
    """What is compared: a run, or some steps of it."""

    audit = models.ForeignKey(Audit, models.CASCADE, related_name="arms")
    number = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=120)
    run = models.ForeignKey("grading.Run", models.PROTECT, related_name="+")
    first_step = models.PositiveIntegerField(null=True)
    last_step = models.PositiveIntegerField(null=True)

    objects = team_rows("audit__team").as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["audit", "number"], name="arms_are_numbered")]
        ordering = ["number"]


class AuditGroupRows(TeamRows):
    team_path = "audit__team"

    def free(self, now):
        """Waiting, or left by somebody whose lease has run out."""
        left = Q(state=AuditGroup.State.GRADING, claimed_until__lt=now)
        return self.filter(Q(state=AuditGroup.State.WAITING) | left, audit__revealed_at=None)


class AuditGroup(models.Model):
    """Rollouts of one task, of all arms, in a drawn order under drawn letters."""

    class State(models.TextChoices):
        WAITING = "waiting"
        GRADING = "grading"
        DONE = "done"
        FAILED = "failed"  # the grader gave no valid verdict

    audit = models.ForeignKey(Audit, models.CASCADE, related_name="groups")
    code = models.SlugField(max_length=20, unique=True, default=new_code)
    task = models.ForeignKey("grading.Task", models.PROTECT, related_name="+")
    window = models.PositiveSmallIntegerField(default=0)
    place = models.PositiveIntegerField()  # drawn: the order of judging says nothing of steps
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    claimed_until = models.DateTimeField(null=True)
    claimed_by = models.CharField(max_length=150, blank=True)
    fencing = models.PositiveIntegerField(default=0)
    attempts = models.PositiveIntegerField(default=0)

    objects = AuditGroupRows.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["audit", "place"], name="audit_groups_are_ordered"),
            models.UniqueConstraint(fields=["audit", "task", "window"], name="one_audit_group_per_task_and_window"),
        ]
        indexes = [models.Index(fields=["state", "id"], name="audit_group_by_state")]
        ordering = ["place"]

    def __str__(self) -> str:
        return f"group {self.place + 1} of audit {self.audit_id}"

    def claim(self, *, by: str, lease_s: float) -> bool:
        """Take the group. False when somebody else holds it.

        Locked, then looked at: an UPDATE that joins the audit would let a second worker through on PostgreSQL.
        """
        now = clock.now()
        with transaction.atomic():
            row = AuditGroup.objects.select_for_update(of=("self",)).select_related("audit").get(pk=self.pk)
            is_free = row.state == self.State.WAITING or row.is_left(now)
            if is_free and not row.audit.is_revealed:
                AuditGroup.objects.filter(pk=self.pk).update(
                    state=self.State.GRADING,
                    claimed_until=now + timedelta(seconds=lease_s),
                    claimed_by=by,
                    fencing=F("fencing") + 1,
                    attempts=F("attempts") + 1,
                )
        self.refresh_from_db()
        return is_free and not row.audit.is_revealed

    def is_left(self, now) -> bool:
        """Whether its lease has run out."""
        return self.state == self.State.GRADING and self.claimed_until is not None and self.claimed_until < now

    def keep_claim(self, *, fencing: int, lease_s: float) -> None:
        """The heartbeat of a long grading. Raises LeaseLost when another worker took over."""
        ours = AuditGroup.objects.filter(pk=self.pk, state=self.State.GRADING, fencing=fencing)
        if not ours.update(claimed_until=clock.now() + timedelta(seconds=lease_s)):
            raise LeaseLost(f"{self} is no longer claimed with token {fencing}")


class AuditCandidate(Frozen):
    """Which arm's rollout stands behind a letter: the one row that must not be read before the reveal."""

    group = models.ForeignKey(AuditGroup, models.CASCADE, related_name="candidates")
    arm = models.ForeignKey(AuditArm, models.PROTECT, related_name="candidates")
    trajectory = models.ForeignKey("grading.Trajectory", models.PROTECT, related_name="+")
    letter = models.CharField(max_length=3)
    passed = models.BooleanField()  # as it counted when the audit was made

    objects = type("AuditCandidateRows", (FrozenRows,), {"team_path": "group__audit__team"}).as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["group", "letter"], name="one_letter_per_audit_candidate"),
            models.UniqueConstraint(fields=["group", "trajectory"], name="a_rollout_is_pooled_once"),
        ]
        ordering = ["letter"]


class AuditVerdictRows(FrozenRows):
    team_path = "group__audit__team"

    def told(self):
        """Without what people said of an audit that is still blind: others of them have not judged yet."""
        return self.exclude(group__audit__revealed_at=None, author__isnull=False)


class AuditVerdict(Frozen):
    """Scores and the joint order of all candidates of an audit group, failures included, by letter."""

    group = models.ForeignKey(AuditGroup, models.CASCADE, related_name="verdicts")
    grader = models.CharField(max_length=60)
    model = models.CharField(max_length=120, blank=True)
    prompt = models.CharField(max_length=80, blank=True)
    author = models.ForeignKey("grading.User", models.PROTECT, null=True, related_name="+")
    is_valid = models.BooleanField()
    problems = models.JSONField(default=list)
    reply = models.JSONField()  # the whole answer, by letters
    ranking = models.JSONField(default=dict)  # {"T1": [[letter, …], …], "T2": …, "T3": …}
    order = models.JSONField(default=list)  # letters as they were presented
    transcript = models.CharField(max_length=64, blank=True)  # body
    event_count = models.PositiveIntegerField(default=0)
    duration_s = models.FloatField(null=True)
    cost_usd = models.FloatField(null=True)
    at = models.DateTimeField(auto_now_add=True)

    objects = AuditVerdictRows.as_manager()

    class Meta:
        ordering = ["pk"]
