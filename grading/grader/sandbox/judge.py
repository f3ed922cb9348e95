"""From what our runner saw to one word: passed, failed, timeout, killed or unknown. Core."""

import json
import re
from collections.abc import Mapping
from typing import Any

from grading.grader.sandbox.shape import Ended, Expect, Question, Ran

SETUP_FAILED = 251  # by engine.PREPARE, before anything of the tree ran
LIMIT_STATUS = {137: "SIGKILL", 152: "SIGXCPU", 153: "SIGXFSZ"}  # 128 + signal
NOT_STARTED = {126: "could not be executed", 127: "is not in the sandbox"}
STOPPED = {
    "wall": ("timeout", "not over after {0.wall_s:g} s"),
    "memory": ("killed", "took more than {0.memory_bytes} bytes of memory"),
    "output": ("killed", "printed without end: more than {1} bytes"),
}
FLOOD_BYTES = 64 << 20  # printed in all; what is kept is `output_bytes`
# What test runners print at the end. Any code can print it, so it shows nothing about tests.
SUMMARY = re.compile(
    r"[\s=]*(\d+ (tests? )?(passed|ok)\b.*|ok|pass(ed)?|success\w*|all (tests? )?pass\w*|ran \d+ tests?.*)[\s=.!]*",
    re.IGNORECASE | re.DOTALL,
)


def judge(question: Question, ended: Ended, *, token: str, sandbox: str) -> Ran:
    """Judge one run.

    Args:
        question: what was asked.
        ended: how it ended.
        token: the secret that marks the lines of our own runner on stdout.
        sandbox: which one ran it.
    Returns:
        The result. It is `passed` only if our runner saw every test finish, or the command printed what was expected.
    """
    if question.expect.tests:
        outcome, words = _of_tests(question, ended, records(ended.stdout, token))
    else:
        outcome, words = _of_command(question, ended)
    return Ran(outcome, words[:500], sandbox, ended.exit_code, ended.output, ended.is_truncated, ended.duration_s)


def records(stdout: bytes, token: str) -> list[dict[str, Any]]:
    """Returns: what our runner said, line by line; every other line on stdout is passed over."""
    mark = token.encode() + b" "
    found = []
    for line in stdout.split(b"\n"):
        if line.startswith(mark):
            try:
                record = json.loads(line[len(mark) :])
            except ValueError:
                continue
            found.append(record if isinstance(record, dict) else {})
    return found


def _of_tests(question: Question, ended: Ended, said: list[dict[str, Any]]) -> tuple[str, str]:
    names = question.test_names
    done = {record["test"]: record for record in said if record.get("test") in names}
    for name, record in done.items():
        if record.get("how") == "failed":
            return "failed", f"{name} failed: {record.get('words', '')}"
    if ended.stopped or ended.exit_code in LIMIT_STATUS or ended.exit_code == SETUP_FAILED:
        return _ended_by_us(question, ended)
    if not said:
        why = (
            f"python3 {NOT_STARTED[ended.exit_code]}" if ended.exit_code in NOT_STARTED else "our runner did not start"
        )
        return "unknown", f"{why}: status {ended.exit_code}"
    last: Mapping[str, Any] = next((record for record in said if "end" in record), {})
    if last.get("status") in LIMIT_STATUS:
        return "killed", f"the tests' process was ended by {LIMIT_STATUS[last['status']]}: a limit"
    missing = [name for name in names if done.get(name, {}).get("how") != "passed"]
    if missing:
        record = done.get(missing[0], {})
        why = record.get("words") or last.get("words") or "the tests' process ended before it did"
        return "unknown", f"{len(missing)} of {len(names)} tests not seen to finish, first {missing[0]}: {why}"
    if last.get("end") != "complete":
        return "unknown", last.get("words") or "our runner did not say that all was over"
    return "passed", f"{len(names)} of {len(names)} tests passed"


def _of_command(question: Question, ended: Ended) -> tuple[str, str]:
    expect, status = question.expect, ended.exit_code
    if ended.stopped or (status in LIMIT_STATUS and status != expect.exit_code) or status == SETUP_FAILED:
        return _ended_by_us(question, ended)
    if status is None:
        return "unknown", "the sandbox ended without a status"
    if status in NOT_STARTED and status != expect.exit_code:
        return "unknown", f"{question.argv[0][:100]} {NOT_STARTED[status]}"
    if status != expect.exit_code:
        return "failed", f"status {status}, expected {expect.exit_code}"
    return _of_output(expect, ended)


def _of_output(expect: Expect, ended: Ended) -> tuple[str, str]:
    printed = ended.stdout.decode(errors="replace")
    wanted = [text for text in (expect.stdout, expect.contains) if text is not None and text.strip()]
    whole = expect.stdout is None or expect.stdout.strip() == printed.strip()
    if not whole or (expect.contains is not None and expect.contains not in printed):
        if ended.is_truncated:
            return "unknown", "the expected words are not in the part of the output that was kept"
        return "failed", f"status {ended.exit_code}, but stdout is not what was expected"
    if not wanted:
        return "unknown", f"status {ended.exit_code} alone shows nothing: any code can end its process with it"
    if all(SUMMARY.fullmatch(text) for text in wanted):
        return "unknown", "a printed summary shows nothing: any code can print it"
    return "passed", f"status {ended.exit_code}, and stdout is what was expected"


def _ended_by_us(question: Question, ended: Ended) -> tuple[str, str]:
    if ended.stopped:
        outcome, words = STOPPED[ended.stopped]
        return outcome, words.format(question.limits, FLOOD_BYTES)
    if ended.exit_code == SETUP_FAILED:
        return "unknown", "the tree could not be unpacked in the sandbox: is it larger than disk_bytes?"
    return "killed", f"ended by {LIMIT_STATUS[ended.exit_code]}: a limit"
