"""A transcript becomes a chat whose last message is the answer that people let stand."""

import json

import pytest

from grading.export.chat import NoChat, chat, with_answer

SYSTEM = {"kind": "system", "role": "system", "text": "You review."}
ASKED = {"kind": "message", "role": "user", "text": "Rank A, B."}


def said(text):
    return {"kind": "message", "role": "assistant", "text": text}


def did(tool, args):
    return {"kind": "action", "role": "assistant", "text": "", "tool": tool, "args": args}


def came(tool, text):
    return {"kind": "observation", "role": f"result of {tool}", "text": text}


def test_calls_and_results_are_joined_by_their_ids_and_the_faulty_answer_is_left_out():
    events = [
        SYSTEM, ASKED, said("Let me look."), did("read_patch", {"candidate": "A"}), did("read_log", {"candidate": "B"}),
        came("read_patch", "+1"), came("read_log", "ok"), {"kind": "system", "role": "retry", "text": "429"},
        said("Now."), did("read_tests", {"candidate": "A"}), did("submit", {"candidates": []}),
        came("submit", "wrong"), did("submit", {"candidates": [1]}),
    ]  # fmt: skip
    messages = with_answer(chat(events, has_tools=True), {"candidates": []}, has_tools=True)
    assert [m["role"] for m in messages] == ["system", "user", "assistant", "tool", "tool", "assistant"]
    calls = messages[2]["tool_calls"]
    assert [m["tool_call_id"] for m in messages[3:5]] == [call["id"] for call in calls]
    assert [m["content"] for m in messages[3:5]] == ["+1", "ok"]
    last = messages[-1]
    assert last["content"] == "Now." and [c["function"]["name"] for c in last["tool_calls"]] == ["submit"]
    assert json.loads(last["tool_calls"][0]["function"]["arguments"]) == {"candidates": []}


def test_a_text_only_answer_is_one_block():
    messages = with_answer(chat([SYSTEM, ASKED, said("{}")], has_tools=False), {"a": 1}, has_tools=False)
    assert [m["role"] for m in messages] == ["system", "user", "assistant"]
    assert json.loads(messages[-1]["content"].removeprefix("```json\n").removesuffix("```")) == {"a": 1}


@pytest.mark.parametrize(
    "events, why",
    [
        ([SYSTEM, ASKED, said("hm")], "no answer"),
        ([SYSTEM, {**ASKED, "text": "a\n… 9 characters are not kept …\nb"}, did("submit", {})], "not whole"),
    ],
)
def test_a_transcript_that_is_not_whole_makes_no_chat(events, why):
    with pytest.raises(NoChat, match=why):
        chat(events, has_tools=True)
