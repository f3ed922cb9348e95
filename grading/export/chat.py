"""A grading's transcript as a chat with tool calls, up to the answer; the answer is set in its place. Core."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from grading.grader.submitted import SUBMIT

CUT = "characters are not kept"  # what a transcript says where it is not whole
RESULT = "result of "
Message = dict[str, Any]


class NoChat(Exception):
    """A transcript that makes no chat; its words say why."""


def chat(events: Iterable[Mapping[str, Any]], *, has_tools: bool) -> list[Message]:
    """Read a transcript as messages up to the first answer.

    Args:
        events: of one grading in one order.
        has_tools: whether the answer is a call of `submit`, rather than the first words.
    Returns:
        OpenAI-shaped messages: system, user, assistant (with tool_calls), tool. Thinking is left out; so is the turn in
        which the answer stands, but for its words: what it called beside the answer was never run.
    Raises:
        NoChat: a part is missing, or no answer was given.
    """
    messages: list[Message] = []
    waiting: list[str] = []  # ids of calls without a result
    for event in events:
        kind, role, text = event.get("kind"), event.get("role", ""), event.get("text", "")
        if CUT in text or CUT in str(event.get("args", "")):
            raise NoChat("its transcript is not whole")
        if kind == "system" and role == "system":
            messages.append({"role": "system", "content": text})
        elif kind == "message" and role == "user":
            messages.append({"role": "user", "content": text})
        elif kind == "message" and role == "assistant" and text:
            if not has_tools:
                return messages
            messages.append({"role": "assistant", "content": text})
        elif kind == "action":
            if event.get("tool") == SUBMIT:
                return _without_calls(messages)
            waiting.append(_call(messages, event))
        elif kind == "observation" and waiting:
            result = {"role": "tool", "tool_call_id": waiting.pop(0), "name": role.removeprefix(RESULT)}
            messages.append(result | {"content": text})
    raise NoChat("its transcript holds no answer")


def _call(messages: list[Message], event: Mapping[str, Any]) -> str:
    """Add a call to the assistant's open turn. Returns its id."""
    if messages[-1]["role"] != "assistant":
        messages.append({"role": "assistant", "content": ""})
    calls = messages[-1].setdefault("tool_calls", [])
    number = sum(len(message.get("tool_calls", ())) for message in messages)
    calls.append(tool_call(f"call_{number}", event.get("tool", ""), event.get("args") or {}))
    return calls[-1]["id"]


def _without_calls(messages: list[Message]) -> list[Message]:
    if messages and messages[-1]["role"] == "assistant":
        messages[-1].pop("tool_calls", None)
        if not messages[-1]["content"]:
            messages.pop()
    return messages


def tool_call(id: str, name: str, arguments: Any) -> dict[str, Any]:
    """Returns: a call as the OpenAI format has it: its arguments are JSON text, which no table of rows can distort."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {"id": id, "type": "function", "function": {"name": name, "arguments": text}}


def with_answer(messages: Sequence[Message], answer: Mapping[str, Any], *, has_tools: bool) -> list[Message]:
    """Put the answer at the end.

    Args:
        messages: from `chat`.
        answer: a verdict by letters.
        has_tools: a call of `submit`, else a JSON block.
    Returns:
        The whole chat; the last message is what a model is to learn.
    """
    if not has_tools:
        block = json.dumps(answer, ensure_ascii=False, indent=1)
        return [*messages, {"role": "assistant", "content": f"```json\n{block}\n```"}]
    submit = tool_call("call_submit", SUBMIT, answer)
    if messages and messages[-1]["role"] == "assistant":
        return [*messages[:-1], {**messages[-1], "tool_calls": [submit]}]
    return [*messages, {"role": "assistant", "content": "", "tool_calls": [submit]}]
