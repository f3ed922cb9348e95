"""Tools that run targeted checks in the sandbox; not offered where this machine has none."""

import time

from pydantic import Field

from grading import bodies
from grading.errors import BadInput
from grading.grader.checks import run_check as run_and_keep
from grading.grader.sandbox import Expect, Limits, Question
from grading.grader.tool_texts import ROOM_CHARS, Piece, bytes_lines, cut_line, listed
from grading.grader.tools.desk import Arguments, Desk, Refused, Tool
from grading.grader.tools.repository import named, tree_of
from grading.models import Check, Grading

OUTPUT_CHARS = 3_000
LEAST_S = 2.0


class RunCheck(Arguments):
    candidates: list[str] = Field(description="letters, and base for the unpatched tree; each gets the same check")
    argv: list[str] = Field([], description="the command, run in the tree, no shell; absent with expect_tests")
    files: dict[str, str] = Field({}, description="path -> text, written over the tree before the command runs")
    stdin: str = ""
    expect_tests: str = Field("", description="a Python test file among files; each test in it must pass; no argv then")
    expect_stdout: str | None = Field(None, description="what the command has to print, whole")
    expect_contains: str | None = Field(None, description="what the command has to print somewhere")
    expect_exit_code: int = Field(0, description="by itself it can show a failure, never a pass")


def run_check(desk: Desk, asked: RunCheck) -> str:
    letters = list(dict.fromkeys(tree_of(desk, candidate) for candidate in asked.candidates))
    if not letters:
        raise Refused("candidates is empty, expected letters, or base.")
    chars = max(500, min(OUTPUT_CHARS, 2 * ROOM_CHARS // len(letters)))
    return "\n".join(_one(desk, letter, asked, chars) for letter in letters)


def _one(desk: Desk, letter: str | None, asked: RunCheck, chars: int) -> str:
    if desk.checks_left <= 0:
        return f"Not run for {named(letter)}: the budget of {desk.options.max_checks} checks is used up."
    left_s = desk.deadline - time.monotonic()
    if left_s < LEAST_S:
        return f"Not run for {named(letter)}: the time is up."
    wall_s = desk.options.check_wall_s if left_s > desk.options.check_wall_s else float(int(left_s))
    desk.checks_run += 1
    grading = Grading.objects.filter(pk=desk.grading_id).first() if desk.grading_id else None
    check = run_and_keep(desk.ws.group, desk.ws, letter, _question(desk, asked, wall_s), grading)
    return _said(desk, letter, check, chars)


def _question(desk: Desk, asked: RunCheck, wall_s: float) -> Question:
    expect = Expect(asked.expect_exit_code, asked.expect_stdout, asked.expect_contains, asked.expect_tests)
    try:
        return Question(
            argv=tuple(asked.argv),
            files={path: text.encode() for path, text in asked.files.items()},
            stdin=asked.stdin.encode(),
            expect=expect,
            image=desk.options.check_image,
            limits=Limits(wall_s=wall_s),
        )
    except UnicodeEncodeError:
        raise BadInput("files and stdin have to be text that UTF-8 can hold") from None


def _said(desk: Desk, letter: str | None, check: Check, chars: int) -> str:
    head = f"{check.name} of {named(letter)}: {check.outcome}, {desk.ws.scrub(check.words)}"
    if not check.output:
        return f"{head}\nIt printed nothing."
    text = desk.ws.scrub(bodies.read_bytes(check.output).decode("utf-8", "replace"))
    tail = text[-chars:]
    piece = listed((cut_line(line) for line in bytes_lines(tail.encode())), room=2 * chars)
    cut = f"The last {len(tail)} of {len(text)} characters." if len(tail) < len(text) else ""
    cut += " The output was over its limit and is not all kept." if check.is_truncated else ""
    label = "output of a check of the base" if letter is None else f"output of a check of candidate {letter}"
    return f"{head}\n{desk.answer(label, Piece(piece.body, cut.strip()))}"


class ListChecks(Arguments):
    pass


def list_checks(desk: Desk, asked: ListChecks) -> str:
    rows = desk.ws.group.checks.select_related("trajectory").order_by("pk")
    lines = []
    for check in rows:
        letter = desk.ws.letters.get(check.trajectory.external_id) if check.trajectory else None
        what = " ".join(check.asked["argv"]) or check.asked["expect"]["tests"]
        lines.append(f"{check.name} of {named(letter)}: {check.outcome}: {desk.ws.scrub(what)}")
    if not lines:
        return "No check was run yet."
    return desk.answer("checks", listed(cut_line(line) for line in lines))


NEEDS = ("checks",)
TOOLS = (
    Tool(
        "run_check",
        "Run one command, or one Python test file of yours, on the trees of candidates, in a sandbox without network. "
        "The result has a name (check:N) that you may cite as a result of the candidate it ran for. What a candidate's "
        "code prints about itself proves nothing: ask for what depends on an input of yours.",
        RunCheck,
        run_check,
        NEEDS,
    ),
    Tool("list_checks", "The checks of this group so far.", ListChecks, list_checks, NEEDS),
)
