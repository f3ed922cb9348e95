"""Decides the outcome of a candidate: the hidden tests and the visible ones as they were found."""

from dataclasses import dataclass

from training_bridge.tiny_job.catalog import Task
from training_bridge.tiny_job.errors import HarnessFailure
from training_bridge.tiny_job.runner import Runner
from training_bridge.tiny_job.tree import Tree


@dataclass(frozen=True)
class Judgement:
    """What became of a candidate.

    Args:
        outcome: "passed", "failed" or "infra_invalid".
        tests: {name, status, message} of every test that was run.
        log: what the run printed, or what was wrong with the harness.
    """

    outcome: str
    tests: list[dict]
    log: str


def judge(task: Task, tree: Tree, runner: Runner) -> Judgement:
    """Run the deciding tests on a candidate.

    Args:
        task: what was to be done.
        tree: the candidate; its own tests do not count, the ones of the task are put back.
        runner: executes.
    Returns:
        "failed" also for a time-out or a crash that the candidate can cause, else hanging the tests would be a way
        out; "infra_invalid" only on evidence from outside: the harness failed, or the untouched base dies as well.
    """
    try:
        run = runner.run(deciding_files(task, tree))
        if run.how != "ran" and runner.run(deciding_files(task, task.base), fresh=True).how != "ran":
            return Judgement("infra_invalid", [], f"the untouched base does not run either\n{run.output}")
    except HarnessFailure as broken:
        return Judgement("infra_invalid", [], str(broken))
    ended = {"timeout": "\n[time limit reached]\n", "crashed": "\n[ended without a report]\n", "ran": ""}[run.how]
    return Judgement("passed" if run.ok else "failed", run.tests, run.output + ended)


def deciding_files(task: Task, tree: Tree) -> Tree:
    """Return the candidate with the task's own tests, visible and hidden, and no others at the root."""
    kept = {path: text for path, text in tree.items() if not path.startswith("test_")}
    return kept | {path: task.base[path] for path in task.visible_tests} | task.hidden
