"""Small trajectories and group folders of our own, written where a test wants them."""

import json
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "real"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the real public files are not on this machine")
PATCH = "diff --git a/f.py b/f.py\n--- a/f.py\n+++ b/f.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"


def write_json(path: Path, value) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def swe_agent_document() -> dict:
    """Two steps of 0.x with a demonstration, then one that the history does not hold."""
    return {
        "environment": "swe_main",
        "history": [
            {"role": "system", "content": "You are an agent.", "agent": "primary"},
            {"role": "user", "content": "A demonstration.", "agent": "primary", "is_demo": True},
            {"role": "user", "content": "Fix the bug.", "agent": "primary"},
            {"role": "assistant", "content": "Look.\n```\nls\n```", "thought": "Look.\n", "action": "ls\n"},
            {"role": "user", "content": "f.py\n(Open file: n/a)\nbash-$"},
            {"role": "assistant", "content": "Edit.\n```\nedit 1:1\nx = 2\nend_of_edit\n```", "action": "edit 1:1"},
            {"role": "user", "content": "Your command ran successfully and did not produce any output."},
        ],
        "trajectory": [
            {
                "action": "ls\n",
                "observation": "f.py",
                "response": "Look.\n```\nls\n```",
                "thought": "Look.\n",
                "state": "{}",
            },
            {
                "action": "edit 1:1\nx = 2\nend_of_edit",
                "observation": "",
                "response": "Edit.\n```\nedit 1:1\nx = 2\nend_of_edit\n```",
                "thought": "Edit.\n",
                "execution_time": 0.5,
            },
            {"action": "submit\n", "observation": PATCH, "response": "Done.\n```\nsubmit\n```", "thought": "Done.\n"},
        ],
        "info": {
            "exit_status": "submitted",
            "submission": PATCH,
            "model_stats": {"total_cost": 99.0, "instance_cost": 0.5, "tokens_sent": 100, "tokens_received": 20},
        },
    }


def mini_document() -> dict:
    """1.1: a tool call and its answer, a reply in a bad format that is not kept, the submission."""

    def call(number: int, command: str) -> dict:
        function = {"name": "bash", "arguments": json.dumps({"command": command})}
        return {"id": f"call_{number}", "type": "function", "function": function}

    return {
        "trajectory_format": "mini-swe-agent-1.1",
        "instance_id": "ours__f-1",
        "info": {
            "exit_status": "Submitted",
            "submission": PATCH,
            "mini_version": "2.2.4",
            "model_stats": {"instance_cost": 0.25, "api_calls": 3},
            "config": {"model": {"model_name": "some/model"}},
        },
        "messages": [
            {"role": "system", "content": "You are an agent."},
            {"role": "user", "content": "Fix the bug."},
            {"role": "assistant", "content": None, "tool_calls": [call(1, "ls")], "extra": {"timestamp": 1773072785.5}},
            {
                "role": "tool",
                "content": "<returncode>0</returncode>\nf.py",
                "tool_call_id": "call_1",
                "extra": {"raw_output": "f.py\nand more than was shown", "returncode": 0},
            },
            {"role": "user", "content": "No tool calls found.", "extra": {"interrupt_type": "FormatError"}},
            {
                "role": "assistant",
                "content": "Two at once.",
                "tool_calls": [call(2, "cat f.py"), call(3, "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")],
            },
            {"role": "tool", "content": "x = 1", "tool_call_id": "call_2"},
            {"role": "tool", "content": PATCH, "tool_call_id": "call_3"},
            {"role": "tool", "content": "who asked?", "tool_call_id": "call_9"},
            {"role": "exit", "content": PATCH, "extra": {"exit_status": "Submitted", "submission": PATCH}},
        ],
    }


def write_group(folder: Path, *, key: str = "g1") -> Path:
    """Four candidates: events of ours, SWE-agent, a format nobody reads, and one with neither label nor trajectory."""
    entries = [
        {"candidate_id": "a", "resolved": True, "patch": PATCH, "patch_is_null": False, "model": "m-1"},
        {"candidate_id": "b", "resolved": False, "patch": None, "patch_is_null": True},
        {"candidate_id": "c", "resolved": True},
        {"candidate_id": "d", "resolved": None},
    ]
    task = {"instance_id": "ours__f-1", "repo": "ours/f", "base_commit": "abc", "problem_statement": "Fix the bug."}
    write_json(folder / "group.json", {"group_id": key, "task": task, "candidates": entries})
    (folder / "task").mkdir()
    (folder / "task" / "gold.patch").write_text(PATCH)
    own = folder / "candidates" / "a"
    own.mkdir(parents=True)
    (own / "patch.diff").write_text(PATCH)
    (own / "test_output.txt").write_text("1 passed")
    (own / "events.jsonl").write_text('{"kind": "action", "text": "ls"}\n{"kind": "observation", "text": "f.py"}\n')
    write_json(folder / "candidates" / "b" / "trajectory" / "f.traj", swe_agent_document())
    write_json(folder / "candidates" / "c" / "trajectory" / "stub.json", {"turns": 66})
    (folder / "candidates" / "c" / "patch.diff").write_text("litellm.RateLimitError: no patch at all")
    write_json(folder / "candidates" / "d" / "candidate.json", {"candidate_id": "d", "cost_usd": 0.1})
    return folder
