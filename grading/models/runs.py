"""A run is one RL job; a life is one process start of it."""

from django.db import models

from grading.models.rows import Frozen, FrozenRows, team_rows
from grading.states import Method, Policy

POLICY = (
    "policy", "hold_share", "hold_budget", "reviews_wanted", "blind_share", "overlap_share", "collect_deadline_s",
    "grading_deadline_s", "review_deadline_s", "webhook_url", "bodies_share",
)  # fmt: skip


class Run(models.Model):
    class Kind(models.TextChoices):
        LIVE = "live"
        IMPORTED = "imported"  # no stream, no deadline, nobody waits

    team = models.ForeignKey("grading.Team", models.PROTECT, related_name="runs")
    public_id = models.SlugField(max_length=80, unique=True)
    name = models.CharField(max_length=120)
    kind = models.CharField(max_length=10, choices=Kind, default=Kind.LIVE)
    method = models.CharField(max_length=30, choices=Method, default=Method.REDISTRIBUTE)
    policy = models.CharField(max_length=10, choices=Policy, default=Policy.SHADOW)
    rubric = models.ForeignKey("grading.RubricVersion", models.PROTECT, related_name="runs")
    grader = models.CharField(max_length=20, default="static")
    grading = models.JSONField(default=dict)  # grader/options.py: model, budgets, orders, the image of checks
    hold_share = models.FloatField(default=0.125)  # policy sampled: probability that a graded group is held
    hold_budget = models.PositiveIntegerField(default=4)  # forced holds (strong signals) a step, at most
    reviews_wanted = models.PositiveSmallIntegerField(default=1)  # independent reviews of a held group
    blind_share = models.FloatField(default=0.0)  # of held groups: ranked by a person before the verdict is shown
    webhook_url = models.CharField(max_length=300, blank=True)  # hears of near deadlines and of alerts
    webhook_n = models.PositiveIntegerField(default=0)  # of its signing secret; one more makes a new secret
    overlap_share = models.FloatField(default=0.2)  # of drawn groups: two people answer alone, to know the ceiling
    bodies_share = models.FloatField(default=0.02)  # of groups that need no grading
    mask_truncated = models.BooleanField(default=False)
    neutral_when_equal = models.BooleanField(default=False)  # factors are divided by the group's best one
    collect_deadline_s = models.PositiveIntegerField(null=True, default=3600)
    grading_deadline_s = models.PositiveIntegerField(null=True, default=900)
    review_deadline_s = models.PositiveIntegerField(null=True, default=900)
    paused = models.BooleanField(default=False)  # outcome advantages from now on; `control` tells the job
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey("grading.User", models.SET_NULL, null=True, related_name="+")

    objects = team_rows("team", "pk").as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(hold_share__gte=0, hold_share__lte=1), name="hold_share_0_1"),
            models.CheckConstraint(condition=models.Q(blind_share__gte=0, blind_share__lte=1), name="blind_share_0_1"),
            models.CheckConstraint(
                condition=models.Q(overlap_share__gte=0, overlap_share__lte=1), name="overlap_share_0_1"
            ),
            models.CheckConstraint(
                condition=models.Q(bodies_share__gte=0, bodies_share__lte=1), name="bodies_share_0_1"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_live(self) -> bool:
        return self.kind == self.Kind.LIVE


class RunEvent(Frozen):
    """Who opened a run or changed its policy, when and how: field -> [old, new]; `old` is null where it was opened."""

    run = models.ForeignKey(Run, models.PROTECT, related_name="events")
    by = models.CharField(max_length=150)
    changes = models.JSONField()
    at = models.DateTimeField(auto_now_add=True)

    objects = type("RunEventRows", (FrozenRows,), {"team_path": "run__team", "run_path": "run"}).as_manager()


class Life(models.Model):
    """Issued once per process start of the job; the newest fences the older ones."""

    run = models.ForeignKey(Run, models.PROTECT, related_name="lives")
    n = models.PositiveIntegerField()
    job = models.CharField(max_length=200, blank=True)
    started_at = models.DateTimeField(auto_now_add=True)
    fenced_at = models.DateTimeField(null=True)

    objects = team_rows("run__team", "run").as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "n"], name="lives_are_numbered")]
