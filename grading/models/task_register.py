"""Tasks across steps, and the repositories they stand on."""

from django.db import models

from grading.models.rows import Frozen, FrozenRows, team_rows


class Repository(models.Model):
    """A bundle or archive of ours, by its sha256; its bytes lie in the bodies."""

    team = models.ForeignKey("grading.Team", models.PROTECT, related_name="repositories")
    sha256 = models.CharField(max_length=64)
    bytes = models.PositiveBigIntegerField()
    created_at = models.DateTimeField(auto_now_add=True)

    objects = team_rows("team").as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "sha256"], name="one_repository_per_content")]


class Task(models.Model):
    team = models.ForeignKey("grading.Team", models.PROTECT, related_name="tasks")
    key = models.CharField(max_length=200)
    statement = models.TextField(blank=True)
    repository = models.ForeignKey(Repository, models.PROTECT, null=True, related_name="tasks")
    repository_url = models.CharField(max_length=500, blank=True)
    base_commit = models.CharField(max_length=80, blank=True)
    reference_patch = models.CharField(max_length=64, blank=True)  # body; to understand the task, never a criterion
    is_broken = models.BooleanField(default=False)  # its evaluation is: quarantined in every later step
    settling_until = models.DateTimeField(null=True)  # set with each mark: until then, at least, the sweep looks again
    created_at = models.DateTimeField(auto_now_add=True)

    objects = team_rows("team").as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "key"], name="one_task_per_key")]
        indexes = [  # asked every two seconds: a row or none
            models.Index(fields=["id"], condition=models.Q(settling_until__isnull=False), name="task_settling")
        ]

    def __str__(self) -> str:
        return self.key


class TaskEvent(Frozen):
    """Who quarantined or released a task, when and why."""

    task = models.ForeignKey(Task, models.PROTECT, related_name="events")
    is_broken = models.BooleanField()
    by = models.CharField(max_length=150)
    reason = models.TextField()
    at = models.DateTimeField(auto_now_add=True)

    objects = type("TaskEventRows", (FrozenRows,), {"team_path": "task__team"}).as_manager()
