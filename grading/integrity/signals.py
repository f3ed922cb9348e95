"""What a detector says: a hint with its place. A hint alone never changes a reward. Core."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from grading.review.anchors import Citation
from grading.review.diffs.patch import FilePatch, Line
from grading.review.diffs.text import line_text

Strength = Literal["strong", "weak"]
Events = Iterable[Mapping[str, Any]]
QUOTE_CHARS = 160


@dataclass(frozen=True, slots=True)
class Signal:
    """One hint. `detector` is its name in the registry (H1…), `words` one sentence for a person.

    `place` is a citation that resolves; None where none can point: a pure rename, a line of the test log.
    """

    detector: str
    strength: Strength
    candidate: str
    place: Citation | None
    words: str

    def to_json(self) -> dict[str, Any]:
        """Returns: a JSON-able mapping; `place` as `Citation.from_json` reads it."""
        return {
            "detector": self.detector,
            "strength": self.strength,
            "candidate": self.candidate,
            "place": self.place.to_json() if self.place else None,
            "words": self.words,
        }


def line_place(candidate: str, file: FilePatch, line: Line | None) -> Citation | None:
    """Cite one changed line.

    Args:
        candidate: its id.
        file: the file that holds the line.
        line: a changed line, or None.
    Returns:
        A citation by path, side and number; None without a line, or where a combined diff gives it no number.
    """
    if line is None or line.number is None or not file.path_on(line.side):
        return None
    return Citation("patch_line", candidate, path=file.path_on(line.side), side=line.side, line=line.number)


def event_place(candidate: str, index: int, text: str, start: int, end: int) -> Citation | None:
    """Cite words of an event: the match and what stands around it on the same line.

    Args:
        candidate: its id.
        index: the event's number from 0.
        text: the event's text, or a part of it.
        start, end: character range of the match in `text`.
    Returns:
        A citation whose quote is a piece of `text`; None if that piece is blank.
    """
    room = max(0, QUOTE_CHARS - (end - start)) // 2
    first = max(text.rfind("\n", 0, start) + 1, start - room)
    line_end = text.find("\n", end)
    last = min(len(text) if line_end < 0 else line_end, end + room, first + QUOTE_CHARS)
    quote = text[first:last].strip()
    return Citation("event", candidate, event=index, quote=quote) if quote else None


def changed_text(line: Line) -> str:
    """Returns: a line as text without the white space around it, at most 2,000 characters of it."""
    return line_text(line.content[:2000]).strip()
