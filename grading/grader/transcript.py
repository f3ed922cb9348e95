"""What was said between us and a model, as events of our small shape: read like a trajectory. Core."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pydantic_ai import messages as ai

from grading.errors import BadInput
from grading.grader.record import Record
from grading.storable import parse_json

TEXT_CHARS = 200_000  # of one event; the group's material is its largest
EVENTS = 2_000  # of one grading


class Transcript:
    """Writes a conversation into a grading's record as it goes; what was written before is not written again."""

    def __init__(self, record: Record):
        self.record, self._seen = record, 0

    def sent(self, messages: Sequence[ai.ModelMessage]) -> None:
        """Note what is new in the history that goes out now."""
        new = messages[self._seen :] if len(messages) > self._seen else messages[-1:]
        for message in new:
            if isinstance(message, ai.ModelRequest):
                self._add(events_of_request(message, with_instructions=self._seen == 0))
        self._seen = len(messages)

    def answered(self, response: ai.ModelResponse) -> None:
        """Note an answer."""
        self._seen += 1
        self._add(events_of_response(response))

    def noted(self, role: str, text: str) -> None:
        """Note what is no part of the conversation: a retry, an error."""
        self._add([event("system", role, text)])

    def _add(self, events: Iterable[dict[str, Any]]) -> None:
        for one in events:
            if len(self.record.events) < EVENTS:
                self.record.events.append(one)
            elif len(self.record.events) == EVENTS:
                self.record.events.append(event("system", "error", f"more than {EVENTS} events: the rest is not kept"))


def event(kind: str, role: str, text: str, **more: Any) -> dict[str, Any]:
    """One event of the transcript.

    Args:
        kind: message, action, observation or system.
        role: who speaks; a page shows it as the part's title.
        text: cut at 200,000 characters, and said.
        more: further fields, such as `tool` and `args`.
    Returns:
        A JSON-able event.
    """
    return {"kind": kind, "role": role, "text": cut(text), **more}


def cut(text: str) -> str:
    """Returns: the text, its middle left out where it is longer than an event keeps."""
    if len(text) <= TEXT_CHARS:
        return text
    half = TEXT_CHARS // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters are not kept …\n{text[-half:]}"


def events_of_request(message: ai.ModelRequest, *, with_instructions: bool = True) -> Iterator[dict[str, Any]]:
    """What we say in one request: system words, the material, tool results, what was wrong.

    Args:
        message: of a history.
        with_instructions: whether the standing instructions are among it; they go out with each request.
    Yields:
        Events in reading order.
    """
    if with_instructions and message.instructions:
        yield event("system", "system", message.instructions)
    for part in message.parts:
        if isinstance(part, ai.SystemPromptPart):
            yield event("system", "system", part.content)
        elif isinstance(part, ai.UserPromptPart):
            yield event("message", "user", _text(part.content))
        elif isinstance(part, ai.ToolReturnPart):
            yield event("observation", f"result of {part.tool_name}", _text(part.content))
        elif hasattr(part, "content"):  # what pydantic-ai says itself, such as that an argument was wrong
            yield event("message", "user", _text(part.content))


def events_of_response(response: ai.ModelResponse) -> Iterator[dict[str, Any]]:
    """What the model says in one answer: its thinking if it is given, its words, its calls.

    Args:
        response: of a history.
    Yields:
        Events in reading order; an answer without words is one event too.
    """
    usage = response.usage
    counts = {"input": usage.input_tokens, "cached": usage.cache_read_tokens, "output": usage.output_tokens}
    said = False
    for part in response.parts:
        if isinstance(part, ai.ThinkingPart) and part.content:
            yield event("message", "assistant", "", reasoning_content=cut(part.content))
        elif isinstance(part, ai.TextPart):
            said = True
            yield event("message", "assistant", part.content, tokens=counts)
        elif isinstance(part, ai.ToolCallPart):
            said = True
            yield event("action", "assistant", "", tool=part.tool_name, args=_args(part.args))
    if not said:
        yield event(
            "message", "assistant", f"(no words; the answer ended with {response.finish_reason})", tokens=counts
        )


def _args(args: Any) -> Any:
    """Arguments as values; text that is no JSON stays text."""
    if isinstance(args, str):
        try:
            args = parse_json(args, where="the arguments")
        except BadInput:  # also what is nested deeper than we store
            return cut(args)
    text = json.dumps(args, default=str)
    return args if len(text) <= TEXT_CHARS else cut(text)


def _text(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list | tuple) and any(isinstance(part, str) for part in content):
        return "\n".join(part for part in content if isinstance(part, str))
    return json.dumps(content, ensure_ascii=False, default=str)
