"""Held groups near their deadline, as every page says them to who may decide there."""

from grading import clock
from grading.models import Role, RolloutGroup
from grading.review import notices

NAMED = 8


def near_page(user, *, but: int | None = None) -> dict:
    """Context of grading/_near.html; `but` is the group whose own page asks, which has its own clock."""
    now = clock.now()
    mine = RolloutGroup.objects.visible_to(user, Role.REVIEWER).exclude(pk=but)
    near = [group for group in notices.near(now, mine).select_related("task") if notices.is_near(group, now)]
    shown = [{"group": g, "left_s": (g.deadline - now).total_seconds()} for g in near[:NAMED]]
    return {"near": shown, "near_count": len(near)}
