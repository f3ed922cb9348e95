"""mini-swe-agent `.traj.json`: `mini-swe-agent-1` and `-1.1`, and the bare list of messages of older files.

Each message is an event, each tool call of a message one more. After a badly formed reply 1.1 keeps only the answer of
the harness: an observation without its action.
"""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from grading.importers.record import Dropped, EventStream, TaskRecord, TrajectoryRecord, Unlinked
from grading.importers.values import as_bytes, as_text, listed, mapping, number, numbers, text_of, words
from grading.storable import storable

NAME = "mini-swe-agent"
_OPENS = re.compile(r"```(?:bash|sh|mswea_bash_command)?[ \t]*\n")
_CLOSES = "\n```"
_TROUBLES = ("interrupt_type", "exception_type", "exception_info", "exception")
_SUBMITS = ("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT")


def recognises(document: Any, name: str | None) -> bool:
    """Whether a JSON document is such a trajectory.

    Args:
        document: the JSON of the file.
        name: of the file: a bare list of messages counts only as `….traj.json`. None: somebody said that it is one.
    """
    if isinstance(document, list):
        named = name is None or name.endswith(".traj.json")
        return named and all(isinstance(m, dict) and "role" in m for m in document[:50])
    if not isinstance(document, dict) or not isinstance(document.get("messages"), list):
        return False
    marked = words(document.get("trajectory_format")).startswith(NAME) or "mini_version" in mapping(
        document.get("info")
    )
    return name is None or marked


def read(document: dict | list, name: str) -> TrajectoryRecord:
    """Read one parsed file.

    Args:
        document: the JSON of the file.
        name: of the file without its ending; the task's key where the file names no instance.
    Returns:
        Its events in order; patch, costs and exit status as `info` gives them.
    """
    whole = {"messages": document} if isinstance(document, list) else document
    info, messages = mapping(whole.get("info")), listed(whole.get("messages"))
    status = words(info.get("exit_status"))
    config = mapping(info.get("config"))
    asked = (text_of(m.get("content")) for m in messages if isinstance(m, dict) and m.get("role") == "user")
    return TrajectoryRecord(
        events=EventStream(lambda: _events(messages)),
        task=TaskRecord(key=words(whole.get("instance_id")) or words(name), statement=storable(next(asked, ""))),
        submission=as_bytes(info.get("submission") if info else _last_diff(messages)),
        is_truncated="limit" in status.lower(),
        counts=_counts(messages, mapping(info.get("model_stats"))),
        extra={
            "format": words(whole.get("trajectory_format")) or NAME,
            "exit_status": status,
            "model": words(mapping(config.get("model")).get("model_name")),
        },
    )


def _last_diff(messages: list) -> str | None:
    """The patch of a file without `info`: what the harness printed last, if that is a diff."""
    last = mapping(messages[-1]) if messages else {}
    said = text_of(last.get("content"))
    return said if last.get("role") == "user" and said.lstrip().startswith("diff --git ") else None


def _counts(messages: list, stats: dict) -> dict[str, int | float]:
    replies = [m for m in messages if isinstance(m, dict) and m.get("role") == "assistant"]
    calls = number(stats.get("api_calls"))
    usages = [mapping(mapping(mapping(m.get("extra")).get("response")).get("usage")) for m in replies]
    totals, responses = ([number(u.get(key)) for u in usages] for key in ("total_tokens", "completion_tokens"))
    # Replies in a bad format are not in the file, so neither are their tokens: a part is no total.
    whole = len(usages) == calls and None not in totals + responses
    return numbers(
        turns=len(replies) if calls is None else calls,
        tokens=sum(totals) if whole else None,
        response_tokens=sum(responses) if whole else None,
        cost_usd=stats.get("instance_cost"),
    )


def _events(messages: list) -> Iterator[dict | Dropped | Unlinked]:
    waiting: set[str] = set()  # ids of calls not answered yet
    asked = ""  # what the last reply waits for: "command", "words", or nothing
    for message in messages:
        if not isinstance(message, dict):
            yield Dropped("message is no object")
            continue
        role, extra = words(message.get("role"), 40), mapping(message.get("extra"))
        if role == "assistant":
            replies = _reply(message)
            waiting |= {words(call["id"]) for call in _calls(message) if words(call.get("id"))}
            asked = "words" if replies[-1]["kind"] == "message" else "command"
            yield from replies
        elif role == "tool":
            called = words(message.get("tool_call_id"))
            known = called in waiting if called else asked == "command"
            yield _observation(message, extra) if known else Unlinked(_observation(message, extra))
            waiting.discard(called)
            asked = asked if waiting else ""
        elif role == "user" and asked == "command" and not waiting:
            yield _observation(message, extra)
            asked = ""
        elif role == "user" and not asked and words(extra.get("interrupt_type")).endswith("Error"):
            yield Unlinked(_observation(message, extra))
        else:
            yield _message(role, message, extra)
            asked = "" if role == "user" else asked


def _message(role: str, message: dict, extra: dict) -> dict:
    from_harness = role in ("system", "developer", "exit")
    event = {"kind": "system" if from_harness else "message", "role": role, "text": text_of(message.get("content"))}
    said = {name: extra[name] for name in ("interrupt_type", "exit_status") if extra.get(name)}
    if role == "exit" and as_text(extra.get("submission") or "") not in event["text"]:
        said["submission"] = extra["submission"]
    return _timed({**event, "args": said} if said else event, extra)


def _observation(message: dict, extra: dict) -> dict:
    event: dict[str, Any] = {"kind": "observation", "role": words(message.get("role"), 40)}
    event["text"] = text_of(message.get("content"))
    if number(extra.get("returncode")) is not None:
        event["exit_code"] = extra["returncode"]
    said = {name: extra[name] for name in _TROUBLES if extra.get(name)}
    raw = extra.get("raw_output")
    if isinstance(raw, str) and raw.strip() not in event["text"]:
        said["raw_output"] = raw  # the message shows a shortened one
    return _timed({**event, "args": said} if said else event, extra)


def _reply(message: dict) -> list[dict]:
    """What one reply says and does: an event per tool call or command, one of words if there is none."""
    thinking, said = text_of(message.get("reasoning_content")), text_of(message.get("content"))
    text = "\n\n".join(part for part in (thinking, said) if part)
    extra = mapping(message.get("extra"))
    done = [_called(call) for call in _calls(message)] or _commands(said, extra)
    events = [_doing(tool, args, text if not at else "") for at, (tool, args) in enumerate(done)]
    events = events or [{"kind": "message", "role": "assistant", "text": text}]
    return [_timed(event, extra) for event in events]


def _calls(message: dict) -> list[dict]:
    return [call for call in listed(message.get("tool_calls")) if isinstance(call, dict)]


def _called(call: dict) -> tuple[str, dict]:
    function = mapping(call.get("function"))
    arguments = function.get("arguments")
    try:
        args = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        args = arguments
    return words(function.get("name")) or "bash", args if isinstance(args, dict) else {"arguments": as_text(args)}


def _commands(said: str, extra: dict) -> list[tuple[str, dict]]:
    actions = [mapping(action).get("command") for action in listed(extra.get("actions"))]
    commands = [command for command in actions if isinstance(command, str)]
    if not commands:
        blocks = _blocks(said)
        commands = blocks if len(blocks) == 1 else []  # the agent runs a reply of exactly one block
    return [("bash", {"command": command}) for command in commands]


def _blocks(text: str) -> list[str]:
    """Code blocks of a reply. No pattern with a gap: a hostile text would make it quadratic."""
    found, at = [], 0
    while opens := _OPENS.search(text, at):
        closes = text.find(_CLOSES, opens.end() - 1)
        if closes < 0:
            break
        found.append(text[opens.end() : closes])
        at = closes + len(_CLOSES)
    return found


def _doing(tool: str, args: dict, text: str) -> dict:
    submits = any(word in as_text(args.get("command", "")) for word in _SUBMITS)
    return {"kind": "submit" if submits else "action", "role": "assistant", "text": text, "tool": tool, "args": args}


def _timed(event: dict, extra: dict) -> dict:
    at = number(extra.get("timestamp"))
    if at is not None and 0 < at < 2**33:
        event["at"] = datetime.fromtimestamp(at, UTC).isoformat()
    return event
