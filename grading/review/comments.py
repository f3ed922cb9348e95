"""People talk about a group beside its verdicts. A comment decides nothing and is never edited."""

from django.db import transaction

from grading import wake
from grading.errors import BadInput
from grading.models import Comment, RolloutGroup

LONGEST = 10_000


@transaction.atomic
def add(group: RolloutGroup, *, user, text: str) -> Comment:
    """Say something about a group. Raises BadInput where nothing is said or too much."""
    if not text.strip() or len(text) > LONGEST:
        raise BadInput("no comment", got=f"{len(text.strip())} characters", expected=f"1 to {LONGEST}")
    comment = Comment.objects.create(group=group, author=user, text=text)
    wake.pages(group.run_id)
    return comment
