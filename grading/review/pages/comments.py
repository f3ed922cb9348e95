"""What people say about a group, as its page shows it."""

from grading.models import Comment
from grading.review.pages.sitting import Sitting

NEWEST = 200


def visible(sitting: Sitting):
    """The comments this person may read now: others' stay hidden as long as others' answers do."""
    rows = Comment.objects.filter(group=sitting.group).select_related("author").order_by("pk")
    return rows.filter(author=sitting.user) if sitting.hides_others else rows


def comments_of(sitting: Sitting) -> dict:
    """Context of grading/_comments.html: the newest ones, in their order."""
    found = list(visible(sitting).order_by("-pk")[: NEWEST + 1])
    return {
        "rows": found[:NEWEST][::-1],
        "is_cut": len(found) > NEWEST,
        "hides_others": sitting.hides_others,
        "may_comment": sitting.is_reviewer,
    }
