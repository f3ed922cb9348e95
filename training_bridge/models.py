"""The bridge's rows: one stream a run, numbered deliveries, what the job answered, its metrics."""

from django.db import models

from grading.models.rows import Frozen, FrozenRows, team_rows


class Stream(models.Model):
    """What delivery locks. `seq` is dense per run and epoch, allotted under this row's lock."""

    class Mode(models.TextChoices):
        NORMAL = "normal"
        OUTCOME_ONLY = "outcome_only"

    run = models.OneToOneField("grading.Run", models.PROTECT, related_name="stream")
    epoch = models.PositiveIntegerField(default=1)
    head_seq = models.PositiveBigIntegerField(default=0)
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
        indexes = [models.Index(fields=["stream", "epoch", "receipt", "seq"], name="delivery_by_receipt")]


class Payout(models.Model):
    """What the newest delivery of a group pays, summed over its rows: the monitor adds these up by step.

    Derived from `Delivery.text` and the group; kept small so that a page's work does not grow with the run.
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
    grading_s = models.FloatField(null=True)  # from complete to graded
    declared_at = models.DateTimeField()
    held_at = models.DateTimeField(null=True)  # when it began to wait for a person
    decided_at = models.DateTimeField()  # its first decision: from then on it was no longer waited for

    objects = team_rows("run__team", "run").as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["run", "step"], name="payout_by_step"),
            models.Index(fields=["run", "decided_at"], name="payout_by_decision"),
        ]


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


class MetricPoint(models.Model):
    """A scalar by run, step and name. A repeated step adds a row: the newest counts, the rest is history."""

    run = models.ForeignKey("grading.Run", models.PROTECT, related_name="metric_points")
    life = models.ForeignKey("grading.Life", models.PROTECT, null=True, related_name="+")
    n = models.PositiveBigIntegerField()
    step = models.PositiveIntegerField()
    name = models.CharField(max_length=80)
    value = models.FloatField(null=True)  # null: NaN or infinite, drawn as a gap
    non_finite = models.CharField(max_length=10, blank=True)
    at = models.DateTimeField(auto_now_add=True)

    objects = team_rows("run__team", "run").as_manager()

    class Meta:
        indexes = [models.Index(fields=["run", "name", "step"], name="metric_by_step")]
