"""Anchor groups of a team, graded again and again to see whether a grader drifts, and the rounds of that."""

from django.db import models

from grading.models.rows import Frozen, FrozenRows, team_rows


class Anchor(models.Model):
    """A decided group that every round grades again, until somebody retires it."""

    group = models.OneToOneField("grading.RolloutGroup", models.PROTECT, related_name="anchor")
    chosen_by = models.ForeignKey("grading.User", models.PROTECT, related_name="+")
    seed = models.BigIntegerField(null=True)  # of the draw it came out of; null: a person chose this very group
    at = models.DateTimeField(auto_now_add=True)
    retired_at = models.DateTimeField(null=True)

    objects = team_rows("group__run__team", "group__run").as_manager()

    class Meta:
        ordering = ["pk"]


class AnchorRound(Frozen):
    """All anchors of a team, graded by the grader of one run as it was then; its gradings point here."""

    run = models.ForeignKey("grading.Run", models.PROTECT, related_name="anchor_rounds")
    fingerprint = models.JSONField()  # {"grader", "model", "prompt"}: a change of any is a new round
    why = models.CharField(max_length=200)
    asked_by = models.CharField(max_length=150)  # a person's username, or policy:drift
    at = models.DateTimeField(auto_now_add=True)

    objects = type("AnchorRoundRows", (FrozenRows,), {"team_path": "run__team", "run_path": "run"}).as_manager()

    class Meta:
        ordering = ["pk"]
