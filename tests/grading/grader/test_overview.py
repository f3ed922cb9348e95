import random
import re

import pytest

from grading.grader.overview import fair_shares, summaries, turns_of
from tests.grading.grader.seen import SeenRollout, came, changed, did


def turns(*events):
    return [str(turn) for turn in turns_of(iter(enumerate(events)))]


def test_a_turn_is_what_was_done_with_what_came_back():
    assert turns(did("pytest -q", "Let me test."), came("2 failed, 3 passed in 1.2s", exit_code=1)) == [
        '[0-1] action: bash | pytest -q | "Let me test." -> exit 1, 2 failed, 3 passed in 1.2s'
    ]


def test_an_observation_without_an_exit_code_says_how_much_came_back():
    assert turns(did("ls"), came("a\nb"))[0].endswith("-> 2 lines")
    assert turns(did("true"), came(""))[0].endswith("-> nothing")


def test_code_that_is_read_is_no_result_of_a_run():
    assert turns(did("cat a.py"), came("def f():\n    raise ValueError(x)\n12: except KeyError:"))[0].endswith(
        "3 lines"
    )
    assert turns(did("python a.py"), came("Traceback\n  x\nKeyError: 'a'"))[0].endswith("-> KeyError: 'a'")
    assert turns(did("lss"), came("sh: lss: command not found", exit_code=127))[0].endswith(
        "exit 127, sh: lss: command not found"
    )


def test_a_command_of_several_lines_shows_more_than_its_first():
    assert turns(did("python - <<'E'\nimport  os\n\nprint(1)\nE")) == [
        "[0] action: bash | python - <<'E' / import os / print(1) / E"
    ]


def test_alike_turns_fold_although_their_words_differ():
    found = turns(did("pytest", "Once."), came("1 failed"), did("pytest", "Again."), came("1 failed"))
    assert found == ['[0-3] action: bash | pytest | "Once." -> 1 failed (the same 2 times)']


def test_an_atif_step_is_one_turn():
    step = {
        "source": "agent",
        "message": "Run it.",
        "tool_calls": [{"function_name": "shell", "arguments": {"cmd": "make"}}],
        "observation": {"results": [{"content": "make: *** Error 2\nValueError: no"}]},
    }
    assert turns(step) == ['[0] action: shell | make | "Run it." -> ValueError: no']


def test_the_same_action_several_times_in_a_row_is_one_line():
    again = [did("pytest"), came("1 failed", exit_code=1)]
    assert turns(*again * 5, did("ls"), came("a")) == [
        "[0-9] action: bash | pytest -> exit 1, 1 failed (the same 5 times)",
        "[10-11] action: bash | ls -> 1 line",
    ]


def test_calls_side_by_side_keep_what_came_back_to_the_last():
    assert turns(did("a"), did("b"), came("x"), came("y")) == [
        "[0] action: bash | a",
        "[1-3] action: bash | b -> 1 line",
    ]


def test_what_comes_back_without_an_action_is_a_line_of_its_own():
    assert turns(came("hello"), {"kind": "system", "text": "stopped"}) == [
        "[0] observation: hello",
        "[1] system: stopped",
    ]


def test_a_summary_says_outcome_patch_tests_twins_and_counts():
    one = SeenRollout(
        patch=changed("src/a.py", old=["x"], new=["y", "z"]),
        tests=[{"name": "t_ok", "status": "passed"}, {"name": "t_bad", "status": "failed"}],
        counts={"turns": 7, "model": "secret"},
        twins=("C",),
        events=[did("ls")],
    )
    assert summaries([one])["A"].split("\n") == [
        "tests: 1 failed, 1 passed; not passed: t_bad",
        "patch: 1 file, +2 -1, 88 bytes: src/a.py +2 -1",
        "the same patch, byte for byte: C",
        "events: 1; turns 7",
        "[0] action: bash | ls",
    ]


def test_a_rollout_without_anything_is_said_to_have_nothing():
    assert summaries([SeenRollout()])["A"].split("\n") == [
        "tests: no single results were kept", "patch: empty", "events: none were kept",
    ]  # fmt: skip


@pytest.mark.parametrize("place", range(4))
def test_no_candidate_gets_less_because_of_its_place_or_of_a_long_neighbour(place):
    long = [did(f"step {n} " + "x" * 60) for n in range(500)]
    small = [did(f"small {n}") for n in range(10)]
    rollouts = [SeenRollout(letter, events=list(long)) for letter in "ABC"]
    rollouts.insert(place, SeenRollout("S", events=small))
    found = summaries(rollouts, chars=12_000)
    assert "evenly thinned" not in found["S"] and found["S"].count("small") == 10
    sizes = [len(found[letter]) for letter in "ABC"]
    assert max(sizes) - min(sizes) < 200 and sum(map(len, found.values())) < 12_000


def test_a_long_trajectory_is_thinned_evenly_and_says_so():
    events = [did(f"step {n:04} " + "x" * 60) for n in range(1000)]
    lines = summaries([SeenRollout(events=events)], chars=8_000)["A"].split("\n")
    shown = [int(line[1 : line.index("]")]) for line in lines if line.startswith("[")]
    assert shown[0] == 0 and shown[-1] == 999
    gaps = [b - a for a, b in zip(shown, shown[1:], strict=False)]
    assert max(gaps) - min(gaps) <= 1
    assert f"({len(shown)} of 1000 turns are shown, evenly thinned; read_events shows the others)" in lines


def test_a_huge_trajectory_is_read_in_blocks_spread_over_it_and_says_so():
    events = [did(f"step {n}") for n in range(20_000)]
    text = summaries([SeenRollout(events=events)], chars=10**7)["A"]
    shown = [int(found) for found in re.findall(r"step (\d+)$", text, re.MULTILINE)]
    assert 4_000 <= len(shown) < 4_100 and f"({20_000 - len(shown)} events, in blocks evenly spread, were not" in text
    assert shown == sorted(shown) and shown[0] == 0 and shown[-1] > 19_500
    tenths = [sum(n // 2_000 == tenth for n in shown) for tenth in range(10)]
    assert min(tenths) > 300


def test_a_trajectory_that_is_slow_to_read_costs_no_more_than_its_share_of_the_time():
    ticks = iter(range(10**6))
    slow = [did(f"step {n}") for n in range(3_000)]
    found = summaries([SeenRollout(letter, events=slow) for letter in "AB"], clock=lambda: next(ticks))
    read = [len(re.findall("step", text)) for text in found.values()]
    assert 32 < read[0] < 1_000 and abs(read[0] - read[1]) <= 32  # a second a block, 15 seconds each


def test_fair_shares_by_hand():
    # 30 for three: the 4 is satisfied, 26 are left for two, 13 each
    assert fair_shares([100, 4, 100], 30) == [13, 4, 13]
    assert fair_shares([5, 6], 30) == [5, 6]
    assert fair_shares([], 30) == []


def test_fair_shares_keep_the_budget_and_equal_needs_get_equal_shares():
    draw = random.Random(1)
    for _ in range(200):
        needs = [draw.choice([10, 50, 500]) for _ in range(draw.randint(1, 12))]
        shares = fair_shares(needs, budget := draw.randint(0, 2000))
        assert sum(shares) <= budget and all(s <= n for s, n in zip(shares, needs, strict=True))
        assert len({(n, s) for n, s in zip(needs, shares, strict=True)}) == len(set(needs))


def test_hidden_characters_of_a_candidate_are_visible():
    text = summaries([SeenRollout(events=[did("echo \u202eevil"), came("\x1b[31mError\x1b[0m: x", exit_code=2)])])["A"]
    assert "\u202e" not in text and "\x1b" not in text and "⟨U+202E⟩" in text
