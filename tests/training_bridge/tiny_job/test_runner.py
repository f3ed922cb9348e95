import time

import pytest

from training_bridge.tiny_job import catalog
from training_bridge.tiny_job.errors import HarnessFailure
from training_bridge.tiny_job.judge import judge
from training_bridge.tiny_job.runner import Limits, Runner
from training_bridge.tiny_job.session import Session

TEST = """
import unittest
from thing import thing

class ThingTest(unittest.TestCase):
    def test_thing(self):
        thing()
"""


def project(body, head=""):
    text = f"import os, signal, sys, time\n{head}\n\ndef thing():\n    {body}\n"
    return {"thing.py": text, "test_thing.py": TEST}


def test_a_run_shows_its_tests_and_its_true_output(runner):
    run = runner.run(project("print('hello'); assert 1 == 2, 'one is not two'"))
    assert (run.how, run.exit_code) == ("ran", 1)
    assert run.tests[0]["status"] == "failed"
    assert "one is not two" in run.tests[0]["message"]
    assert "hello" in run.output
    assert 'File "/workspace/test_thing.py"' in run.output


@pytest.mark.parametrize(
    ("body", "how", "exit_code"),
    [
        ("while True: pass", "timeout", 124),
        ("time.sleep(60)", "timeout", 124),
        ("os._exit(0)", "crashed", 70),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "crashed", 139),
        ("sys.exit(0)", "ran", 1),
        ("[0] * 10**10", "ran", 1),
        ("open('/proc/self/fd/3')", "ran", 1),
    ],
)
def test_what_a_candidate_does_to_its_process_is_its_own_failure(body, how, exit_code):
    with Runner(limits=Limits(wall_s=0.7)) as short:
        run = short.run(project(body))
        assert (run.how, run.exit_code) == (how, exit_code)
        assert short.run(project("pass")).ok


def test_leaving_with_status_zero_on_import_is_no_pass(runner):
    run = runner.run(project("pass", head="sys.exit(0)"))
    assert (run.how, run.ok, run.exit_code) == ("crashed", False, 70)


def test_each_run_has_a_folder_of_its_own_and_an_empty_environment(runner, monkeypatch):
    monkeypatch.setenv("GAGAR_TOKEN", "secret")
    run = runner.run(project("open('left', 'w').close(); print(sorted(os.listdir('.')), dict(os.environ))"))
    assert "['left', 'test_thing.py', 'thing.py']" in run.output
    assert "GAGAR_TOKEN" not in run.output
    assert runner.run(project("assert not os.path.exists('left')")).ok


def test_a_tree_is_executed_once(tmp_path):
    cache = tmp_path / "cache.jsonl"
    with Runner(cache) as first:
        run = first.run(project("pass"))
        assert first.run(project("pass")) == run
        assert first.executed == 1
    cache.write_bytes(cache.read_bytes() + b'{"key": "torn')
    with Runner(cache) as second:
        assert second.run(project("pass")) == run
        assert second.executed == 0
        second.run(project("pass "))
        assert second.executed == 1


def test_the_server_is_no_process_with_torch_and_stops_with_the_runner():
    with Runner() as own:
        own.run(project("assert 'torch' not in sys.modules and 'numpy' not in sys.modules"))
        server = own._server
        assert own.run(project("assert 'torch' not in sys.modules and 'numpy' not in sys.modules")).ok
    assert server.poll() is not None


def test_a_killed_server_is_started_again():
    with Runner() as own:
        own.run(project("pass"))
        own._server.kill()
        time.sleep(0.05)
        assert own.run(project("pass  # again")).ok


def test_candidates_cannot_time_out_their_way_to_an_invalid_rollout(runner):
    task = catalog.load()["chunks"]
    endless = {**task.base, task.module: "def chunks(items, size):\n    while True:\n        pass\n"}
    judged = judge(task, endless, runner)
    assert judged.outcome == "failed"
    assert "time limit" in judged.log


def test_a_harness_that_cannot_run_anything_makes_rollouts_invalid(tmp_path, monkeypatch):
    task = catalog.load()["chunks"]
    monkeypatch.setattr("training_bridge.tiny_job.runner.SERVER", tmp_path / "missing.py")
    with Runner() as broken:
        with pytest.raises(HarnessFailure, match="died twice"):
            broken.run(task.base)
        assert judge(task, task.base, broken).outcome == "infra_invalid"
        session = Session(task, broken, 12)
        assert session.act("run") == "tests_died"
        assert session.done
        assert not session.submitted
        assert session.events[-1]["kind"] == "system"


def test_a_machine_on_which_the_base_dies_too_makes_rollouts_invalid():
    task = catalog.load()["chunks"]
    with Runner(limits=Limits(wall_s=0.0)) as starved:
        assert judge(task, task.reference, starved).outcome == "infra_invalid"


def test_no_room_for_the_files_is_a_harness_failure(tmp_path, monkeypatch):
    task = catalog.load()["chunks"]
    with Runner() as own:
        with pytest.raises(HarnessFailure, match="could not start"):
            own.run({"/proc/nowhere/x.py": "pass", "test_x.py": "pass"})
        assert own.run(task.reference).ok


def test_a_session_keeps_events_with_what_was_truly_seen(runner):
    task = catalog.load()["slugs"]
    session = Session(task, runner, 12)
    assert session.act("run") == "tests_fail"
    assert session.act("peek") == "shown"
    assert session.act("paste") == "edited"
    assert session.act("run") == "tests_pass"
    assert session.act("submit") is None
    kinds = [event["kind"] for event in session.events]
    assert kinds == [
        *["message", "test", "action", "observation", "message", "edit", "observation", "test", "submit"],
    ]
    assert session.events[0]["text"] == task.statement
    assert "AssertionError: 'rock--roll' != 'rock-roll'" in session.events[1]["text"]
    assert session.events[3]["text"] == task.base[task.answer]
    assert session.events[7]["exit_code"] == 0
    assert [event["index"] for event in session.events] == list(range(9))


def test_the_cap_cuts_a_rollout_off(runner):
    session = Session(catalog.load()["slugs"], runner, 2)
    session.act("open")
    assert not session.done
    session.act("open")
    assert session.done
    assert session.truncated
