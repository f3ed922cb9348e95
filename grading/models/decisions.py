"""A decision names what counts for a group. Decisions are the queue that the bridge delivers from."""

from django.db import models

from grading.models.rows import Frozen, FrozenRows
from grading.states import DecisionKind


class Decision(Frozen):
    group = models.ForeignKey("grading.RolloutGroup", models.PROTECT, related_name="decisions")
    version = models.PositiveIntegerField()  # n-th decision of the group
    kind = models.CharField(max_length=10, choices=DecisionKind)
    verdict = models.ForeignKey("grading.Verdict", models.PROTECT, null=True, related_name="decisions")
    reason = models.CharField(max_length=200, blank=True)  # of a fallback, an exclusion, a person's words
    user = models.ForeignKey("grading.User", models.PROTECT, null=True, related_name="+")
    by = models.CharField(max_length=150)  # a person's username, or policy:<policy>|deadline|pause
    at = models.DateTimeField(auto_now_add=True)

    objects = type(
        "DecisionRows", (FrozenRows,), {"team_path": "group__run__team", "run_path": "group__run"}
    ).as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["group", "version"], name="decisions_are_numbered")]
        ordering = ["group_id", "version"]
        indexes = [models.Index(fields=["kind", "group", "version"], name="decision_by_kind")]
