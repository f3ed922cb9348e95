"""A grading as a page: what it cost, what was wrong, the checks it ran, and its transcript read like a trajectory."""

from django.urls import reverse

from grading.models import Check, Grading
from grading.review.pages.events import Book, event_page, overview, search

NO_MARKS = {"cited": {}, "signals": {}}


def book_of(grading: Grading) -> Book:
    return Book(grading.transcript, grading.event_count, reverse("grading", args=[grading.pk]))


def transcript_page(grading: Grading, letter_of: dict[str, str], query: dict, *, is_revealed: bool) -> dict:
    """Context of grading/transcript.html. Until the group is decided nobody learns which model graded it."""
    words, book = query.get("q", "").strip()[:200], book_of(grading)
    context = {
        "grading": grading,
        "group": grading.group,
        "is_revealed": is_revealed,
        "page_url": book.url,
        "query": words,
        "hits": None,
        "problems": grading.problems[:50],
        "facts": _facts(grading, is_revealed=is_revealed),
        "checks": [_check(check, letter_of) for check in grading.checks.select_related("trajectory")],
    } | overview(book, query, **NO_MARKS)
    return context | (search([book], words) if words else event_page(book, query, **NO_MARKS))


def _order(order: list) -> str:
    """Letters as they were shown; of a grading in several orders, one order after the other."""
    several = order if any(isinstance(one, list) for one in order) else [order]
    return " / ".join(" ".join(one) for one in several)


def _facts(grading: Grading, *, is_revealed: bool) -> list[dict]:
    cost = "no price known" if grading.cost_usd is None else f"${grading.cost_usd:,.4f}"
    found = {
        "grader": grading.grader,
        "attempt": grading.attempt,
        "order": _order(grading.order) or "—",
        "turns": f"{grading.turns:,}",
        "tool calls": f"{grading.tool_calls:,}",
        "calls tried again": f"{grading.retries:,}",
        "input tokens": f"{grading.input_tokens:,} ({grading.cached_tokens:,} from cache)",
        "output tokens": f"{grading.output_tokens:,}",
        "cost": cost,
        "time": "—" if grading.duration_s is None else f"{grading.duration_s:,.1f} s",
        "prompt": grading.prompt or "—",
        "asked by": grading.asked_by or "by itself",
    }
    if grading.flips is not None:
        found["flipped pairs"] = f"{grading.flips:.0%}"
    if is_revealed and grading.model:
        found |= {"model": grading.model, "endpoint": grading.endpoint or "—"}
    return [{"name": name, "value": value} for name, value in found.items()]


def _check(check: Check, letter_of: dict[str, str]) -> dict:
    whose = letter_of.get(check.trajectory.external_id, "") if check.trajectory else ""
    return {
        "check": check,
        "letter": whose,
        "command": " ".join(str(word) for word in check.asked.get("argv", ()))[:500],
        "url": reverse("check-output", args=[check.group_id, check.pk]) if check.output else "",
    }
