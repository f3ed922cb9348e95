"""A verdict ranks the passing candidates of a group with evidence. A correction is a verdict with a parent."""

from django.db import models

from grading.models.rows import Frozen, FrozenRows
from grading.states import Purpose


class VerdictRows(FrozenRows):
    team_path, run_path = "group__run__team", "group__run"

    def unveiled(self):
        """Without those that nobody may see yet: a person still has to order the group blind."""
        return self.exclude(group__held=True, group__is_blind=True)


class Verdict(Frozen):
    group = models.ForeignKey("grading.RolloutGroup", models.PROTECT, related_name="verdicts")
    purpose = models.CharField(max_length=10, choices=Purpose, default=Purpose.TRAINING)
    parent = models.ForeignKey("self", models.PROTECT, null=True, related_name="corrections")
    grader = models.CharField(max_length=60)  # static, agentic, …, or "person"
    author = models.ForeignKey("grading.User", models.PROTECT, null=True, related_name="+")
    reason = models.TextField(blank=True)  # why a person corrected it
    rubric = models.ForeignKey("grading.RubricVersion", models.PROTECT, related_name="+")
    formula = models.CharField(max_length=30, default="gagar-1")
    is_valid = models.BooleanField()
    problems = models.JSONField(default=list)  # why it is not valid; all of them
    reply = models.JSONField()  # the grader's whole answer, in the one verdict shape
    ranking = models.JSONField(default=dict)  # {"T1": [[external_id, …], …], "T2": …, "T3": …}
    revisions = models.JSONField(default=list)
    notes = models.JSONField(default=list)  # what the grader says it skipped
    fencing = models.PositiveIntegerField(default=0)
    duration_s = models.FloatField(null=True)
    cost_usd = models.FloatField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = VerdictRows.as_manager()

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["group"], condition=models.Q(grader="person"), name="verdict_of_a_person")]

    @property
    def tiers(self) -> int:
        """Which tiers have a candidate: the sum of 1 for T1, 2 for T2, 4 for T3."""
        return sum(1 << n for n, tier in enumerate(("T1", "T2", "T3")) if self.ranking.get(tier))

    @property
    def said_by(self) -> str:
        return self.author.name if self.author else self.grader


class VerdictCandidate(Frozen):
    """What a verdict says of one passing candidate, and what follows from it by our own rules."""

    verdict = models.ForeignKey(Verdict, models.PROTECT, related_name="candidates")
    trajectory = models.ForeignKey("grading.Trajectory", models.PROTECT, related_name="placements")
    scores = models.JSONField()  # {criterion: 1..5}
    reasons = models.JSONField(default=dict)  # {criterion: words}
    flags = models.JSONField(default=list)
    weighted_score = models.DecimalField(max_digits=12, decimal_places=9)  # for reading; W is compared exactly
    tier = models.PositiveSmallIntegerField()
    rank = models.PositiveSmallIntegerField()  # zero-based tied group inside the tier
    factor = models.FloatField()

    objects = type(
        "VerdictCandidateRows",
        (FrozenRows,),
        {"team_path": "verdict__group__run__team", "run_path": "verdict__group__run"},
    ).as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["verdict", "trajectory"], name="ranked_exactly_once")]
        ordering = ["tier", "rank", "trajectory_id"]


class EvidenceRows(FrozenRows):
    team_path, run_path = "verdict__group__run__team", "verdict__group__run"


class Evidence(Frozen):
    """One citation: a changed patch line, an event of the candidate's own, or an execution result."""

    class State(models.TextChoices):
        EXACT = "exact"
        MOVED = "moved"
        AMBIGUOUS = "ambiguous"
        LOST = "lost"

    verdict = models.ForeignKey(Verdict, models.PROTECT, related_name="evidence")
    trajectory = models.ForeignKey("grading.Trajectory", models.PROTECT, related_name="evidence")
    about = models.CharField(max_length=40)  # a criterion, a flag, "leak", "hack" or "revision"
    number = models.PositiveSmallIntegerField()  # 1.. within the verdict: what the page prints in the margin
    citation = models.JSONField()  # anchors.Citation
    state = models.CharField(max_length=10, choices=State)

    objects = EvidenceRows.as_manager()

    class Meta:
        ordering = ["number"]
