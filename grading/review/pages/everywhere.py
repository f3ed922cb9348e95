"""What the head of every page says."""

from django.utils.functional import SimpleLazyObject

from grading.review import queue


def queue_count(request) -> dict:
    """How many groups wait for a person. Counted only where a template asks."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {}
    return {"queue_count": SimpleLazyObject(lambda: queue.count_for(user))}
