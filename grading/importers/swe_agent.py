"""SWE-agent `.traj`, 0.x and 1.x: `trajectory` has a step per turn, `history` the chat with prompt and demonstration.

Most of `history` says again what a step says. Such a message is the step's event, not a second one; any other message
is an event of its own. A step has two events: what the agent did and what came back.
"""

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from grading.importers.record import Dropped, EventStream, TaskRecord, TrajectoryRecord, Unlinked
from grading.importers.values import as_bytes, as_text, listed, mapping, number, numbers, text_of, words
from grading.storable import storable

NAME = "swe-agent"
EDITING = frozenset({"edit", "insert", "create", "str_replace_editor", "edit_anthropic", "edit_replace"})
SHELL_TOOLS = frozenset(
    {"open", "goto", "scroll_up", "scroll_down", "search_dir", "search_file", "find_file", "submit", "edit", "insert"}
    | {"create", "str_replace_editor", "edit_anthropic", "edit_replace", "filemap", "view_image", "undo_edit"}
)


def recognises(document: Any, name: str | None) -> bool:
    """Whether a JSON document is such a trajectory; the file's name does not matter."""
    return isinstance(document, dict) and isinstance(document.get("trajectory"), list) and "info" in document


def read(document: dict, name: str) -> TrajectoryRecord:
    """Read one parsed file.

    Args:
        document: the JSON of the file.
        name: of the file without its ending; the task's key, since the format holds none.
    Returns:
        Its events in order; patch, costs and exit status as `info` gives them.
    """
    info = mapping(document.get("info"))
    stats = mapping(info.get("model_stats"))
    sent, received = number(stats.get("tokens_sent")), number(stats.get("tokens_received"))
    status = words(info.get("exit_status"))
    config = mapping(document.get("replay_config"))
    return TrajectoryRecord(
        events=EventStream(lambda: _events(document)),
        task=_task(document, config, name),
        submission=as_bytes(info.get("submission")),
        is_truncated="exit_" in status,
        counts=numbers(
            turns=len(listed(document["trajectory"])),
            tokens=sent + received if sent is not None and received is not None else None,
            response_tokens=received,
            cost_usd=stats.get("instance_cost"),  # total_cost runs over the whole batch
        ),
        extra={"format": NAME, "exit_status": status, "model": _model(config)},
    )


def _task(document: dict, config: dict, name: str) -> TaskRecord:
    statement = mapping(config.get("problem_statement")).get("text")
    if not isinstance(statement, str):
        prompts = [m for m in listed(document.get("history")) if isinstance(m, dict) and m.get("role") == "user"]
        statement = next((text_of(prompt.get("content")) for prompt in prompts if not prompt.get("is_demo")), "")
    repository = mapping(mapping(config.get("env")).get("repo"))
    return TaskRecord(
        key=words(name),
        statement=storable(statement),
        base_commit=words(repository.get("base_commit"), 80),
        repository=words(repository.get("github_url") or repository.get("repo_name"), 500),
    )


def _model(config: dict) -> str:
    return words(mapping(mapping(config.get("agent")).get("model")).get("name"))


def _events(document: dict) -> Iterator[dict | Dropped | Unlinked]:
    steps = document["trajectory"]
    numbers_by_response = _numbers_by_response(steps)
    taken, answered = 0, True
    for message in listed(document.get("history")):
        if not isinstance(message, dict):
            yield Dropped("history entry is no object")
        elif message.get("role") != "assistant":
            if answered or not _repeats(message, steps[taken - 1]):
                yield _message(message)
            answered = True
        elif (at := _step_of(message, steps, numbers_by_response, taken)) is None:
            yield _message(message)
        else:
            for here in range(taken, at + 1):
                yield from _step(steps[here], message if here == at else {})
            taken, answered = max(taken, at + 1), False
    for step in steps[taken:]:
        yield from _step(step, {})


def _numbers_by_response(steps: list) -> dict[str, list[int]]:
    found = defaultdict(list)
    for at, step in enumerate(steps):
        response = mapping(step).get("response")
        if isinstance(response, str) and response.strip():
            found[response].append(at)
    return found


def _step_of(message: dict, steps: list, numbers_by_response: dict[str, list[int]], taken: int) -> int | None:
    """The step this message says again: the next one of its response, else an earlier one; None if there is none."""
    same = numbers_by_response.get(text_of(message.get("content")), [])
    if same:
        later = bisect_left(same, taken)
        return same[later] if later < len(same) else same[-1]
    action = message.get("action")
    if action and taken < len(steps) and action == mapping(steps[taken]).get("action"):
        return taken
    return None


def _repeats(message: dict, step: Any) -> bool:
    """Whether a message is what came back from this step, as the prompt's template shows it."""
    said, came_back = text_of(message.get("content")), mapping(step).get("observation")
    return message.get("role") in ("user", "tool") and text_of(came_back).strip() in said


def _message(message: dict) -> dict:
    role = words(message.get("role"), 40)
    event = {"kind": "system" if role == "system" else "message", "role": role, "text": text_of(message.get("content"))}
    if message.get("is_demo"):
        event["args"] = {"is_demo": True}
    return event


def _step(step: Any, message: dict) -> Iterator[dict | Dropped | Unlinked]:
    if not isinstance(step, dict):
        yield Dropped("step is no object")
        return
    action, response, thought = (text_of(step.get(name)) for name in ("action", "response", "thought"))
    if action or response or thought:
        yield _doing(action, response, thought, message)
    if step.get("observation") is None:
        if not (action or response or thought):
            yield Dropped("step says nothing")
        return
    event: dict[str, Any] = {"kind": "observation", "role": "tool", "text": text_of(step["observation"])}
    if number(step.get("execution_time")) is not None:
        event["duration_s"] = step["execution_time"]
    if step.get("state"):
        event["args"] = {"state": step["state"]}
    yield event if action or response or thought else Unlinked(event)


def _doing(action: str, response: str, thought: str, message: dict) -> dict:
    text = response if thought in response else f"{thought}\n{response}".strip("\n")
    if not action.strip():
        return {"kind": "message", "role": "assistant", "text": text}
    if action.startswith("exit_"):  # written by the harness: out of cost, context or patience
        return {"kind": "system", "role": "system", "text": text or action, "args": {"action": action}}
    tool, args = _call(action, message)
    return {"kind": _kind(tool, action), "role": "assistant", "text": text, "tool": tool, "args": args}


def _call(action: str, message: dict) -> tuple[str, dict]:
    calls = [mapping(mapping(call).get("function")) for call in listed(message.get("tool_calls"))]
    if len(calls) == 1 and isinstance(calls[0].get("name"), str):
        args = _arguments(calls[0].get("arguments"))
        return calls[0]["name"], args if args.get("command") == action else {**args, "action": action}
    first = action.split(maxsplit=1)[0]
    args = {"command": action, **({"tool_calls": calls} if calls else {})}
    return first if first in SHELL_TOOLS else "bash", args


def _arguments(arguments: Any) -> dict:
    """Arguments travel as JSON inside a string; what is no object is kept as its text."""
    try:
        found = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        found = arguments
    return found if isinstance(found, dict) else {"arguments": as_text(found)}


def _kind(tool: str, action: str) -> str:
    if tool == "submit":
        return "submit"
    looks = action.split(maxsplit=2)[1:2] == ["view"]
    return "edit" if tool in EDITING and not looks else "action"
