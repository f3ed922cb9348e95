"""What a person cites in an audit: places in the scrubbed rollouts, checked before it is stored."""

from collections.abc import Iterator, Sequence

from grading.audit.workspace import AuditWorkspace
from grading.grader.shape import Cited
from grading.review.anchors import resolve
from grading.review.correction_form import PostedCitation
from grading.scoring.criteria import CRITERIA, FLAGS

ABOUT = (*CRITERIA, *FLAGS)
ROWS = 2  # empty ones of the form; the page adds more


def lost(cited: Sequence[PostedCitation], workspace: AuditWorkspace) -> Iterator[str]:
    """What is wrong with each citation, in sentences."""
    for one in cited:
        if one.error:
            yield f"Citation {one.n}: {one.error}."
        elif one.letter not in workspace.shown:
            yield f"Citation {one.n}: {one.letter[:10]!r} is no candidate here."
        elif one.about not in ABOUT:
            yield f"Citation {one.n} shows a criterion or a flag, nothing else."
        elif why := _lost(one, workspace):
            yield f"Citation {one.n}: {why}."


def _lost(one: PostedCitation, workspace: AuditWorkspace) -> str:
    shown = workspace.shown[one.letter]
    found = resolve(
        one.citation, patch=shown.parsed, event_text=shown.event_text, event_count=shown.event_count,
        results={test["name"] for test in shown.tests},
    )  # fmt: skip
    return "" if found.resolves else f"{found.why} ({one.letter}, {one.place[:80]})"


def of_letter(cited: Sequence[PostedCitation], letter: str) -> tuple[Cited, ...]:
    return tuple(Cited(one.about, one.citation) for one in cited if one.letter == letter and one.citation)


def rows(cited: Sequence[PostedCitation]) -> list[dict]:
    """The rows of the form: what was typed, then empty ones."""
    typed = [
        {"letter": one.letter, "about": one.about, "kind": one.kind, "place": one.place, "quote": one.quote}
        for one in cited
    ]
    empty = {"letter": "", "about": "", "kind": "new", "place": "", "quote": ""}
    return [{"n": n, **row} for n, row in enumerate([*typed, *[empty] * ROWS], 1)]
