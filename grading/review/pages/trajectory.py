"""The trajectory page: what stands around a rollout's events. The events themselves are in `events`."""

from django.urls import reverse

from grading.models import Signal, Trajectory
from grading.review.pages import evidence
from grading.review.pages.columns import no_events_words
from grading.review.pages.events import Book, event_page, overview, search, walks
from grading.review.pages.sitting import Sitting
from grading.templatetags.figures import words as plain_words


def book_of(sitting: Sitting, trajectory: Trajectory) -> Book:
    cite = reverse("group", args=[sitting.group.pk]) if sitting.is_reviewer else ""
    url = reverse("trajectory", args=[sitting.group.pk, trajectory.letter])
    return Book(trajectory.event_body, trajectory.event_count or 0, url, trajectory.letter, cite)


def marks_of(sitting: Sitting, trajectory: Trajectory) -> dict:
    """Which events the newest verdict cites, and to which a detector points."""
    signals: dict[int, list[str]] = {}
    for place, detector in Signal.objects.filter(trajectory=trajectory).values_list("place", "detector"):
        if isinstance(event := place.get("event"), int):
            signals.setdefault(event, []).append(detector)
    return {"cited": evidence.cited_events(sitting, trajectory), "signals": signals}


def trajectory_page(sitting: Sitting, trajectory: Trajectory, query: dict) -> dict:
    """The whole context of grading/trajectory.html."""
    words, search_in = query.get("q", "").strip()[:200], query.get("in", "this")
    book, marks = book_of(sitting, trajectory), marks_of(sitting, trajectory)
    signals = Signal.objects.filter(trajectory=trajectory).order_by("-is_strong", "pk")
    cited = [evidence.item(sitting, e, trajectory, e.number, ()) for e in evidence.split(sitting, trajectory)[0]]
    context = {
        "group": sitting.group,
        "letter": trajectory.letter,
        "outcome": trajectory.outcome,
        "integrity": trajectory.integrity,
        "event_count": trajectory.event_count,
        "letters": [{"letter": letter} for letter in sorted(sitting.by_letter, key=lambda one: (len(one), one))],
        "page_url": book.url,
        "query": words,
        "search_in": search_in,
        "may_search_all": True,
        "hits": None,
        "no_events_words": no_events_words(trajectory),
        "walks": walks(query, **marks),
        "cited": [item for item in cited if item["href"].startswith(book.url)],
        "facts": facts(sitting, trajectory),
        "signals": evidence.signal_rows(sitting, trajectory, signals, ()),
        "log_url": reverse("trajectory-log", args=[sitting.group.pk, trajectory.letter]) if trajectory.log else "",
        "log_bytes": trajectory.log_bytes,
    } | overview(book, query, **marks)
    if words:
        searched = sitting.trajectories if search_in == "all" else [trajectory]
        return context | search([book_of(sitting, one) for one in searched], words)
    return context | event_page(book, query, **marks)


def _count_words(value) -> str:
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else value


def facts(sitting: Sitting, trajectory: Trajectory) -> list[dict]:
    """Counts of the rollout; who it is and which model made it only once the group is decided."""
    found = {"patch": f"{trajectory.patch_bytes:,} bytes" if trajectory.patch else "none"}
    found |= {name: _count_words(value) for name, value in trajectory.counts.items()}
    if trajectory.is_truncated:
        found["truncated"] = "yes"
    if trajectory.reward:
        found["reward"] = trajectory.reward
    if trajectory.problem:
        found["problem"] = plain_words(trajectory.problem)
    if sitting.is_revealed:
        found |= {"rollout": trajectory.external_id, **trajectory.extra}
    return [{"name": plain_words(name), "value": value} for name, value in found.items()]
