"""Who looks at which held group, what each person answered, what they say beside it, and what was announced."""

from datetime import timedelta

from django.db import IntegrityError, models, transaction
from django.db.models import Q

from grading import clock
from grading.errors import Conflict
from grading.models.rows import Frozen, FrozenRows, team_rows


class ReviewClaim(models.Model):
    """One person at a group. It expires, so nobody is locked out by somebody who left."""

    group = models.OneToOneField("grading.RolloutGroup", models.CASCADE, related_name="review_claim")
    reviewer = models.ForeignKey("grading.User", models.CASCADE, related_name="+")
    until = models.DateTimeField()

    objects = team_rows("group__run__team", "group__run").as_manager()

    LASTS = timedelta(minutes=15)

    @classmethod
    def take(cls, group, reviewer) -> bool:
        """Claim for this reviewer, or renew. False while somebody else's claim lasts."""
        now = clock.now()
        free = cls.objects.filter(group=group).filter(Q(reviewer=reviewer) | Q(until__lt=now))
        if free.update(reviewer=reviewer, until=now + cls.LASTS):
            return True
        try:
            with transaction.atomic():
                cls.objects.create(group=group, reviewer=reviewer, until=now + cls.LASTS)
        except IntegrityError:
            return False
        return True

    @classmethod
    def refuse_others(cls, group, reviewer) -> None:
        """Raise Conflict while somebody else's claim lasts."""
        other = cls.objects.filter(group=group, until__gte=clock.now()).exclude(reviewer=reviewer)
        if claim := other.select_related("reviewer").first():
            raise Conflict(f"{claim.reviewer.name} holds group {group.key} until {claim.until:%H:%M} UTC at the latest")

    @classmethod
    def release(cls, group, reviewer) -> None:
        cls.objects.filter(group=group, reviewer=reviewer).delete()


class Review(models.Model):
    """One person's own answer about a held group. While it is open it may be a seat; once it is in, it stays."""

    class State(models.TextChoices):
        OPEN = "open"
        SUBMITTED = "submitted"
        DECLINED = "declined"  # outlives every claim: the queue does not offer the group to them again

    group = models.ForeignKey("grading.RolloutGroup", models.CASCADE, related_name="reviews")
    reviewer = models.ForeignKey("grading.User", models.CASCADE, related_name="reviews")
    state = models.CharField(max_length=9, choices=State, default=State.OPEN)
    until = models.DateTimeField(null=True)  # open: one of the group's seats is theirs until then
    started_at = models.DateTimeField(null=True)  # null: answered without having claimed
    submitted_at = models.DateTimeField(null=True)
    attention_s = models.FloatField(null=True)  # the page in front of somebody who did something; null: not measured
    is_blind = models.BooleanField(default=False)  # an order was given before any verdict was shown
    blind = models.JSONField(null=True)  # {"order": [[external_id, …], …], "flags": {id: […]}, "tiers": {id: 1..3}}
    ranked_at = models.DateTimeField(null=True)  # when the blind order was given; the verdict is shown from then on
    seen_verdict = models.ForeignKey("grading.Verdict", models.PROTECT, null=True, related_name="+")
    answer = models.JSONField(null=True)  # {"reply": the one verdict shape, "ranking": {"T1": …}, "is_changed": bool}
    notes = models.TextField(blank=True)
    verdict = models.ForeignKey("grading.Verdict", models.PROTECT, null=True, related_name="reviews")  # what it became

    objects = team_rows("group__run__team", "group__run").as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["group", "reviewer"], name="one_review_per_reviewer")]
        indexes = [models.Index(fields=["reviewer", "state", "submitted_at"], name="review_by_reviewer")]


class Comment(Frozen):
    """What somebody says about a group; text, never HTML."""

    group = models.ForeignKey("grading.RolloutGroup", models.PROTECT, related_name="comments")
    author = models.ForeignKey("grading.User", models.PROTECT, related_name="+")
    text = models.TextField()
    at = models.DateTimeField(auto_now_add=True)

    objects = type(
        "CommentRows", (FrozenRows,), {"team_path": "group__run__team", "run_path": "group__run"}
    ).as_manager()

    class Meta:
        ordering = ["pk"]


class Notice(Frozen):
    """One message to a run's webhook: held groups near their deadline. Sent once, also where it failed."""

    run = models.ForeignKey("grading.Run", models.PROTECT, related_name="notices")
    url = models.CharField(max_length=300)
    groups = models.PositiveIntegerField()
    is_sent = models.BooleanField()
    words = models.CharField(max_length=300, blank=True)  # what the host answered, or why nothing went out
    at = models.DateTimeField(auto_now_add=True)

    objects = type("NoticeRows", (FrozenRows,), {"team_path": "run__team", "run_path": "run"}).as_manager()

    class Meta:
        ordering = ["pk"]
