"""Rubric versions: weights, thresholds, factor constants, the cap. Published once, then frozen."""

from django.db import models
from django.utils.functional import cached_property

from grading.models.rows import Frozen, FrozenSet
from grading.scoring.criteria import Rubric


class RubricVersion(Frozen):
    """Numbers are decimal strings: they are compared exactly (method.md 2)."""

    number = models.PositiveIntegerField(unique=True)
    name = models.CharField(max_length=60)
    definition = models.JSONField()
    formula = models.CharField(max_length=30, default="gagar-1")
    published_at = models.DateTimeField(auto_now_add=True)
    parent = models.ForeignKey("self", models.PROTECT, null=True, related_name="+")  # what it was made from
    reason = models.CharField(max_length=500, blank=True)
    gate = models.ForeignKey("grading.Gate", models.PROTECT, null=True, related_name="versions")  # null: by hand
    published_by = models.ForeignKey("grading.User", models.SET_NULL, null=True, related_name="+")

    objects = FrozenSet.as_manager()

    def __str__(self) -> str:
        return f"{self.name} v{self.number}"

    @cached_property
    def rubric(self) -> Rubric:
        """The exact numbers, checked by the rules of publishing."""
        return Rubric.from_json(self.definition, name=str(self))

    @classmethod
    def flash(cls) -> "RubricVersion":
        """Version 1, the constants of the paper's Flash runs, made by the first migration."""
        return cls.objects.get(number=1)
