"""Who changed a run's settings, and when."""

from grading.models import Run
from grading.review.forms import LABELS
from grading.review.forms_grader import LABELS as OF_GRADER

NEWEST = 20


def settings_history(run: Run) -> list[dict]:
    """The newest changes first, each in words."""
    events = run.events.order_by("-pk")[:NEWEST]
    return [
        {
            "at": event.at,
            "by": event.by,
            "says": " · ".join(_words(name, *pair) for name, pair in event.changes.items()),
        }
        for event in events
    ]


def _words(name: str, old, new) -> str:
    label = LABELS.get(name) or OF_GRADER.get(name, [name.capitalize()])[0]
    return f"{label}: {_value(new)}" if old is None else f"{label}: {_value(old)} → {_value(new)}"


def _value(value) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
