"""A rollout group: all rollouts of one task at one step of one life, and its history."""

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import models, transaction
from django.db.models import F, Q, Value
from django.db.models.functions import Coalesce

from grading import clock
from grading.errors import LeaseLost, WrongState
from grading.models.rows import Frozen, FrozenRows, TeamRows
from grading.states import AWAITING_REVIEW, ENDED, MOVES, OPEN, EndReason, GroupState, Method, Policy

# What was never counted comes last: said so that both databases can keep it as an index.
BY_INFLUENCE = Coalesce(F("influence"), Value(-1.0))


class RolloutGroupRows(TeamRows):
    team_path, run_path = "run__team", "run"

    def open(self):
        return self.filter(state__in=OPEN)

    def awaiting_review(self):
        """Held for a person. `held` is drawn and stored when the group becomes graded."""
        return self.filter(state__in=AWAITING_REVIEW, held=True)

    def gradable(self, now: datetime):
        """Complete with its wanted bodies, or left by a grader whose lease has run out."""
        waiting = Q(state=GroupState.COMPLETE, bodies_ready=True)
        return self.filter(waiting | Q(state=GroupState.GRADING, claimed_until__lt=now))

    def uninspected(self, now: datetime):
        """Ended and not graded, once their wanted bodies are in or waited for no longer; graders inspect the rest."""
        ended = self.filter(state__in=ENDED, completed_at__isnull=False, inspected_at=None)
        return ended.exclude(bodies_wanted=True, bodies_ready=False, collect_by__gte=now)

    def move_all(self, groups: Collection["RolloutGroup"], to: GroupState, **fields) -> None:
        """Move groups that were read in one state and version as `RolloutGroup.move` does one; the caller notes it.

        WrongState moves none of them: it ends the caller's transaction.
        """
        (here, version), *others = {(group.state, group.version) for group in groups}
        if others or to not in MOVES[GroupState(here)]:
            raise WrongState(f"{len(groups)} groups cannot become {to} together", got=[(here, version), *others])
        unmoved = self.filter(pk__in=[group.pk for group in groups], state=here, version=version)
        if unmoved.update(state=to, **fields) != len(groups):
            raise WrongState(f"of {len(groups)} groups one left {here} while we looked: reload and try again")
        for group in groups:
            group.state = to
            for name, value in fields.items():
                setattr(group, name, value)

    def locked(self):
        """Rows locked against each other, not against readers of their keys (PostgreSQL)."""
        return self.select_for_update(no_key=True, of=("self",))


class RolloutGroup(models.Model):
    run = models.ForeignKey("grading.Run", models.PROTECT, related_name="groups")
    life = models.ForeignKey("grading.Life", models.PROTECT, related_name="groups")
    key = models.CharField(max_length=200)
    task = models.ForeignKey("grading.Task", models.PROTECT, related_name="groups")
    step = models.PositiveIntegerField()
    policy_version = models.CharField(max_length=100, blank=True)
    group_size = models.PositiveIntegerField()
    eligible = models.BooleanField(default=True)

    state = models.CharField(max_length=12, choices=GroupState, default=GroupState.COLLECTING)
    end_reason = models.CharField(max_length=30, choices=EndReason, blank=True)
    version = models.PositiveIntegerField(default=0)  # number of decisions
    created_at = models.DateTimeField(auto_now_add=True)
    completed_at = models.DateTimeField(null=True)
    graded_at = models.DateTimeField(null=True)

    # pinned when the group is complete
    policy = models.CharField(max_length=10, choices=Policy, blank=True)
    method = models.CharField(max_length=30, choices=Method, blank=True)
    neutral_when_equal = models.BooleanField(default=False)
    rubric = models.ForeignKey("grading.RubricVersion", models.PROTECT, null=True, related_name="+")

    bodies_wanted = models.BooleanField(null=True)  # null until outcomes are in
    bodies_ready = models.BooleanField(default=False)
    inspected_at = models.DateTimeField(null=True)  # when the integrity detectors looked, also at filtered groups

    hold_probability = models.FloatField(null=True)
    held = models.BooleanField(default=False)
    hold_reason = models.CharField(max_length=100, blank=True)
    reviews_wanted = models.PositiveSmallIntegerField(default=1)  # independent reviews; pinned when it is held
    overlap_probability = models.FloatField(null=True)  # drawn when held: two people answer alone
    blind_probability = models.FloatField(null=True)
    is_blind = models.BooleanField(default=False)  # drawn when held: an order first, then the verdict
    influence = models.FloatField(null=True)  # of a held group: its place in the queue; null: not counted yet
    uncertainty = models.FloatField(null=True)
    noticed_at = models.DateTimeField(null=True)  # when its deadline was near
    tiers = models.PositiveSmallIntegerField(default=0)  # of what stands, as in Verdict.tiers: filters read it here

    collect_by = models.DateTimeField(null=True)
    grade_by = models.DateTimeField(null=True)
    review_by = models.DateTimeField(null=True)
    wanted_by = models.DateTimeField(null=True)  # the job's own deadline

    claimed_until = models.DateTimeField(null=True)
    claimed_by = models.CharField(max_length=100, blank=True)
    fencing = models.PositiveIntegerField(default=0)  # grows with each claim; a late worker holds an old one
    grading_attempts = models.PositiveIntegerField(default=0)

    objects = RolloutGroupRows.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "life", "key"], name="one_group_per_life_and_key")]
        indexes = [
            models.Index(fields=["state", "claimed_until"], name="group_by_state"),
            models.Index(fields=["run", "step"], name="group_by_step"),
            models.Index(fields=["run", "state"], name="group_by_run_and_state"),
            models.Index(fields=["state", "id"], condition=Q(held=True), name="group_held"),
            # asked every two seconds: a few rows, however long the run
            models.Index(
                fields=["state", "id"],
                condition=Q(completed_at__isnull=False, inspected_at=None),
                name="group_uninspected",
            ),
            # the orders and filters of the explorer: a page's work must not grow with the run
            models.Index(fields=["step", "id"], name="group_in_order_of_steps"),
            models.Index(BY_INFLUENCE.desc(), F("id").desc(), name="group_in_order_of_influence"),
            models.Index(fields=["tiers", "id"], name="group_by_tiers"),
            models.Index(fields=["end_reason", "id"], condition=~Q(end_reason=""), name="group_by_end"),
        ]

    def __str__(self) -> str:
        return self.key

    @property
    def is_open(self) -> bool:
        return self.state in OPEN

    @property
    def deadline(self) -> datetime | None:
        """The earliest deadline that applies in this state; the database's clock decides when it has passed."""
        phase = {GroupState.COLLECTING: self.collect_by, GroupState.COMPLETE: self.grade_by}
        phase |= {GroupState.GRADING: self.grade_by, GroupState.GRADED: self.review_by}
        phase |= {GroupState.UNGRADED: self.review_by}
        wanted = self.wanted_by if self.state != GroupState.COLLECTING else None
        return min((at for at in (phase.get(self.state), wanted) if at), default=None)

    def move(self, to: GroupState, *, by: str, reason: str = "", details: dict | None = None, **fields) -> None:
        """Move to `to`, set `fields` with it and record who did it, or raise WrongState.

        The UPDATE names the state we read: of two workers one wins and the other raises.
        """
        here = GroupState(self.state)
        if to not in MOVES[here]:
            raise WrongState(f"group {self.key} is {here} and cannot become {to}")
        with transaction.atomic():
            unmoved = RolloutGroup.objects.filter(pk=self.pk, state=here, version=self.version)
            if not unmoved.update(state=to, **fields):
                raise WrongState(f"group {self.key} left {here} while we looked: reload and try again")
            self.note(to, by=by, reason=reason, details=details)
        self.state = to
        for name, value in fields.items():
            setattr(self, name, value)

    def note(self, to: str, *, by: str, reason: str = "", details: dict | None = None) -> None:
        """One history row. `to` equals the state where nothing moved."""
        GroupEvent.objects.create(group=self, old=self.state, new=to, by=by, reason=reason, details=details or {})

    def claim(self, *, by: str, lease_s: int) -> bool:
        """Take the group for grading. False when another worker holds it.

        A lease, not a lock: a worker that dies leaves nothing stuck.
        """
        now = clock.now()
        with transaction.atomic():
            free = RolloutGroup.objects.gradable(now).filter(pk=self.pk)
            here = free.locked().values_list("state", flat=True).first()  # not what we read before: it may be older
            taken = here and free.update(
                state=GroupState.GRADING,
                claimed_until=now + timedelta(seconds=lease_s),
                claimed_by=by,
                fencing=F("fencing") + 1,
                grading_attempts=F("grading_attempts") + 1,
            )
            if not taken:
                return False
            self.refresh_from_db()
            GroupEvent.objects.create(
                group=self, old=here, new=GroupState.GRADING, by=by, reason=f"attempt {self.grading_attempts}"
            )
        return True

    def keep_claim(self, *, fencing: int, lease_s: int) -> None:
        """The heartbeat of a long grading. Raises LeaseLost when another worker took over."""
        until = clock.now() + timedelta(seconds=lease_s)
        ours = RolloutGroup.objects.filter(pk=self.pk, state=GroupState.GRADING, fencing=fencing)
        if not ours.update(claimed_until=until):
            raise LeaseLost(f"group {self.key} is no longer claimed with token {fencing}")


class GroupEvent(Frozen):
    """One line of a group's history: who, when, why, from what to what."""

    group = models.ForeignKey(RolloutGroup, models.PROTECT, related_name="events")
    old = models.CharField(max_length=12)
    new = models.CharField(max_length=12)
    by = models.CharField(max_length=150)
    reason = models.TextField(blank=True)
    details = models.JSONField(default=dict)
    at = models.DateTimeField(auto_now_add=True)

    objects = type(
        "GroupEventRows", (FrozenRows,), {"team_path": "group__run__team", "run_path": "group__run"}
    ).as_manager()

    class Meta:
        ordering = ["pk"]
