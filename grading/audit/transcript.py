"""A judged group of an audit as a page: what the grader read, asked and said, and the order that came of it.

The workspace was scrubbed before the grader saw it: the transcript knows letters alone. Arms are named once revealed.
"""

from collections.abc import Mapping

from django.urls import reverse

from grading.audit.reading import placed
from grading.models import AuditGroup, AuditVerdict
from grading.review.diffs.text import visible
from grading.review.pages.events import Book, event_page, overview, search
from grading.scoring.criteria import CRITERIA

NO_MARKS = {"cited": {}, "signals": {}}


def url_of(group: AuditGroup, n: int) -> str:
    return reverse("audit-transcript", args=[group.audit_id, group.code, n])


def book_of(verdict: AuditVerdict, n: int) -> Book:
    return Book(verdict.transcript, verdict.event_count, url_of(verdict.group, n))


def transcript_page(verdict: AuditVerdict, book: Book, query: Mapping[str, str]) -> dict:
    """Context of grading/audit_transcript.html."""
    words, group = query.get("q", "").strip()[:200], verdict.group
    tries = AuditVerdict.objects.filter(group=group).told().count()
    context = {
        "verdict": verdict,
        "group": group,
        "audit": group.audit,
        "page_url": book.url,
        "query": words,
        "hits": None,
        "problems": [{name: visible(str(said)) for name, said in one.items() if said} for one in verdict.problems[:50]],
        "facts": _facts(verdict),
        "criteria": CRITERIA,
        "candidates": _candidates(verdict),
        "tries": [{"n": n, "url": url_of(group, n)} for n in range(1, tries + 1)],
    } | overview(book, query, **NO_MARKS)
    return context | (search([book], words) if words else event_page(book, query, **NO_MARKS))


def _facts(verdict: AuditVerdict) -> list[tuple[str, str]]:
    """What it cost. Which model it was is told with the arms: both name who could know whom."""
    said = {
        "judged by": verdict.author.name if verdict.author else verdict.grader,
        "shown in the order": " ".join(map(str, verdict.order)) or "–",
        "time": "–" if verdict.duration_s is None else f"{verdict.duration_s:,.1f} s",
        "cost": "no price known" if verdict.cost_usd is None else f"${verdict.cost_usd:,.4f}",
        "events": f"{verdict.event_count:,}",
    }
    if verdict.group.audit.is_revealed:
        said |= {"model": verdict.model or "–", "prompt": verdict.prompt or "–"}
    return list(said.items())


def _cited(cited: dict) -> str:
    """A citation in words: what it shows, and where."""
    place = f"e{cited['event']}" if "event" in cited else f"{cited.get('path')}:{cited.get('line')}"
    quote = f" “{cited['quote'][:120]}”" if cited.get("quote") else ""
    return visible(f"{str(cited.get('about', '')).replace('_', ' ')}: {cited.get('result') or place}{quote}")


def _candidates(verdict: AuditVerdict) -> list[dict]:
    """Scores and places by letter, the best first; whose they are only once the audit is revealed."""
    places = placed(verdict)
    arms = {}
    if verdict.group.audit.is_revealed:
        arms = {one.letter: one.arm for one in verdict.group.candidates.select_related("arm")}
    rows = [
        {
            "letter": visible(str(one.get("id", "")))[:10],
            "scores": [one.get("scores", {}).get(criterion) for criterion in CRITERIA],
            "tier": places.get(one.get("id"), (None, None))[1],
            "place": places.get(one.get("id"), (None, None))[0],
            "arm": arms.get(one.get("id")),
            "reasons": [(criterion, visible(str(words))[:500]) for criterion, words in one.get("reasons", {}).items()],
            "cited": [_cited(cited) for cited in one.get("citations", ()) if isinstance(cited, dict)],
        }
        for one in verdict.reply.get("candidates", ())
        if isinstance(one, dict)
    ]
    return sorted(rows, key=lambda row: (row["place"] is None, row["place"] or 0, row["letter"]))
