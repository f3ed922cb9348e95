"""The log of a candidate's evaluation: lines with addresses. What a line shows is cited as the result it belongs to."""

from collections.abc import Iterable, Mapping
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.safestring import mark_safe

from grading import bodies
from grading.grader.material import OUTCOME
from grading.models import Trajectory
from grading.review.pages.ansi import to_html
from grading.review.pages.events import number
from grading.review.pages.sitting import Sitting

LINES_AT_ONCE = 1_000
BEFORE = 50  # lines above the one asked for
LINE_BYTES = 2_000  # of one line that are shown


def log_page(sitting: Sitting, trajectory: Trajectory, query: Mapping[str, str]) -> dict:
    """Context of grading/log.html; reads the log once, keeps one page of it."""
    line, start = number(query.get("line")), number(query.get("start"))
    first = max(line - BEFORE, 1) if line else max(start or 1, 1)
    kept, total = lines_between(bodies.read_stream(trajectory.log), first, first + LINES_AT_ONCE)
    url = reverse("trajectory-log", args=[sitting.group.pk, trajectory.letter])
    last = first + len(kept) - 1
    return {
        "group": sitting.group,
        "letter": trajectory.letter,
        "outcome": trajectory.outcome,
        "integrity": trajectory.integrity,
        "bytes": trajectory.log_bytes,
        "total": total,
        "line": line,
        "lines": _rows(sitting, trajectory, kept, first),
        "whole_url": f"{url}?part=whole",
        "before_url": f"{url}?start={max(first - LINES_AT_ONCE, 1)}" if first > 1 else "",
        "after_url": f"{url}?start={last + 1}" if kept and last < total else "",
        "cite_url": _cite_url(sitting, trajectory, OUTCOME) if sitting.is_reviewer else "",
    }


def lines_between(chunks: Iterable[bytes], first: int, stop: int) -> tuple[list[tuple[bytes, int]], int]:
    """Find lines by their numbers, from 1 on.

    Args:
        chunks: the log in pieces.
        first: number of the first line that is kept.
        stop: number after the last one.
    Returns:
        The beginning of each kept line with its length in bytes, and how many lines there are.
    """
    kept, at, held, size = [], 1, b"", 0

    def end() -> None:
        if first <= at < stop:
            kept.append((held, size))

    for chunk in chunks:
        here = chunk.split(b"\n")
        for n, piece in enumerate(here):
            if n:
                end()
                at, held, size = at + 1, b"", 0
            size += len(piece)
            if first <= at < stop and len(held) < LINE_BYTES:
                held += piece[: LINE_BYTES - len(held)]
    if size:
        end()
    return kept, at if size else at - 1


def _rows(sitting: Sitting, trajectory: Trajectory, kept: list[tuple[bytes, int]], first: int) -> list[dict]:
    texts = [held.decode("utf-8", errors="replace") for held, _ in kept]
    shown = to_html("\n".join(texts)).split("\n") if kept else []  # at once: a colour may last over many lines
    names = {str(test["name"]) for test in trajectory.tests}
    rows = []
    for n, (html, text, (held, size)) in enumerate(zip(shown, texts, kept, strict=True), first):
        result = next((word for word in text.split() if word.strip(",:;") in names), "").strip(",:;") if names else ""
        rows.append(
            {
                "n": n,
                "html": mark_safe(html),  # noqa: S308  (ansi escapes)
                "more": size - len(held),
                "result": result,
                "cite_url": _cite_url(sitting, trajectory, result) if result and sitting.is_reviewer else "",
            }
        )
    return rows


def _cite_url(sitting: Sitting, trajectory: Trajectory, result: str) -> str:
    cite = {"right": trajectory.letter, "cite_letter": trajectory.letter, "cite_kind": "result", "cite_place": result}
    return f"{reverse('group', args=[sitting.group.pk])}?{urlencode(cite)}"
