"""What the bridge adds to the explorer of groups: the regime, from the sums it keeps of each newest delivery."""

from django.db.models import QuerySet

from grading.review.pages.explorer import CHOICES, Choice
from training_bridge.models import Payout
from training_bridge.redistribution.regimes import REGIMES


def add() -> None:
    CHOICES["regime"] = Choice("regime", dict(zip(REGIMES, REGIMES, strict=True)), _paid)


def _paid(rows: QuerySet, value: str) -> QuerySet:
    return rows.filter(pk__in=Payout.objects.filter(regime=value).values("group"))
