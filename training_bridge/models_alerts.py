"""Rows of alerts: rules that people edit, what each step read, what fired, and what webhooks were told."""

from django.db import models
from django.db.models import Q

from grading.models.rows import Frozen, FrozenRows, team_rows

OPEN_STATES = ("firing", "acknowledged")


class AlertRule(models.Model):
    """How one sign is judged in one run, where somebody changed it. No row: the sign's own defaults."""

    run = models.ForeignKey("grading.Run", models.PROTECT, related_name="alert_rules")
    sign = models.CharField(max_length=30)
    is_on = models.BooleanField(default=True)
    threshold = models.FloatField()
    window = models.PositiveIntegerField()  # steps
    least = models.PositiveIntegerField()  # of what the sign counts, in the window; fewer say nothing

    objects = team_rows("run__team", "run").as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "sign"], name="one_rule_per_sign")]


class AlertDesk(models.Model):
    """How far a run's signs were read, and what they remember. Its version lets one of two watchers write."""

    run = models.OneToOneField("grading.Run", models.PROTECT, related_name="alert_desk")
    version = models.PositiveBigIntegerField(default=0)
    life = models.PositiveIntegerField(default=0)
    looked_step = models.IntegerField(default=-1)
    looked_at = models.DateTimeField(null=True)
    memory = models.JSONField(default=dict)  # sign -> what `alert_moves` keeps of it

    objects = team_rows("run__team", "run").as_manager()

    class Meta:
        indexes = [models.Index(fields=["looked_at"], name="desk_by_look")]


class StepReading(models.Model):
    """What the signs read of one step once it was settled: sums, so that windows add up."""

    run = models.ForeignKey("grading.Run", models.PROTECT, related_name="step_readings")
    step = models.PositiveIntegerField()
    sums = models.JSONField()
    at = models.DateTimeField(auto_now=True)

    objects = team_rows("run__team", "run").as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "step"], name="one_reading_per_step")]
        ordering = ["step"]


class Alert(models.Model):
    """One time that a sign of a run was bad, from the step where it fired until it was over."""

    class State(models.TextChoices):
        FIRING = "firing"
        ACKNOWLEDGED = "acknowledged"  # somebody knows; it still ends by itself
        RESOLVED = "resolved"

    run = models.ForeignKey("grading.Run", models.PROTECT, related_name="alerts")
    sign = models.CharField(max_length=30)
    state = models.CharField(max_length=12, choices=State, default=State.FIRING)
    is_danger = models.BooleanField(default=False)
    step = models.PositiveIntegerField(null=True)  # where it fired
    value = models.FloatField()  # the newest one
    worst = models.FloatField()
    n = models.PositiveBigIntegerField(null=True)  # of what the newest value counts
    threshold = models.FloatField()  # of the rule that it broke
    words = models.CharField(max_length=300)
    fired_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    ended_step = models.PositiveIntegerField(null=True)

    objects = team_rows("run__team", "run").as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["run", "sign"], condition=~Q(state="resolved"), name="one_open_alert_per_sign"
            )
        ]
        indexes = [
            models.Index(fields=["state", "run"], name="alert_by_state"),
            models.Index(fields=["run", "id"], name="alert_by_run"),
        ]
        ordering = ["pk"]


class AlertEvent(Frozen):
    """One line of an alert's history: who moved it, when, at which value, and why."""

    alert = models.ForeignKey(Alert, models.PROTECT, related_name="events")
    old = models.CharField(max_length=12, blank=True)
    new = models.CharField(max_length=12)
    by = models.CharField(max_length=150)
    note = models.CharField(max_length=500, blank=True)
    value = models.FloatField()
    step = models.PositiveIntegerField(null=True)
    at = models.DateTimeField()

    objects = type(
        "AlertEventRows", (FrozenRows,), {"team_path": "alert__run__team", "run_path": "alert__run"}
    ).as_manager()

    class Meta:
        ordering = ["pk"]


class AlertMessage(models.Model):
    """What a run's webhook is to hear of one event: this row is the queue. Tried until it arrives or is given up."""

    class State(models.TextChoices):
        WAITING = "waiting"
        SENT = "sent"
        GIVEN_UP = "given_up"

    event = models.OneToOneField(AlertEvent, models.PROTECT, related_name="message")
    run = models.ForeignKey("grading.Run", models.PROTECT, related_name="alert_messages")
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    tries = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField()  # of a claimed one: when another worker may take it

    objects = team_rows("run__team", "run").as_manager()

    class Meta:
        indexes = [models.Index(fields=["state", "due_at"], name="message_by_due")]
        ordering = ["pk"]


class AlertCall(Frozen):
    """One attempt to tell a webhook, and what came of it."""

    message = models.ForeignKey(AlertMessage, models.PROTECT, related_name="calls")
    url = models.CharField(max_length=300)
    is_sent = models.BooleanField()
    words = models.CharField(max_length=300)
    at = models.DateTimeField(auto_now_add=True)

    objects = type(
        "AlertCallRows", (FrozenRows,), {"team_path": "message__run__team", "run_path": "message__run"}
    ).as_manager()

    class Meta:
        ordering = ["pk"]
