"""One event in our smaller shape or as an ATIF step, in words: its kind, one line, its parts. Core."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from grading.integrity.events import command_text, event_text, is_acting, tool_names
from grading.review.diffs.text import visible
from grading.review.pages.ansi import plain
from grading.review.pages.images import without

KINDS = ("message", "action", "observation", "edit", "test", "submit", "system")
SOURCES = {"agent": "action", "user": "message", "system": "system", "environment": "observation"}
LINE_CHARS = 200
WRAPPER = re.compile(r"</?\w+>|<returncode>-?\d+</returncode>")  # how a scaffold frames what came back
READ_CHARS = 20_000  # of a text, to find its first line
EDITORS = frozenset("edit insert create str_replace_editor str_replace_based_edit_tool apply_patch write_file".split())
ENDINGS = frozenset({"submit", "finish"})
COMMAND_CHARS = 4_000  # of a command, to tell what it does
FIRST = (  # a command's beginning: settings before it, and what runs it
    r"(?:^|[;&|(]|\n)\s*(?:[A-Z_]{1,40}=\S{0,200}\s+)*"
    r"(?:(?:timeout|time|uv run|poetry run|python[\d.]*(?: -m)?)\s+(?:\d+s?\s+)?)*"
)
RUNNERS = r"pytest|py\.test|tox|nox|nosetests|unittest|ctest|rspec|jest|vitest|phpunit|runtests\.py|bin/test"
WITH_TEST = r"(?:go|cargo|npm|yarn|pnpm|make|mvn|gradle|dotnet|manage\.py)\s+(?:run\s+)?test"
TESTS = re.compile(rf"{FIRST}(?:[\w./-]{{0,100}}/)?(?:{RUNNERS}|{WITH_TEST})\b")
WRITERS = r"sed\s+(?:-\w+\s+)*-i|perl\s+-\w*i|apply_patch|git\s+apply|patch\s+-p|(?:cat|tee)\b[^\n]*<<"
EDITS = re.compile(f"{FIRST}(?:{WRITERS})")
LOOKS = re.compile(r"\s*(?:view|open|show)\b")
PARTS = 20  # fields of one call that are shown each by itself


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


def seen_kind(event: Mapping[str, Any]) -> str:
    """Returns: `kind_of`; an action that edits, tests or submits by its tool or command as that."""
    kind = kind_of(event)
    if kind != "action":
        return kind
    command, tools = command_text(event)[:COMMAND_CHARS], set(tool_names(event))
    if tools & ENDINGS:
        return "submit"
    if (tools & EDITORS and not LOOKS.match(command)) or EDITS.search(command):
        return "edit"
    return "test" if TESTS.search(command) else kind


def line_of(event: Mapping[str, Any]) -> str:
    """Returns: the first line that says something, at most 200 characters, nothing hidden in it."""
    text = command_text(event) if is_acting(event) else ""
    text = plain(without((text or event_text(event))[:READ_CHARS]))
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
    parts += _fields(_text(event.get("tool")) or "arguments", event.get("args"))
    for call in _list(event.get("tool_calls")):
        if isinstance(call, Mapping):
            parts += _fields(_text(call.get("function_name")) or "call", call.get("arguments"))
    observation = event.get("observation")
    results = observation.get("results") if isinstance(observation, Mapping) else observation
    for result in _list(results):
        content = result.get("content") if isinstance(result, Mapping) else result
        parts.append(Part("observation", _text(content)))
    return [Part(visible(part.title[:80]), part.text) for part in parts if part.text]


def _fields(title: str, arguments: Any) -> list[Part]:
    """What a call is given, field by field, so that a text with many lines is read as such a text."""
    if not isinstance(arguments, Mapping) or not 1 < len(arguments) <= PARTS:
        return [Part(title, _text(arguments))]
    return [Part(f"{title}: {name}", _text(value)) for name, value in arguments.items()]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _text(value: Any) -> str:
    """Text as it is; one text in an object as that text; anything else as JSON."""
    if value is None or value in ({}, []):
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and (image := _image(value)):
        return image
    if isinstance(value, Mapping) and len(value) == 1 and isinstance(only := next(iter(value.values())), str):
        return only
    if isinstance(value, list) and all(isinstance(v, Mapping) and _told(v) is not None for v in value):
        return "\n".join(_told(v) for v in value)
    return json.dumps(value, ensure_ascii=False, indent=2)


def _told(part: Mapping[str, Any]) -> str | None:
    """The text or the image of one part of a message, None for anything else."""
    text = part.get("text")
    return text if isinstance(text, str) else _image(part) or None


def _image(value: Mapping[str, Any]) -> str:
    """The data URL of an image in the shapes that models' messages have, "" where it is none."""
    url = value.get("image_url")
    url = url.get("url") if isinstance(url, Mapping) else url
    if isinstance(url, str) and url.startswith("data:"):
        return url
    source = value.get("source")
    if isinstance(source, Mapping) and source.get("type") == "base64" and isinstance(source.get("data"), str):
        return f"data:{source.get('media_type')};base64,{source['data']}"
    return ""
