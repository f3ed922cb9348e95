"""From what our runner saw to one word, on paper."""

import json

import pytest

from grading.errors import WrongShape
from grading.grader.sandbox.collect import collect
from grading.grader.sandbox.judge import judge
from grading.grader.sandbox.shape import Ended, Expect, Limits, Question

TWO = b"def test_a(): pass\nclass TestB:\n    def test_c(self): pass\n"


def outcome(question: Question, **ended) -> str:
    return judge(question, Ended(**{"exit_code": 0} | ended), token="t0k", sandbox="docker").outcome


def command(**expect) -> Question:
    return Question(argv=("prog",), expect=Expect(**expect))


def of_tests(*records, exit_code=0, **ended) -> str:
    question = Question(files={"t.py": TWO}, expect=Expect(tests="t.py"))
    stdout = b"".join(b"t0k " + json.dumps(record).encode() + b"\n" for record in records)
    return outcome(question, stdout=stdout, exit_code=exit_code, **ended)


A, C, END = {"test": "test_a", "how": "passed"}, {"test": "TestB.test_c", "how": "passed"}, {"end": "complete"}


@pytest.mark.parametrize(
    ("expect", "ended", "word"),
    [
        ({"stdout": "42"}, {"stdout": b"42\n"}, "passed"),
        ({"stdout": "42"}, {"stdout": b"421\n"}, "failed"),
        ({"contains": "42"}, {"stdout": b"is 42.\n"}, "passed"),
        ({"contains": "42"}, {"stdout": b"is 41.\n"}, "failed"),
        ({"contains": "42"}, {"stdout": b"is 41", "is_truncated": True}, "unknown"),
        ({"contains": "42", "exit_code": 3}, {"stdout": b"42", "exit_code": 3}, "passed"),
        ({"contains": "42", "exit_code": 137}, {"stdout": b"42", "exit_code": 137}, "passed"),
        ({"contains": "42"}, {"stdout": b"42", "exit_code": 3}, "failed"),
        ({}, {}, "unknown"),
        ({"contains": ""}, {"stdout": b"x"}, "unknown"),
        ({"stdout": " \n"}, {"stdout": b""}, "unknown"),
        ({"exit_code": 3}, {"exit_code": 3}, "unknown"),
        ({}, {"exit_code": 1}, "failed"),
        ({}, {"exit_code": None}, "unknown"),
        ({}, {"exit_code": 127}, "unknown"),
        ({}, {"exit_code": 251}, "unknown"),
        ({"contains": "42"}, {"stdout": b"42", "exit_code": 137}, "killed"),
        ({"contains": "42"}, {"stdout": b"42", "exit_code": 152}, "killed"),
        ({"contains": "42"}, {"stdout": b"42", "stopped": "wall", "exit_code": None}, "timeout"),
        ({"contains": "42"}, {"stdout": b"42", "stopped": "memory", "exit_code": None}, "killed"),
        ({"contains": "42"}, {"stdout": b"42", "stopped": "output", "exit_code": None}, "killed"),
    ],
)
def test_a_command_passes_only_by_what_it_printed(expect, ended, word):
    assert outcome(command(**expect), **ended) == word


@pytest.mark.parametrize(
    "summary",
    ["1 passed", "=== 12 passed in 0.03s ===", "OK", "ok\n", "PASS", "all tests passed!", "Ran 3 tests", "Success"],
)
def test_a_printed_summary_is_never_enough(summary):
    printed = f"collected\n{summary}\n".encode()
    assert outcome(command(contains=summary), stdout=printed) == "unknown"
    assert outcome(command(stdout=summary), stdout=summary.encode()) == "unknown"


def test_every_test_must_be_seen_to_finish():
    assert of_tests(A, C, END) == "passed"
    assert of_tests(A, END) == "unknown"
    assert of_tests(A, C) == "unknown"
    assert of_tests(END) == "unknown"
    assert of_tests() == "unknown"
    assert of_tests(A, C, {"end": "spoilt"}) == "unknown"
    assert of_tests(A, C | {"how": "unknown"}, END) == "unknown"
    assert of_tests(A, C | {"how": "failed"}, END) == "failed"
    assert of_tests(A | {"how": "failed"}, {"end": "early", "status": 0}) == "failed"
    assert of_tests(A, {"end": "early", "status": 137}) == "killed"
    assert of_tests(A, stopped="wall", exit_code=None) == "timeout"
    assert of_tests(A, C, {"test": "test_z", "how": "failed"}, END) == "passed"  # no test of the file


def test_a_runner_that_does_not_start_is_said():
    question = Question(files={"t.py": TWO}, expect=Expect(tests="t.py"))
    assert judge(question, Ended(127), token="t", sandbox="docker").words == "python3 is not in the sandbox: status 127"
    assert judge(question, Ended(1), token="t", sandbox="docker").words == "our runner did not start: status 1"


def test_lines_without_the_token_are_nobodys_words():
    question = Question(files={"t.py": TWO}, expect=Expect(tests="t.py"))
    lines = b"\n".join(json.dumps(record).encode() for record in (A, C, END))
    assert outcome(question, stdout=lines) == "unknown"
    assert outcome(question, stdout=lines.replace(b"{", b"t0 {")) == "unknown"
    assert outcome(question, stdout=lines.replace(b"{", b"t0k {")) == "passed"
    assert outcome(question, stdout=b"t0k [1]\nt0k {nonsense\nt0k \xff\n") == "unknown"


def test_tests_are_found_in_the_text():
    source = b"""
import unittest
def helper(): pass
def test_one(x=1): pass
class TestA:
    def test_two(self): pass
    def other(self): pass
class Odd(unittest.TestCase):
    def test_three(self): pass
class Plain:
    def test_never(self): pass
if True:
    def test_hidden(): pass
"""
    assert collect(source) == ("test_one", "TestA.test_two", "Odd.test_three")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (b"def test_x(tmp_path): pass", "our runner cannot run test_x"),
        (b"async def test_x(): pass", "our runner cannot run test_x"),
        (b"class TestA:\n    def test_x(self, db): pass", "our runner cannot run TestA.test_x"),
        (b"x = 1", "holds no test"),
        (b"def test_x(:", "is not Python"),
        (b"\0", "is not Python"),
        (b"(" * 5000, "is not Python"),
    ],
)
def test_what_our_runner_cannot_run_is_said_before_anything_runs(source, words):
    with pytest.raises(WrongShape, match=words):
        Question(files={"t.py": source}, expect=Expect(tests="t.py"))


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({}, "without a command"),
        ({"argv": ("",)}, "without a command"),
        ({"argv": ("a\0b",)}, "cannot be run"),
        ({"argv": ("x" * 70_000,)}, "cannot be run"),
        ({"argv": ("x",), "files": {"t.py": TWO}, "expect": Expect(tests="t.py")}, "run by our runner"),
        ({"files": {"t.py": TWO}, "expect": Expect(tests="t.py", contains="x")}, "run by our runner"),
        ({"expect": Expect(tests="t.py")}, "not among the files"),
        ({"argv": ("x",), "files": {f"{n}": b"" for n in range(101)}}, "too much"),
        ({"argv": ("x",), "files": {"a": b"", "a/b/c": b""}}, "cannot be a folder, too"),
        *(({"argv": ("x",), "files": {path: b""}}, "outside the tree")
          for path in ("../x", "/etc/passwd", "a/../../x", "", ".", "a//b", "a/./b", ".git/config", "a/.git/x",
                       "a/", "x\0y", "y" * 501)),
    ],
)  # fmt: skip
def test_a_question_that_cannot_be_asked_is_refused(asked, words):
    with pytest.raises(WrongShape, match=words):
        Question(**asked)


def test_a_limit_is_more_than_nothing():
    with pytest.raises(WrongShape, match="limit pids"):
        Limits(pids=0)
