"""The bridge's rows: one stream a run, numbered deliveries, what the job answered, its metrics."""

from django.db import models

from grading.models.rows import Frozen, FrozenRows, team_rows
from training_bridge.models_alerts import (
    Alert,
    AlertCall,
    AlertDesk,
    AlertEvent,
    AlertMessage,
    AlertRule,
    StepReading,
)

__all__ = [
    "Alert",
    "AlertCall",
    "AlertDesk",
    "AlertEvent",
    "AlertMessage",
    "AlertRule",
    "Delivery",
    "JobCursor",
    "MetricPoint",
    "Payout",
    "Receipt",
    "StepReading",
    "Stream",
]


class Stream(models.Model):
    """What delivery locks. `seq` is dense per run and epoch, allotted under this row's lock."""

    class Mode(models.TextChoices):
        NORMAL = "normal"
        OUTCOME_ONLY = "outcome_only"

    run = models.OneToOneField("grading.Run", models.PROTECT, related_name="stream")
    epoch = models.PositiveIntegerField(default=1)
    head_seq = models.PositiveBigIntegerField(default=0)
    paid_to = models.PositiveBigIntegerField(default=0)  # key of the last row that is counted in the payouts
    owes = models.BooleanField(default=False)  # rows after it wait to be counted
    mode = models.CharField(max_length=12, choices=Mode, default=Mode.NORMAL)
    mode_reason = models.CharField(max_length=200, blank=True)

    objects = team_rows("run__team", "run").as_manager()


class Delivery(models.Model):
    """One row of the stream. `text` is what travels, byte for byte; its sha256 is the resume digest."""

    class Kind(models.TextChoices):
        ADVANTAGES = "advantages"
        CONTROL = "control"

    stream = models.ForeignKey(Stream, models.PROTECT, related_name="deliveries")
    epoch = models.PositiveIntegerField()
    seq = models.PositiveBigIntegerField()
    kind = models.CharField(max_length=10, choices=Kind, default=Kind.ADVANTAGES)
    decision = models.ForeignKey("grading.Decision", models.PROTECT, null=True, related_name="deliveries")
    group = models.ForeignKey("grading.RolloutGroup", models.PROTECT, null=True, related_name="deliveries")
    version = models.PositiveIntegerField(default=0)
    regime = models.CharField(max_length=12, blank=True)
    reason = models.CharField(max_length=200, blank=True)
    train = models.BooleanField(default=False)
    text = models.TextField()
    sha256 = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)
    sent_at = models.DateTimeField(null=True)
    receipt = models.CharField(max_length=10, blank=True)  # the newest one's status; "" = none yet
    used_at = models.PositiveIntegerField(null=True)  # and its step

    objects = team_rows("stream__run__team", "stream__run").as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["stream", "epoch", "seq"], name="seq_is_dense_per_epoch"),
            models.UniqueConstraint(fields=["epoch", "decision"], name="one_row_per_decision"),
            models.UniqueConstraint(fields=["epoch", "group", "version"], name="one_row_per_version"),
        ]
        ordering = ["epoch", "seq"]
        indexes = [
            models.Index(fields=["stream", "epoch", "receipt", "seq"], name="delivery_by_receipt"),
            # groups that have more than one row, however few: the ledger of groups looks at them one by one
            models.Index(fields=["stream", "group"], condition=models.Q(version__gt=1), name="delivery_of_correction"),
        ]


class Payout(models.Model):
    """What the newest delivery of a group pays, summed over its rows: the monitor adds these up by step.

    Derived from the decision and the group, after the row went out (`paying.py`); kept small so that a page's
    work does not grow with the run.
    """

    group = models.OneToOneField("grading.RolloutGroup", models.PROTECT, related_name="payout")
    run = models.ForeignKey("grading.Run", models.PROTECT, related_name="payouts")
    step = models.PositiveIntegerField()
    version = models.PositiveIntegerField()
    regime = models.CharField(max_length=12)
    reason = models.CharField(max_length=200, blank=True)
    is_inverted = models.BooleanField(default=False)
    valid = models.PositiveIntegerField()
    passes = models.PositiveIntegerField()
    tier_1 = models.PositiveIntegerField(default=0)
    tier_2 = models.PositiveIntegerField(default=0)
    tier_3 = models.PositiveIntegerField(default=0)
    credit_due = models.FloatField()  # reward units; 0 in a group that is not graded or does not train
    credit_paid = models.FloatField()
    penalty_due = models.FloatField()
    penalty_paid = models.FloatField()
    advantage_tokens = models.FloatField()  # sum of A len
    tokens = models.FloatField()  # sum of len
    factors = models.PositiveIntegerField(default=0)  # passes with a factor
    factor_sum = models.FloatField(default=0)
    lambda_used = models.FloatField(null=True)  # of a redistributed group, after the bound
    deficit = models.FloatField(null=True)  # D of Eq. 1, reward units; null: not downweighted
    by_deadline = models.BooleanField(default=False)  # a deadline decided, whatever it decided
    grading_s = models.FloatField(null=True)  # from complete to graded
    declared_at = models.DateTimeField()
    held_at = models.DateTimeField(null=True)  # when it began to wait for a person
    decided_at = models.DateTimeField()  # its first decision: from then on it was no longer waited for

    objects = team_rows("run__team", "run").as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["run", "step"], name="payout_by_step"),
            models.Index(fields=["run", "decided_at"], name="payout_by_decision"),
            models.Index(fields=["regime", "group"], name="payout_by_regime"),
        ]


class StepSum(models.Model):
    """What payouts and receipts add up to over the steps from `step` to `step + span - 1`.

    Kept in several spans, so that a curve of any length is read from as many rows. `paid` is written under the lock of
    the stream's row, `told` under that of the life: see `monitor/sums.py` for their names.
    """

    run = models.ForeignKey("grading.Run", models.PROTECT, related_name="step_sums", db_index=False)
    span = models.PositiveIntegerField()
    step = models.PositiveIntegerField()
    paid = models.JSONField(default=dict)
    told = models.JSONField(default=dict)
    changed_at = models.DateTimeField(auto_now=True)

    objects = team_rows("run__team", "run").as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "span", "step"], name="one_sum_per_step")]
        indexes = [models.Index(fields=["run", "span", "changed_at"], name="step_sum_by_change")]


class JobCursor(models.Model):
    """Where one life of the job stands: its cumulative acks and its numbered messages."""

    life = models.OneToOneField("grading.Life", models.PROTECT, related_name="cursor")
    epoch = models.PositiveIntegerField(default=1)
    received_seq = models.PositiveBigIntegerField(default=0)
    durable_seq = models.PositiveBigIntegerField(default=0)
    noted = models.PositiveBigIntegerField(default=0)
    estimator = models.JSONField(default=dict)
    unknown_fields = models.PositiveIntegerField(default=0)
    seen_at = models.DateTimeField(null=True)
    connected = models.BooleanField(default=False)

    objects = team_rows("life__run__team", "life__run").as_manager()


class Receipt(Frozen):
    """What the job did with one version of a group. Every receipt is kept; the newest counts."""

    class Status(models.TextChoices):
        APPLIED = "applied"
        SUPERSEDED = "superseded"
        TOO_LATE = "too_late"
        EXPIRED = "expired"
        NOT_USED = "not_used"

    run = models.ForeignKey("grading.Run", models.PROTECT, related_name="receipts")
    life = models.ForeignKey("grading.Life", models.PROTECT, related_name="+")  # that sent it
    n = models.PositiveBigIntegerField()
    group = models.ForeignKey("grading.RolloutGroup", models.PROTECT, related_name="receipts")
    version = models.PositiveIntegerField()  # 0: what the job computed itself
    status = models.CharField(max_length=10, choices=Status)
    step = models.PositiveIntegerField()
    at = models.DateTimeField(auto_now_add=True)

    objects = type("ReceiptRows", (FrozenRows,), {"team_path": "run__team", "run_path": "run"}).as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["life", "n"], name="receipts_are_numbered")]
        ordering = ["pk"]
        indexes = [models.Index(fields=["run", "group"], condition=models.Q(version=0), name="receipt_of_own_numbers")]


class MetricSeries(models.Model):
    """One name of a run: its unit, where it ends, and how far its points are packed."""

    run = models.ForeignKey("grading.Run", models.PROTECT, related_name="metric_series", db_index=False)
    name = models.CharField(max_length=80)
    unit = models.CharField(max_length=20, blank=True)
    points = models.PositiveBigIntegerField(default=0)  # steps with a value, not counting history
    tail = models.PositiveIntegerField(default=0)  # of them not packed yet
    last_step = models.PositiveIntegerField(default=0)
    packed = models.JSONField(default=list)  # the last packed step of each level, the finest first
    heard_at = models.DateTimeField(auto_now=True)

    objects = team_rows("run__team", "run").as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "name"], name="one_series_per_name")]


class MetricPoint(models.Model):
    """A scalar by run, step and name. A repeated step adds a row: the newest counts, the rest is history."""

    run = models.ForeignKey("grading.Run", models.PROTECT, related_name="metric_points", db_index=False)
    life = models.ForeignKey("grading.Life", models.PROTECT, null=True, related_name="+")
    n = models.PositiveBigIntegerField()
    step = models.PositiveIntegerField()
    name = models.CharField(max_length=80)
    value = models.FloatField(null=True)  # null: NaN or infinite, drawn as a gap
    non_finite = models.CharField(max_length=10, blank=True)
    is_newest = models.BooleanField(default=True)
    at = models.DateTimeField(auto_now_add=True)

    objects = team_rows("run__team", "run").as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["run", "name", "step"], condition=models.Q(is_newest=True), name="one_newest_point_per_step"
            )
        ]
        indexes = [
            models.Index(fields=["run", "name", "step"], name="metric_by_step"),
            models.Index(fields=["run", "id"], name="metric_by_arrival"),
        ]


class MetricSegment(models.Model):
    """Consecutive points of a series packed into one row, for curves of any length; level 0 holds them all.

    Derived from `MetricPoint`. A segment of level k + 1 stands for eight of level k and keeps their extremes and gaps.
    """

    series = models.ForeignKey(MetricSeries, models.CASCADE, related_name="segments", db_index=False)
    level = models.PositiveSmallIntegerField()
    first_step = models.PositiveIntegerField()
    last_step = models.PositiveIntegerField()
    packed = models.BinaryField()  # monitor/packing.py

    objects = team_rows("series__run__team", "series__run").as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["series", "level", "last_step"], name="one_segment_per_place")]
