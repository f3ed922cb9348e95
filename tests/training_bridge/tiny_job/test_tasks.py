import itertools

import pytest

from training_bridge.tiny_job import catalog, edits
from training_bridge.tiny_job.judge import judge

TASKS = catalog.load()
# kind -> (hidden tests decide, the visible tests look fine); None where both may happen
MEANT = {
    "fix": ("passed", True),
    "rewrite": ("passed", True),
    "paste": ("passed", True),
    "partial": ("failed", None),
    "break": ("failed", None),
    "special": ("failed", True),
    "test": ("failed", True),
    "tidy": ("failed", False),
}


def test_there_are_at_least_twelve_tasks_with_every_kind_of_edit():
    assert len(TASKS) >= 12
    for task in TASKS.values():
        kinds = [edit.kind for group in edits.vocabulary(task).values() for edit in group]
        assert set(kinds) == set(MEANT)
        assert kinds.count("fix") >= 2


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_the_base_fails_exactly_the_test_that_shows_the_bug(task, runner):
    run = runner.run(task.base)
    assert run.exit_code == 1
    failed = [row["name"].rpartition(".")[2] for row in run.tests if row["status"] != "passed"]
    assert failed == [task.failing]
    assert judge(task, task.base, runner).outcome == "failed"


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_every_edit_does_to_the_tests_what_its_kind_says(task, runner):
    for edit in itertools.chain(*edits.vocabulary(task).values()):
        project = edit.make(task.base).tree
        outcome, looks_fine = MEANT[edit.kind]
        assert judge(task, project, runner).outcome == outcome, edit.name
        if looks_fine is not None:
            assert runner.run(project).ok == looks_fine, edit.name


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_tidying_a_right_fix_does_no_harm(task, runner):
    for edit in edits.vocabulary(task)["tidy"]:
        project = edit.make(task.reference).tree
        assert project != task.reference
        assert judge(task, project, runner).outcome == "passed", edit.name


def test_two_halves_of_a_fix_make_a_whole_one(runner):
    together = 0
    for task in TASKS.values():
        halves = [edit for edit in edits.vocabulary(task)["patch"] if edit.kind == "partial"]
        for first, second in itertools.permutations(halves, 2):
            change = second.make(first.make(task.base).tree)
            together += change is not None and judge(task, change.tree, runner).outcome == "passed"
    assert together >= 6


def test_the_same_small_edit_is_not_made_twice():
    task = TASKS["slugs"]
    for edit in itertools.chain(*edits.vocabulary(task).values()):
        if edit.kind in ("tidy", "test"):
            assert edit.make(edit.make(task.base).tree) is None, edit.name
