"""Our own `events.jsonl`: one event a line, in our shape or as an ATIF step, of any length, read as a stream."""

from collections.abc import Iterator
from pathlib import Path

from grading.errors import BadInput
from grading.importers.reading import LINE_LIMIT_BYTES, lines_of
from grading.importers.record import Dropped, EventStream, Unlinked
from grading.integrity.events import ACTING
from grading.storable import parse_json

NAME = "events.jsonl"


def stream(path: Path) -> EventStream:
    """The events of a file. A line that is no JSON object, or over the limit, is dropped and counted."""
    return EventStream(lambda: _events(path))


def _events(path: Path) -> Iterator[dict | Dropped | Unlinked]:
    acted = False  # something was done that no observation has answered
    for line in lines_of(path):
        if line is None:
            yield Dropped(f"line longer than {LINE_LIMIT_BYTES} bytes")
            continue
        try:
            event = parse_json(line, where="line")
        except BadInput as e:
            yield Dropped(e.what)
            continue
        if not isinstance(event, dict):
            yield Dropped("line is no object")
        elif event.get("kind") == "observation" and not acted:
            yield Unlinked(event)
        else:
            acted = acted or event.get("kind") in ACTING
            yield event
