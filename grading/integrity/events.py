"""The words of one event, in our smaller shape or as an ATIF step: all who quote events mean these. Core."""

from collections.abc import Mapping
from typing import Any

ACTING = ("action", "edit", "test", "submit")
OWN_ROLES = ("assistant", "agent")


def event_text(event: Mapping[str, Any]) -> str:
    """Give all text of an event in reading order; a quote of it is what a citation may hold.

    Args:
        event: our smaller shape (`kind`, `text`, `tool`, `args`…) or an ATIF step (`source`, `message`, `tool_calls`,
            `observation`).
    Returns:
        The parts one below the other; empty if the event says nothing.
    """
    parts = [done_text(event)] if is_acting(event) else _texts(event.get("text", event.get("message")))
    parts += [t for result in _results(event.get("observation")) for t in _texts(result)]
    return "\n".join(part for part in parts if part)


def is_acting(event: Mapping[str, Any]) -> bool:
    """Whether the candidate did something here: what it only read or was told is not its doing."""
    return event.get("kind") in ACTING or event.get("source") == "agent"


def done_text(event: Mapping[str, Any]) -> str:
    """Give what an acting event says and does: its words, tools and arguments, without what came back."""
    parts = _texts(event.get("text", event.get("message"))) + _texts(event.get("tool")) + _texts(event.get("args"))
    calls = event.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        if isinstance(call, Mapping):
            parts += _texts(call.get("function_name")) + _texts(call.get("arguments"))
    return "\n".join(part for part in parts if part)


def command_text(event: Mapping[str, Any]) -> str:
    """Give what an acting event runs: the arguments of its tools, or its text where there are none and that is all."""
    if event.get("source") == "agent":
        calls = event.get("tool_calls")
        arguments = [call.get("arguments") for call in _results(calls) if isinstance(call, Mapping)]
        return "\n".join(_texts(arguments))
    return "\n".join(_texts(event.get("args")) or _texts(event.get("text")))


def prose_text(event: Mapping[str, Any]) -> str:
    """Give what the candidate says in its own words: an acting event's or its own message's, commands left out."""
    kind = event.get("kind")
    own = kind in ("thought", "plan") or (kind != "observation" and event.get("role") in OWN_ROLES)
    if not (is_acting(event) or own):
        return ""
    return "\n".join(_texts(event.get("text", event.get("message"))))


def heard_text(event: Mapping[str, Any]) -> str:
    """Give what the candidate was told or shown, without what it said or did itself."""
    parts = [] if prose_text(event) or is_acting(event) else _texts(event.get("text", event.get("message")))
    parts += [t for result in _results(event.get("observation")) for t in _texts(result)]
    return "\n".join(part for part in parts if part)


def tool_names(event: Mapping[str, Any]) -> list[str]:
    """Returns: the names of the tools that an acting event uses."""
    calls = event.get("tool_calls")
    called = [call.get("function_name") for call in _results(calls) if isinstance(call, Mapping)]
    return _texts(event.get("tool")) + _texts(called)


def _results(observation: Any) -> list[Any]:
    results = observation.get("results") if isinstance(observation, Mapping) else observation
    return results if isinstance(results, list) else [results]


def _texts(value: Any) -> list[str]:
    """Flatten text, numbers, lists and mappings to their texts, at most eight levels deep."""
    found: list[str] = []
    pending: list[tuple[Any, int]] = [(value, 0)]
    while pending:
        here, depth = pending.pop()
        if isinstance(here, str):
            found.append(here)
        elif isinstance(here, bool) or here is None or depth == 8:
            continue
        elif isinstance(here, int | float):
            found.append(str(here))
        elif isinstance(here, Mapping):
            pending += [(inner, depth + 1) for inner in reversed(list(here.values()))]
        elif isinstance(here, list | tuple):
            pending += [(inner, depth + 1) for inner in reversed(here)]
    return found
