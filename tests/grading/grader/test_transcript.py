"""A grading's transcript reads like a trajectory: who said what, what was called, what came back, what went wrong."""

import pytest
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from grading import bodies
from grading.grader.record import Record
from grading.grader.transcript import EVENTS, TEXT_CHARS, Transcript
from grading.review.pages.event_words import kind_of, line_of, parts_of

FIRST = ModelRequest(parts=[UserPromptPart("Rank A and B.")], instructions="You grade.")
CALL = ModelResponse(
    parts=[
        ThinkingPart("Which one first?"),
        TextPart("I look."),
        ToolCallPart("read_patch", '{"candidate": "A"}', tool_call_id="1"),
        ToolCallPart("read_patch", {"candidate": "B"}, tool_call_id="2"),
    ]
)
RESULTS = ModelRequest(
    parts=[
        ToolReturnPart("read_patch", "+ 42", tool_call_id="1"),
        ToolReturnPart("read_patch", {"cut": True}, tool_call_id="2"),
    ],
    instructions="You grade.",
)


def conversation() -> Record:
    record = Record()
    transcript = Transcript(record)
    transcript.sent([FIRST])
    transcript.noted("retry", "HTTP 500: broken; try 2 in 0.5 s")
    transcript.answered(CALL)
    transcript.sent([FIRST, CALL, RESULTS])
    transcript.answered(ModelResponse(parts=[TextPart("Done.")]))
    return record


def test_each_turn_is_told_once_and_in_order():
    told = [(kind_of(event), line_of(event)) for event in conversation().events]
    assert told == [
        ("system", "You grade."),
        ("message", "Rank A and B."),
        ("system", "HTTP 500: broken; try 2 in 0.5 s"),
        ("message", ""),  # thinking is a part of its own, no line
        ("message", "I look."),
        ("action", "A"),
        ("action", "B"),
        ("observation", "+ 42"),
        ("observation", '{"cut": true}'),
        ("message", "Done."),
    ]


def test_a_page_shows_roles_thinking_tools_and_arguments():
    parts = [(part.title, part.text) for event in conversation().events for part in parts_of(event)]
    assert ("reasoning", "Which one first?") in parts
    assert ("read_patch", "A") in parts
    assert ("result of read_patch", "+ 42") in parts
    assert ("retry", "HTTP 500: broken; try 2 in 0.5 s") in parts
    assert ("system", "You grade.") in parts


def test_it_is_stored_as_an_event_body_whatever_it_holds(tmp_path):
    record = Record()
    transcript = Transcript(record)
    transcript.sent([ModelRequest(parts=[SystemPromptPart("a\x00\ud800"), UserPromptPart(["again", "and again"])])])
    transcript.answered(ModelResponse(parts=[ToolCallPart("submit", "{not json \x00", tool_call_id="1")]))
    stored = bodies.write_events(record.events)
    events = bodies.read_events(stored.sha256)
    assert [event["kind"] for event in events] == ["system", "message", "action"]
    assert "again" in events[1]["text"]


def test_an_answer_without_words_is_an_event_too():
    record = Record()
    Transcript(record).answered(ModelResponse(parts=[], finish_reason="length"))
    assert "ended with length" in record.events[0]["text"]


@pytest.mark.parametrize("size", [TEXT_CHARS, TEXT_CHARS * 3])
def test_long_texts_are_cut_in_the_middle_and_said(size):
    record = Record()
    Transcript(record).sent([ModelRequest(parts=[UserPromptPart("a" + "x" * (size - 2) + "z")])])
    text = record.events[0]["text"]
    assert text.startswith("a")
    assert text.endswith("z")
    assert ("are not kept" in text) == (size > TEXT_CHARS)
    assert len(text) < TEXT_CHARS + 100


def test_a_conversation_without_end_is_kept_up_to_a_number():
    record = Record()
    transcript = Transcript(record)
    for _ in range(EVENTS + 50):
        transcript.noted("retry", "again")
    assert len(record.events) == EVENTS + 1
    assert "not kept" in record.events[-1]["text"]
