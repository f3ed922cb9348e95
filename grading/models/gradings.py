"""One attempt of a grader at a group, what it cost and said; and the checks it ran in a sandbox."""

from django.db import models

from grading.models.rows import Frozen, FrozenRows, team_rows

ATTEMPTS = 3  # claims of a group whose workers died; the next one gives it up


class GradingRows(team_rows("group__run__team", "group__run")):
    def dead_letters(self):
        """Where a group was given up because its graders died again and again."""
        return self.filter(state=Grading.State.FAILED, attempt__gt=ATTEMPTS)


class Grading(models.Model):
    """Written when a grader starts and once more when it ends, so that a killed one still shows.

    `running` with attempt 0: a person asked for it, and no worker has begun.
    """

    class State(models.TextChoices):
        RUNNING = "running"
        VALID = "valid"
        INVALID = "invalid"  # the reply was no valid verdict; its problems say why
        FAILED = "failed"  # no reply: the endpoint, a budget, an error of ours
        DIED = "died"  # the worker was killed: its lease ran out
        REFUSED = "refused"  # it answered after its claim was gone; the spend is booked all the same

    group = models.ForeignKey("grading.RolloutGroup", models.PROTECT, related_name="gradings")
    verdict = models.OneToOneField("grading.Verdict", models.PROTECT, null=True, related_name="grading")
    state = models.CharField(max_length=8, choices=State, default=State.RUNNING)
    grader = models.CharField(max_length=60)  # agentic, single_pass, static, or the name of your own
    model = models.CharField(max_length=120, blank=True)
    endpoint = models.CharField(max_length=200, blank=True)  # host and port only
    prompt = models.CharField(max_length=80, blank=True)  # name, version and digest of the prompt's files
    attempt = models.PositiveIntegerField(default=1)  # the group's n-th claim
    fencing = models.PositiveIntegerField(default=0)
    order = models.JSONField(default=list)  # letters as they were presented
    asked_by = models.CharField(max_length=150, blank=True)  # who pressed re-grade; "" = by itself
    round = models.ForeignKey("grading.AnchorRound", models.PROTECT, null=True, related_name="gradings")  # of anchors
    turns = models.PositiveIntegerField(default=0)
    tool_calls = models.PositiveIntegerField(default=0)
    retries = models.PositiveIntegerField(default=0)
    input_tokens = models.PositiveBigIntegerField(default=0)
    cached_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    cost_usd = models.FloatField(null=True)  # null: no price is known for the model
    duration_s = models.FloatField(null=True)
    transcript = models.CharField(max_length=64, blank=True)  # event body, readable like a trajectory
    event_count = models.PositiveIntegerField(default=0)
    problems = models.JSONField(default=list)  # as in a verdict
    flips = models.FloatField(null=True)  # orders=k: share of pairs that changed sides between the orders
    started_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    objects = GradingRows.as_manager()

    class Meta:
        ordering = ["pk"]
        indexes = [
            models.Index(fields=["state", "started_at"], name="grading_by_state"),
            models.Index(fields=["group"], condition=models.Q(flips__gt=0), name="grading_that_flips"),
        ]


class Check(Frozen):
    """A targeted check as our runner recorded it: a result that a verdict may cite as `name`."""

    class Outcome(models.TextChoices):
        PASSED = "passed"
        FAILED = "failed"
        TIMEOUT = "timeout"
        KILLED = "killed"  # a limit of the sandbox bound
        UNKNOWN = "unknown"  # it ended without our runner seeing how: never counted as passed

    group = models.ForeignKey("grading.RolloutGroup", models.PROTECT, related_name="checks")
    trajectory = models.ForeignKey("grading.Trajectory", models.PROTECT, null=True, related_name="checks")  # null: base
    grading = models.ForeignKey(Grading, models.PROTECT, null=True, related_name="checks")
    name = models.CharField(max_length=40)  # check:1, check:2, … within the group
    key = models.CharField(max_length=64)  # sha256 of what was asked: the same again is not run again
    asked = models.JSONField()  # {"argv": […], "files": {path: body key}, "stdin": …, "expect": …}
    sandbox = models.CharField(max_length=20)  # docker, bubblewrap
    image = models.CharField(max_length=200, blank=True)
    outcome = models.CharField(max_length=8, choices=Outcome)
    words = models.CharField(max_length=500, blank=True)  # one sentence: what ended it, which limit bound
    exit_code = models.IntegerField(null=True)
    duration_s = models.FloatField()
    output = models.CharField(max_length=64, blank=True)  # body: stdout and stderr as they came, up to the limit
    output_bytes = models.PositiveBigIntegerField(default=0)  # stored
    is_truncated = models.BooleanField(default=False)
    at = models.DateTimeField(auto_now_add=True)

    objects = type("CheckRows", (FrozenRows,), {"team_path": "group__run__team", "run_path": "group__run"}).as_manager()

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["group", "name"], name="one_check_per_name"),
            models.UniqueConstraint(fields=["group", "key"], name="one_check_per_question"),
        ]
