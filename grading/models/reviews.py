"""Who looks at which held group right now."""

from datetime import timedelta

from django.db import IntegrityError, models, transaction
from django.db.models import Q

from grading import clock
from grading.errors import Conflict
from grading.models.rows import team_rows


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
