"""What the head of every page says of alerts."""

from django.utils.functional import SimpleLazyObject

from training_bridge.monitor import alerts


def alert_count(request) -> dict:
    """How many alerts fire. Counted only where a template asks."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {}
    return {"alert_count": SimpleLazyObject(lambda: alerts.count_for(user))}
