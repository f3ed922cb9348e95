"""Targeted checks as rows: run once, named, kept, citable; and none at all without a sandbox (S10, S11)."""

from dataclasses import dataclass
from pathlib import Path
from threading import Barrier, Thread

import pytest

from grading import bodies
from grading.errors import BadInput, NoSandbox, NotFound
from grading.grader import gather
from grading.grader.checks import run_check
from grading.grader.sandbox import Expect, Limits, Question, find_sandbox, why_no_sandbox
from grading.grader.workspace import Workspace
from grading.models import Check, Grading, RolloutGroup
from grading.review.anchors import Citation
from grading.states import GroupState
from tests.factories import PATCH, make_group, make_run
from tests.grading.grader.repositories import bundle, make_repository, stored_task

pytestmark = pytest.mark.django_db
NOT_HERE = why_no_sandbox()
in_a_sandbox = pytest.mark.skipif(bool(NOT_HERE), reason=NOT_HERE or "there is one")
ANSWERS = {"A": 42, "B": 41, "C": 42, None: 0}


@dataclass
class Trees:
    """A checkout for each candidate, as a workspace gives them."""

    folder: Path

    def tree(self, letter):
        tree = self.folder / (letter or "base")
        if not tree.exists():
            tree.mkdir()
            (tree / "app.py").write_text(f"def answer(): return {ANSWERS[letter]}\n")
        return tree

    def why_no_tree(self, letter):
        return ""


class NoTrees(Trees):
    def tree(self, letter):
        return None

    def why_no_tree(self, letter):
        return "the task names no repository"


@pytest.fixture
def ws(tmp_path):
    return Trees(tmp_path)


@pytest.fixture
def group():
    return make_group(state=GroupState.GRADING, outcomes="PPPF")


def answers(number: int = 42, **asked) -> Question:
    test = f"import app\ndef test_answer():\n    assert app.answer() == {number}\n".encode()
    return Question(files={"check_answer.py": test}, expect=Expect(tests="check_answer.py"), **asked)


@in_a_sandbox
def test_a_check_is_a_row_with_what_was_asked_and_what_came_of_it(group, ws):
    grading = Grading.objects.create(group=group, grader="agentic")
    check = run_check(group, ws, "B", answers(), grading)
    assert Check.objects.get() == check
    assert (check.name, check.outcome, check.sandbox, check.image) == ("check:1", "failed", "bubblewrap", "")
    assert (check.trajectory.letter, check.grading, check.exit_code) == ("B", grading, 0)
    assert check.words.startswith("test_answer failed: AssertionError")
    assert b"assert app.answer() == 42" in bodies.read_bytes(check.output)
    assert check.output_bytes == len(bodies.read_bytes(check.output)) and not check.is_truncated
    assert bodies.read_bytes(check.asked["files"]["check_answer.py"]).startswith(b"import app")
    assert check.asked["expect"]["tests"] == "check_answer.py"
    assert check.duration_s > 0


@in_a_sandbox
def test_a_workspace_gives_the_tree_of_each_candidate_and_of_the_base(tmp_path):
    folder, commit = make_repository(tmp_path / "r")
    task = stored_task(bundle(folder), base_commit=commit)
    group = make_group(task=task, run=make_run(team=task.team), state=GroupState.GRADING, outcomes="PP")
    with Workspace.open(group) as ws:  # A answers 42, B 43, the base 41
        got = {letter: run_check(group, ws, letter, answers()).outcome for letter in ("A", "B", None)}
        assert got == {"A": "passed", "B": "failed", None: "failed"}
        has_git = Question(argv=("sh", "-c", "ls -A . .git 2>/dev/null; echo over"), expect=Expect(contains="over"))
        assert b".git" not in bodies.read_bytes(run_check(group, ws, "A", has_git).output)


@in_a_sandbox
def test_names_are_dense_within_a_group_and_the_same_question_is_asked_once(group, ws):
    first = run_check(group, ws, "A", answers())
    assert (first.name, first.outcome) == ("check:1", "passed")
    assert run_check(group, ws, "A", answers()) == first
    assert run_check(group, ws, "A", answers(41)).name == "check:2"
    assert run_check(group, ws, None, answers()).name == "check:3"
    assert run_check(group, ws, "A", answers(limits=Limits(wall_s=59))).name == "check:4"
    assert run_check(make_group(state=GroupState.GRADING, outcomes="PF"), ws, "A", answers()).name == "check:1"


@in_a_sandbox
def test_stdin_and_command_are_part_of_the_question(group, ws):
    asked = [
        Question(argv=("cat",), stdin=stdin, expect=Expect(contains="x")) for stdin in (b"x\xff", b"x\xfe", b"x\0\xff")
    ]
    assert [run_check(group, ws, "A", question).name for question in asked] == ["check:1", "check:2", "check:3"]
    assert run_check(group, ws, "A", asked[1]).name == "check:2"


@in_a_sandbox
def test_output_is_stored_up_to_the_limit_and_the_row_says_so(group, ws):
    code = "print('a' * 50_000, flush=True); import sys; print('b' * 50_000, file=sys.stderr)"
    check = run_check(group, ws, "A", Question(argv=("python3", "-c", code), limits=Limits(output_bytes=60_000)))
    assert (check.is_truncated, check.output_bytes) == (True, 60_000)
    assert bodies.read_bytes(check.output) == (b"a" * 50_000 + b"\n" + b"b" * 9_999)


@in_a_sandbox
def test_a_check_is_a_result_of_every_rollout_with_its_patch_and_of_no_other(ws, django_assert_num_queries):
    group = make_group(state=GroupState.GRADING, outcomes="PPPF", patches=[PATCH, PATCH, PATCH + b"\n", b"x"])
    check = run_check(group, ws, "A", answers())
    run_check(group, ws, None, answers())
    assert run_check(group, ws, "B", answers()) == check
    ids = dict(group.trajectories.values_list("letter", "external_id"))
    material = gather.material_of(group)
    cited = {letter: Citation("result", id, result="check:1") for letter, id in ids.items()}
    got = {letter: material.get(ids[letter]).resolve(cited[letter]).resolves for letter in "ABC"}
    assert got == {"A": True, "B": True, "C": False}
    assert "check:2" not in material.get(ids["A"]).results
    fresh = RolloutGroup.objects.select_related("run", "task").get(pk=group.pk)
    with django_assert_num_queries(2):  # the rollouts, their checks
        gather.material_of(fresh)


def test_what_cannot_be_checked_is_said(group, ws, tmp_path):
    with pytest.raises(BadInput, match="no such candidate, got Z, expected A, B, C, D"):
        run_check(group, ws, "Z", answers())
    with pytest.raises(BadInput, match="no such candidate"):
        run_check(group, ws, "", answers())
    if not NOT_HERE:
        with pytest.raises(NotFound, match="the task names no repository"):
            run_check(group, NoTrees(tmp_path), "A", answers())


def test_without_a_sandbox_nothing_is_run(group, ws, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody")  # also asks anew
    assert find_sandbox() is None
    assert "not installed: bwrap" in why_no_sandbox()
    asked = Question(argv=("/bin/touch", str(tmp_path / "ran")))
    with pytest.raises(NoSandbox, match="checks are off, got bubblewrap cannot run here"):
        run_check(group, ws, "A", asked)
    assert not (tmp_path / "ran").exists()
    assert not Check.objects.exists()


def test_an_image_that_cannot_be_had_is_not_replaced_by_the_host(group, ws, monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody")
    assert find_sandbox("python:3.11") is None
    with pytest.raises(NoSandbox, match="no docker engine answers"):
        run_check(group, ws, "A", answers(image="python:3.11"))
    assert not Check.objects.exists()


@in_a_sandbox
@pytest.mark.django_db(transaction=True)
def test_two_workers_that_ask_the_same_at_once_run_it_once(group, ws, tmp_path):
    ran = tmp_path / "runs"
    ran.mkdir()
    start, got, wrong = Barrier(3), [], []

    @dataclass
    class Counting(Trees):
        """Notes each tree that is taken: one for each time that a check runs."""

        def tree(self, letter):
            (ran / f"{len(list(ran.iterdir()))}").touch()
            return super().tree(letter)

    def work(question):
        from django.db import connection

        try:
            start.wait(10)
            got.append(run_check(group, Counting(ws.folder), "A", question).name)
        except Exception as failed:
            wrong.append(failed)
        finally:
            connection.close()

    slow = Question(argv=("sh", "-c", "sleep 0.3; echo 42"), expect=Expect(stdout="42"))
    other = Question(argv=("sh", "-c", "echo 43"), expect=Expect(stdout="43"))
    workers = [Thread(target=work, args=(question,)) for question in (slow, slow, other)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert not wrong
    assert len(list(ran.iterdir())) == 2
    assert sorted(got) in (["check:1", "check:2", "check:2"], ["check:1", "check:1", "check:2"])
    assert Check.objects.count() == 2
