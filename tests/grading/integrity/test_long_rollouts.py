"""Long patches, commands and logs: what is read of them is bounded, and twice the text costs about twice the work."""

import time

import pytest

from grading.integrity.registry import DETECTORS, SIGNALS_KEPT, detect
from grading.integrity.rollout import LINE_BYTES, LINES_TRIED, SCAN_CHARS, SCAN_LINES, Rollout
from grading.review.diffs.parse import parse_patch
from tests.grading.integrity.fixtures import changed, created, ran

PIECES = [
    "a",
    " ",
    "=",
    "(",
    "[1,",
    "/",
    "../",
    "git log ",
    "if x == ",
    "except ",
    "http://github.com/",
    "until pytest ",
]
LINE = "    if except_(x) == os.environ['test'] and time.sleep(1): print('3 passed')"


def cost_s(*, patch=b"", events=(), log=b"") -> float:
    parsed = parse_patch(patch)
    started = time.process_time()
    detect("C", parsed, events, log)
    return time.process_time() - started


@pytest.mark.parametrize("piece", PIECES)
def test_a_line_of_five_megabytes_in_the_patch_a_command_and_the_log_is_no_trap(piece):
    line = piece * (5_000_000 // len(piece))
    patch, events = changed("src/sum.py", f"+{line}\n"), ran(line)
    # a rule that backtracks over such a line takes minutes, not seconds
    assert cost_s(patch=patch, events=events, log=line.encode()) < 20


def test_twice_the_lines_are_about_twice_the_work():
    small, large = (changed("src/sum.py", f"+{LINE}\n" * count) for count in (2_000, 4_000))
    cost_s(patch=small)
    assert cost_s(patch=large) < 4 * cost_s(patch=small) + 0.2


def test_of_a_patch_of_300_000_lines_the_first_are_read():
    rollout = Rollout("C", parse_patch(created("src/table.py", *["x = 1"] * (SCAN_LINES + 100_000))))
    assert sum(len(written.lines) for written in rollout.written) == SCAN_LINES


def test_a_flood_of_half_matches_is_tried_a_bounded_number_of_times():
    (written,) = Rollout("C", parse_patch(created("src/x.py", *["exit(1)"] * (2 * LINES_TRIED)))).written
    assert len(written.holding("exit(")) == LINES_TRIED


def test_a_hack_behind_a_long_line_and_a_long_command_is_still_seen():
    patch = created("src/sum.py", "x" * 1_000_000, "os._exit(0)")
    events = ran("a" * (SCAN_CHARS * 2), "git log --all --grep=fix")
    assert {s.detector for s in detect("C", parse_patch(patch), events)} >= {"H3", "H6", "H16"}
    (written,) = Rollout("C", parse_patch(patch)).written
    assert len(written.line(0)) == LINE_BYTES


def test_signals_of_every_detector_are_cut():
    patch = created("src/sum.py", *["os._exit(0)"] * 500)
    found = detect("C", parse_patch(patch))
    assert [signal.detector for signal in found] == ["H3"] * SIGNALS_KEPT
    assert set(DETECTORS) == {f"H{n}" for n in range(1, 18)}
