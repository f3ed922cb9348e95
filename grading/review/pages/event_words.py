"""One event in our smaller shape or as an ATIF step, in words: its kind, one line, its parts. Core."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from grading.integrity.events import command_text, event_text, is_acting
from grading.review.diffs.text import visible
from grading.review.pages.ansi import plain

KINDS = ("message", "action", "observation", "edit", "test", "submit", "system")
SOURCES = {"agent": "action", "user": "message", "system": "system", "environment": "observation"}
LINE_CHARS = 200
WRAPPER = re.compile(r"</?\w+>|<returncode>-?\d+</returncode>")  # how a scaffold frames what came back
READ_CHARS = 20_000  # of a text, to find its first line


@dataclass(frozen=True)
class Part:
    title: str
    text: str


def kind_of(event: Mapping[str, Any]) -> str:
    """Returns: one of KINDS."""
    kind = event.get("kind")
    if kind in KINDS:
        return kind
    source = event.get("source")
    if source == "agent" and not event.get("tool_calls"):
        return "message"
    return SOURCES.get(source, "message") if isinstance(source, str) else "message"


def line_of(event: Mapping[str, Any]) -> str:
    """Returns: the first line that says something, at most 200 characters, nothing hidden in it."""
    text = command_text(event) if is_acting(event) else ""
    text = plain((text or event_text(event))[:READ_CHARS])
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    line = next((line for line in lines if not WRAPPER.fullmatch(line)), lines[0] if lines else "")
    line = visible(" ".join(line.split()))
    return line if len(line) <= LINE_CHARS else f"{line[: LINE_CHARS - 1]}…"


def exit_code_of(event: Mapping[str, Any]) -> int | None:
    """Returns: the exit code of what ran, None where there is none."""
    code = event.get("exit_code")
    return code if type(code) is int else None


def time_of(event: Mapping[str, Any]) -> str:
    """Returns: the time of day, or "" where the event has no readable one."""
    at = event.get("at", event.get("timestamp"))
    try:
        return f"{datetime.fromisoformat(at):%H:%M:%S}" if isinstance(at, str) else ""
    except ValueError:
        return ""


def parts_of(event: Mapping[str, Any]) -> list[Part]:
    """Cut an event into what was said, what was called, and what came back.

    Args:
        event: our smaller shape or an ATIF step.
    Returns:
        The parts that have text, in reading order.
    """
    said = _text(event.get("text", event.get("message")))
    parts = [Part(_text(event.get("role")), said)]
    thought = _text(event.get("reasoning_content"))
    parts.append(Part("reasoning", thought))
    parts.append(Part(_text(event.get("tool")) or "arguments", _text(event.get("args"))))
    for call in _list(event.get("tool_calls")):
        if isinstance(call, Mapping):
            parts.append(Part(_text(call.get("function_name")) or "call", _text(call.get("arguments"))))
    observation = event.get("observation")
    results = observation.get("results") if isinstance(observation, Mapping) else observation
    for result in _list(results):
        content = result.get("content") if isinstance(result, Mapping) else result
        parts.append(Part("observation", _text(content)))
    return [Part(visible(part.title[:80]), part.text) for part in parts if part.text]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _text(value: Any) -> str:
    """Text as it is; one text in an object as that text; anything else as JSON."""
    if value is None or value in ({}, []):
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and len(value) == 1 and isinstance(only := next(iter(value.values())), str):
        return only
    if isinstance(value, list) and all(isinstance(v, Mapping) and isinstance(v.get("text"), str) for v in value):
        return "\n".join(v["text"] for v in value)
    return json.dumps(value, ensure_ascii=False, indent=2)
