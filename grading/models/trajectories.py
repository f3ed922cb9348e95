"""One rollout: its outcome, where its bodies lie, and what was found about its integrity."""

from django.db import models

from grading.models.rows import Frozen, FrozenRows, TeamRows, team_rows
from grading.states import Integrity, Outcome


class TrajectoryRows(TeamRows):
    team_path, run_path = "group__run__team", "group__run"

    def counted(self):
        """Rows inside the group's statistics: everything that came before it was complete."""
        return self.filter(is_late=False)


class Trajectory(models.Model):
    group = models.ForeignKey("grading.RolloutGroup", models.PROTECT, related_name="trajectories")
    run = models.ForeignKey("grading.Run", models.PROTECT, related_name="+")  # with life: the scope of external_id
    life = models.ForeignKey("grading.Life", models.PROTECT, related_name="+")
    external_id = models.CharField(max_length=200)
    letter = models.CharField(max_length=3, blank=True)  # neutral, drawn when the group is complete
    outcome = models.CharField(max_length=15, choices=Outcome)
    reward = models.CharField(max_length=40, blank=True)  # shaped; float repr, "NaN" or "Infinity"; "" = the outcome
    is_truncated = models.BooleanField(default=False)
    is_late = models.BooleanField(default=False)
    integrity = models.CharField(max_length=5, choices=Integrity, blank=True)  # confirmed only

    patch = models.CharField(max_length=64, blank=True)  # body key; "" = no patch
    patch_bytes = models.PositiveBigIntegerField(default=0)
    event_body = models.CharField(max_length=64, blank=True)
    event_count = models.PositiveIntegerField(null=True)  # null: none given
    log = models.CharField(max_length=64, blank=True)
    log_bytes = models.PositiveBigIntegerField(default=0)
    raw_body = models.CharField(max_length=64, blank=True)  # a trajectory of a format we cannot read yet
    tests = models.JSONField(default=list)  # [{name, status, message?}]
    counts = models.JSONField(default=dict)  # turns, tokens, response_tokens, …
    extra = models.JSONField(default=dict)  # model names and other facts hidden until the decision
    problem = models.CharField(max_length=200, blank=True)
    content_digest = models.CharField(max_length=64)  # of the canonical fields: same id, same content
    created_at = models.DateTimeField(auto_now_add=True)

    objects = TrajectoryRows.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "life", "external_id"], name="one_rollout_per_id")]
        ordering = ["pk"]
        indexes = [
            models.Index(
                fields=["integrity", "group"], condition=~models.Q(integrity=""), name="rollout_with_a_finding"
            )
        ]

    def __str__(self) -> str:
        return self.external_id


class SignalRows(team_rows("group__run__team", "group__run")):
    def standing(self):
        """Those that nobody ruled wrong."""
        return self.filter(is_wrong=False)


class Signal(models.Model):
    """A detector's hint with its place. A hint decides nothing."""

    trajectory = models.ForeignKey(Trajectory, models.CASCADE, related_name="signals")
    # of its rollout, once more: a filter must not walk millions of rollouts to find their groups
    group = models.ForeignKey("grading.RolloutGroup", models.CASCADE, related_name="+", db_index=False)
    detector = models.CharField(max_length=10)
    is_strong = models.BooleanField()
    words = models.CharField(max_length=500)
    place = models.JSONField(default=dict)
    is_wrong = models.BooleanField(default=False)  # by its newest ruling: it holds nothing and is found by no filter

    objects = SignalRows.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["detector", "is_strong", "group", "is_wrong"], name="signal_by_detector"),
            models.Index(fields=["is_strong", "group", "is_wrong"], name="signal_by_strength"),
            models.Index(fields=["group"], name="signal_by_group"),
        ]

    def save(self, *args, **kwargs):
        self.group_id = self.trajectory.group_id
        super().save(*args, **kwargs)


class SignalRuling(Frozen):
    """A person says that a hint is wrong, or that it is right after all: the newest row of a signal counts."""

    signal = models.ForeignKey(Signal, models.PROTECT, related_name="rulings")
    is_wrong = models.BooleanField()
    user = models.ForeignKey("grading.User", models.PROTECT, related_name="+")
    reason = models.TextField()
    at = models.DateTimeField(auto_now_add=True)

    objects = type(
        "SignalRulingRows", (FrozenRows,), {"team_path": "signal__group__run__team", "run_path": "signal__group__run"}
    ).as_manager()

    class Meta:
        ordering = ["pk"]


class Finding(Frozen):
    """A confirmed leak or hack, or its withdrawal: the newest row of a trajectory counts."""

    trajectory = models.ForeignKey(Trajectory, models.PROTECT, related_name="findings")
    kind = models.CharField(max_length=5, choices=Integrity, blank=True)  # "" withdraws
    verdict = models.ForeignKey("grading.Verdict", models.PROTECT, null=True, related_name="findings")
    by = models.CharField(max_length=150)
    reason = models.TextField()
    citations = models.JSONField(default=list)
    at = models.DateTimeField(auto_now_add=True)

    objects = type(
        "FindingRows",
        (FrozenRows,),
        {"team_path": "trajectory__group__run__team", "run_path": "trajectory__group__run"},
    ).as_manager()
