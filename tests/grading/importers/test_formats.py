"""Every event of a SWE-agent or mini-swe-agent file is an event of ours, with all its text."""

import json

import pytest

from grading.errors import BadInput
from grading.importers import formats, mini_swe_agent, swe_agent
from grading.importers.record import EventStream
from tests.grading.importers.files import PATCH, SHARED, mini_document, needs_shared, swe_agent_document


def kinds(events: EventStream) -> list[str]:
    return [event["kind"] for event in events]


def all_text(events: EventStream) -> str:
    return "\n".join(json.dumps(event, ensure_ascii=False) for event in events)


def test_swe_agent_steps_are_two_events_each_and_prompts_one():
    record = swe_agent.read(swe_agent_document(), "ours__f-1")
    assert kinds(record.events) == ["system", "message", "message"] + [
        *("action", "observation"),
        *("edit", "observation"),
        *("submit", "observation"),
    ]
    events = list(record.events)
    assert events[1]["args"] == {"is_demo": True}
    assert events[3] == {
        "kind": "action",
        "role": "assistant",
        "text": "Look.\n```\nls\n```",
        "tool": "bash",
        "args": {"command": "ls\n"},
    }
    assert events[4] == {"kind": "observation", "role": "tool", "text": "f.py", "args": {"state": "{}"}}
    assert events[6] == {"kind": "observation", "role": "tool", "text": "", "duration_s": 0.5}
    counts = record.events.counts
    assert (counts.read, counts.kept, counts.dropped, counts.unlinked) == (9, 9, 0, 0)
    assert record.submission == PATCH.encode()
    assert record.counts == {"turns": 3, "tokens": 120, "response_tokens": 20, "cost_usd": 0.5}
    assert record.task.statement == "Fix the bug."


def test_swe_agent_tool_calls_of_1x_give_the_tool_and_its_arguments():
    document = swe_agent_document()
    call = {"function": {"name": "str_replace_editor", "arguments": '{"command": "view", "path": "/f.py"}'}, "id": "1"}
    document["history"][3] |= {"action": "str_replace_editor view /f.py", "tool_calls": [call]}
    document["trajectory"][0] |= {"action": "str_replace_editor view /f.py"}
    event = list(swe_agent.read(document, "f").events)[3]
    assert event["kind"] == "action"
    assert event["tool"] == "str_replace_editor"
    assert event["args"] == {"command": "view", "path": "/f.py", "action": "str_replace_editor view /f.py"}


def test_swe_agent_keeps_what_only_one_of_its_two_lists_holds():
    document = swe_agent_document()
    document["history"].insert(5, {"role": "assistant", "content": "A reply in a bad format."})
    document["history"].insert(6, {"role": "user", "content": "Your output could not be parsed."})
    document["history"].append("no object")
    document["trajectory"].append({"action": "", "observation": "Exited", "response": "", "thought": ""})
    document["trajectory"].append(7)
    stream = swe_agent.read(document, "f").events
    texts = [event["text"] for event in stream]
    assert texts[5:7] == ["A reply in a bad format.", "Your output could not be parsed."]
    assert texts[-1] == "Exited"
    counts = stream.counts
    assert (counts.read, counts.kept, counts.dropped, counts.unlinked) == (14, 12, 2, 1)
    assert dict(counts.why) == {"history entry is no object": 1, "step is no object": 1}


def test_swe_agent_that_repeats_itself_is_not_counted_twice():
    document = swe_agent_document()
    document["history"][5:5] = document["history"][3:5] * 3
    document["trajectory"][1:1] = document["trajectory"][:1] * 3
    assert len(kinds(swe_agent.read(document, "f").events)) == 9 + 6


def test_mini_swe_agent_messages_are_events_and_each_further_call_one_more():
    record = mini_swe_agent.read(mini_document(), "f")
    events = list(record.events)
    assert [event["kind"] for event in events] == [
        *("system", "message", "action", "observation", "observation"),
        *("action", "submit", "observation", "observation", "observation", "system"),
    ]
    assert events[2]["args"] == {"command": "ls"}
    assert events[2]["at"] == "2026-03-09T16:13:05.500000+00:00"
    assert events[3]["exit_code"] == 0
    assert events[3]["args"] == {"raw_output": "f.py\nand more than was shown"}
    assert [event["text"] for event in events[5:7]] == ["Two at once.", ""]
    counts = record.events.counts
    assert (counts.read, counts.kept, counts.unlinked) == (11, 11, 2)  # the bad format, and call_9
    assert record.task.key == "ours__f-1"
    assert record.counts == {"turns": 3, "cost_usd": 0.25}
    assert record.extra["model"] == "some/model"


def test_mini_swe_agent_reads_commands_out_of_the_text_of_older_files():
    messages = [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": [{"type": "text", "text": "Fix"}, {"type": "text", "text": "it."}]},
        {"role": "assistant", "content": "Look.\n```bash\nls\n```"},
        {"role": "user", "content": "f.py"},
        {"role": "assistant", "content": "Two.\n```bash\nls\n```\n```bash\npwd\n```"},
        {"role": "user", "content": "Exactly one action, please."},
        {"role": "assistant", "content": "```\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```"},
        {"role": "user", "content": PATCH},
    ]
    record = mini_swe_agent.read(messages, "f")
    assert kinds(record.events) == [
        *("system", "message", "action", "observation"),
        *("message", "message", "submit", "observation"),
    ]
    assert list(record.events)[1]["text"] == "Fix\nit."
    assert record.submission == PATCH.encode()


def test_a_text_made_of_fences_is_read_in_one_pass():
    hostile = "x```bash\n" * 200_000
    assert kinds(mini_swe_agent.read([{"role": "assistant", "content": hostile}], "f").events) == ["message"]


def test_values_of_the_wrong_type_are_passed_over_not_fatal():
    document = swe_agent_document()
    document |= {"history": {"role": "user"}, "info": [], "replay_config": 3}
    document["trajectory"] = [{"action": ["a"], "observation": {"b": 1}, "response": 5, "execution_time": True}]
    record = swe_agent.read(document, "f")
    assert '{"b": 1}' in [event["text"] for event in record.events]
    assert record.submission is None
    document = mini_document()
    document["info"] |= {"submission": 4, "model_stats": [], "config": None}
    document["messages"] = [{"role": 3, "content": 7, "extra": 1}, {"role": "assistant", "tool_calls": [5, {"id": []}]}]
    assert len(kinds(mini_swe_agent.read(document, "f").events)) == 2


@pytest.mark.parametrize(
    ("name", "content", "reader"),
    [
        ("a.traj", swe_agent_document(), "swe-agent"),
        ("a.json", swe_agent_document(), "swe-agent"),
        ("a.json", mini_document(), "mini-swe-agent"),
        ("a.traj.json", [{"role": "user", "content": "x"}], "mini-swe-agent"),
        ("conversation_round_1.json", [{"role": "user", "content": "x"}], None),
        ("a.json", {"messages": []}, None),
        ("a.traj", {"turns": 66}, None),
        ("a.traj", 3, None),
    ],
)
def test_a_format_is_found_by_what_the_file_holds(tmp_path, name, content, reader):
    got = formats.read_trajectory(tmp_path / name, json.dumps(content).encode())
    assert (got and got.extra["format"].removesuffix("-1.1")) == reader


def test_a_format_that_is_asked_for_needs_no_telling_name(tmp_path):
    content = json.dumps([{"role": "user", "content": "x"}]).encode()
    assert formats.read_trajectory(tmp_path / "chat.json", content, "mini-swe-agent")
    assert formats.read_trajectory(tmp_path / "chat.json", content, "swe-agent") is None


@pytest.mark.parametrize(
    "content",
    [
        b'{"trajectory": [], "info"',
        b"[" * 100_000,
        b'{"trajectory": [], "trajectory": [], "info": {}}',
        b'{"info": {}, "trajectory": [{"state": ' + b"[" * 70 + b"]" * 70 + b"}]}",
        b"\xff\xfe\x00",
        b"",
    ],
)
def test_a_damaged_trajectory_is_refused_by_its_path(tmp_path, content):
    with pytest.raises(BadInput, match="f.traj"):
        formats.read_trajectory(tmp_path / "f.traj", content)


@needs_shared
@pytest.mark.parametrize("where", ["groups", "formats/swe-agent-traj", "formats/mini-swe-agent-traj-json"])
def test_no_text_of_a_real_file_is_lost(where):
    files = [f for f in sorted((SHARED / where).rglob("*.json*")) + sorted((SHARED / where).rglob("*.traj"))]
    files = [f for f in files if formats.is_trajectory_name(f.name) or "formats" in where]
    assert len(files) == {"groups": 26}.get(where, 3)
    for file in files:
        document = json.loads(file.read_text())
        stream = formats.read_trajectory(file, file.read_bytes()).events
        events = list(stream)
        texts = {event["text"] for event in events} | {event.get("args", {}).get("raw_output") for event in events}
        if "trajectory" in document:
            prompts = sum(m["role"] != "assistant" for m in document["history"]) - len(document["trajectory"])
            assert len(events) >= 2 * len(document["trajectory"]) + prompts
            for step in document["trajectory"]:
                assert {step["response"], step["observation"]} <= texts
                assert any(step["action"] in json.loads(json.dumps(e.get("args", {}))).values() for e in events)
        else:
            messages = document if isinstance(document, list) else document["messages"]
            assert len(events) == len(messages)
            assert {m["content"] for m in messages if isinstance(m["content"], str)} <= texts
        assert (stream.counts.kept, stream.counts.dropped) == (len(events), 0)
