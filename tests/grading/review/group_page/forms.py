"""Addresses of a group's page and what its own form posts."""

from django.urls import reverse

from grading.review import decisions
from grading.scoring.criteria import CRITERIA

EVENTS = [{"kind": "action", "text": "cat hidden_tests.py"}, {"kind": "submit", "text": "done"}]


def url(name: str, group, *args) -> str:
    return reverse(name, args=[group.pk, *args])


def form(group, **changes) -> dict:
    """What the page's own form posts when nothing is changed, with these changes."""
    fields = {"verdict": decisions.newest_verdict(group).pk, "reason": "too wide"}
    for placed in decisions.newest_verdict(group).candidates.select_related("trajectory"):
        letter = placed.trajectory.letter
        fields |= {f"score-{letter}-{criterion}": placed.scores[criterion] for criterion in CRITERIA}
        fields |= {f"place-{letter}": placed.rank + 1}
        fields |= {f"flag-{letter}": placed.flags} if placed.flags else {}
    cite = {"letter": "A", "about": "minimality", "kind": "new", "place": "app.py:2", "quote": ""}
    return fields | {f"cite-1-{part}": value for part, value in cite.items()} | changes
