"""What was fitted to people's orders, and each look at held-out groups: a look spends the groups it read."""

from django.db import models

from grading.models.rows import Frozen, FrozenRows


class GateKind(models.TextChoices):
    RUBRIC = "rubric"  # other numbers over the same verdicts
    GRADER = "grader"  # another grader's verdicts under the same numbers


class Fit(Frozen):
    """Numbers fitted to blind orders, with all that was said about them. It publishes nothing."""

    team = models.ForeignKey("grading.Team", models.PROTECT, related_name="fits")
    run = models.ForeignKey("grading.Run", models.PROTECT, related_name="+")  # whose grader and rubric it began from
    grader = models.CharField(max_length=60)
    base = models.ForeignKey("grading.RubricVersion", models.PROTECT, related_name="+")
    definition = models.JSONField(null=True)  # as RubricVersion.definition; null where nothing could be fitted
    report = models.JSONField()  # counts, weights with intervals, thresholds, refusals, whose verdicts
    groups = models.PositiveIntegerField()
    pairs = models.PositiveIntegerField()
    by = models.CharField(max_length=150)
    at = models.DateTimeField(auto_now_add=True)

    objects = type("FitRows", (FrozenRows,), {"team_path": "team", "run_path": "run"}).as_manager()

    class Meta:
        ordering = ["pk"]


class Gate(Frozen):
    """One look at held-out groups. `definition`, or two graders, say what was compared."""

    team = models.ForeignKey("grading.Team", models.PROTECT, related_name="gates")
    kind = models.CharField(max_length=10, choices=GateKind)
    base = models.ForeignKey("grading.RubricVersion", models.PROTECT, related_name="+")
    definition = models.JSONField(null=True)  # kind rubric: the new numbers
    graders = models.JSONField(null=True)  # in words; kind grader: [old, new], kind rubric: whose verdicts
    groups = models.PositiveIntegerField()
    pairs = models.PositiveIntegerField()  # that people decided, each person's own
    old_accuracy = models.FloatField(null=True)
    new_accuracy = models.FloatField(null=True)
    gain = models.FloatField(null=True)  # of pairwise accuracy, by the order of factors; null: no decided pair
    low = models.FloatField(null=True)  # 95 %, groups resampled whole
    high = models.FloatField(null=True)
    passed = models.BooleanField()
    by = models.CharField(max_length=150)
    at = models.DateTimeField(auto_now_add=True)

    objects = type("GateRows", (FrozenRows,), {"team_path": "team", "run_path": None}).as_manager()

    class Meta:
        ordering = ["pk"]


class SpentGroup(Frozen):
    """A held-out group that a gate has read: it proves nothing a second time."""

    gate = models.ForeignKey(Gate, models.PROTECT, related_name="spent")
    kind = models.CharField(max_length=10, choices=GateKind)
    group = models.ForeignKey("grading.RolloutGroup", models.PROTECT, related_name="+")

    objects = type("SpentRows", (FrozenRows,), {"team_path": "gate__team", "run_path": "group__run"}).as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["kind", "group"], name="held_out_groups_are_spent_once")]
