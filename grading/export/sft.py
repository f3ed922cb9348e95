"""Grader SFT data: what the grader was told and looked at, and the answer that people let stand or corrected."""

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

from grading import bodies
from grading.export.chat import NoChat, chat, with_answer
from grading.export.decided import Decided, decided
from grading.export.lettered import answer_json, in_letters
from grading.export.redact import Redactor
from grading.grader.submitted import SUBMIT, submit_schema
from grading.grader.tools import checks, repository, rollouts
from grading.grader.wire import from_json
from grading.grader.workspace import Workspace
from grading.models import Grading

SUBMIT_SAYS = "Give your verdict on all candidates to be ranked, once you can prove it."


def rows(runs, left_out: Counter) -> Iterator[dict[str, Any]]:
    """One row a group: `messages`, `tools` (JSON text) and `provenance`. What makes none is counted with its reason."""
    for one in decided(runs):
        try:
            yield _row(one)
        except NoChat as why:
            left_out[str(why)] += 1


def _row(one: Decided) -> dict[str, Any]:
    grading = Grading.objects.filter(verdict=one.origin).first()
    if grading is None or not grading.transcript:
        raise NoChat(f"grader {one.origin.grader} keeps no transcript")
    if grading.order and isinstance(grading.order[0], list):
        raise NoChat("it was graded in several orders: no one conversation led to its verdict")
    has_tools = grading.prompt.startswith("agentic")
    messages = chat(bodies.read_events(grading.transcript), has_tools=has_tools)
    redactor = Redactor()
    whole = redactor.values(with_answer(messages, _answer(one), has_tools=has_tools))
    about = {"model": grading.model, "prompt": grading.prompt, "grading": grading.pk, "redacted": redactor.count}
    return {
        "messages": whole,
        "tools": json.dumps(tools_of(messages) if has_tools else []),
        "provenance": one.provenance("sft") | about,
    }


def _answer(one: Decided) -> dict[str, Any]:
    """The verdict that counts, as the grader would have said it; one that would not pass its own check is left out."""
    with Workspace.open(one.group, seed=0) as ws:
        reply = in_letters(from_json(one.verdict.reply), ws)
        if problems := ws.check(reply):
            raise NoChat(f"its answer by letters is not valid any more: {problems[0].what[:80]}")
    return answer_json(reply)


def tools_of(messages) -> list[dict[str, Any]]:
    """The tools that were offered, told from the material's own words and from what was called."""
    said = "\n".join(message["content"] for message in messages if message["role"] == "user")
    called = {call["function"]["name"] for message in messages for call in message.get("tool_calls", ())}
    offered = dict(rollouts=True, repository="\nNo repository: " not in said, checks="\nA sandbox for up to " in said)
    return [tool for name, group, tool in _definitions() if offered.get(group) or name in called or name == SUBMIT]


@cache
def _definitions() -> list[tuple[str, str, dict[str, Any]]]:
    groups = (("rollouts", rollouts.TOOLS), ("repository", repository.TOOLS), ("checks", checks.TOOLS))
    found = [(t.name, group, _function(t.name, t.says, t.schema())) for group, tools in groups for t in tools]
    return [*found, (SUBMIT, "", _function(SUBMIT, SUBMIT_SAYS, submit_schema()))]


def _function(name: str, description: str, parameters: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}
