"""The verdict in a model's final words: one JSON object, however it is wrapped. Core."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

STARTS = 20  # opening braces tried; prose full of them is no verdict
THOUGHT = re.compile(r"\A\s*(?:<think(?:ing)?>.*?|[^{]*?)</think(?:ing)?>", re.DOTALL)  # where a server leaves it in
TOKEN = re.compile(r'["{}\\]')


class Found(NamedTuple):
    """The text of the object; what stood around it, in words for the transcript; how many looked like a verdict."""

    text: str
    around: str = ""
    verdicts: int = 1


def last_object(said: str) -> Found:
    """Find the verdict in an answer.

    Args:
        said: the model's own final words, and nothing else: candidate text must never come in here. Thinking that the
            server did not set apart is left out.
    Returns:
        The last complete top-level object that has `candidates`, else the last complete one, else all words.
        With more than one that has `candidates`, nobody can say which is meant: `verdicts` is their number.
    """
    stripped = THOUGHT.sub("", said).strip()
    spans = list(_objects(stripped))
    if not spans:
        return Found(stripped)
    texts = [stripped[start:stop] for start, stop in spans]
    verdicts = [n for n, text in enumerate(texts) if _looks_like_verdict(text)]
    n = verdicts[-1] if verdicts else len(texts) - 1
    start, stop = spans[n]
    rest = (stripped[:start] + stripped[stop:]).replace("```json", "").replace("```", "").strip()
    around = f"{len(rest)} characters stood around the verdict and were not read" if rest else ""
    return Found(texts[n], around, max(1, len(verdicts)))


def _objects(text: str) -> Iterator[tuple[int, int]]:
    """Spans of complete objects that stand in no other one. A brace that nothing closes is passed over."""
    at, tries = text.find("{"), 0
    while at >= 0 and tries < STARTS:
        tries += 1
        stop = _closed_at(text, at)
        if stop is not None:
            yield at, stop
        at = text.find("{", stop if stop is not None else at + 1)


def _closed_at(text: str, start: int) -> int | None:
    """Where the object that begins at `start` is closed, braces inside strings not counted."""
    depth, is_string, position = 0, False, start
    while found := TOKEN.search(text, position):
        token, position = found[0], found.end()
        if is_string:
            position += token == "\\"  # whatever is escaped, a quote too
            is_string = token != '"'
        elif token == '"':
            is_string = True
        elif token in "{}":
            depth += 1 if token == "{" else -1
            if depth == 0:
                return position
    return None


def _looks_like_verdict(text: str) -> bool:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return '"candidates"' in text
    return isinstance(value, dict) and "candidates" in value
