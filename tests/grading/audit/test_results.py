"""What an audit says, counted by hand."""

import numpy as np
import pytest

from grading.audit.results import Judged, JudgedGroup, differences, summary
from grading.scoring.criteria import CRITERIA

ALL = dict.fromkeys(CRITERIA, 4)


def one(arm: int, place: int | None, *, passed=True, score=4, tier=1) -> Judged:
    if place is None:
        return Judged(arm, passed)
    return Judged(arm, passed, dict.fromkeys(CRITERIA, score), float(score), tier, place)


def group(task: str, *candidates: Judged, window=0) -> JudgedGroup:
    return JudgedGroup(task, window, candidates)


TWO = [
    # arm 0 at places 0 and 2, arm 1 at 1 and 1: pairs of arm 0: beats two, loses two = 2/4; first: arm 0 alone
    group("a", one(0, 0, score=5), one(0, 2, score=3, tier=2), one(1, 1), one(1, 1)),
    # tied at the top: half each; pairs: one tie = 1/2. The failure of arm 1 is ranked, and in no pair
    group("b", one(0, 0), one(1, 0), one(1, 1, passed=False, score=1, tier=3)),
]


def test_the_figures_of_two_groups_by_hand():
    found = summary(TWO, 2, seed=1)
    assert [e.value for e in found["W"]] == [(5 + 3 + 4) / 3, (4 + 4 + 4 + 1) / 4]
    assert [e.value for e in found["W_passing"]] == [4, 4]
    assert [e.value for e in found["win_rate"]] == [0.5, 0.5]
    assert [e.value for e in found["group_first"]] == [0.75, 0.25]
    assert [e.value for e in found["T1"]] == [2 / 3, 3 / 4]
    assert [e.value for e in found["T1_passing"]] == [2 / 3, 1]
    assert [e.value for e in found["pass_rate"]] == [1, 3 / 4]
    assert [e.n for e in found["W"]] == [3, 4]
    assert [e.n for e in found["win_rate"]] == [2, 2]


def test_win_rates_of_two_arms_add_up_to_one_and_so_do_first_shares_of_three():
    draw = np.random.default_rng(5)
    groups = [
        group(f"t{n}", *(one(arm, int(draw.integers(4)), passed=bool(draw.integers(2))) for arm in (0, 0, 1, 1, 2)))
        for n in range(40)
    ]
    assert sum(e.value for e in summary(groups, 3, seed=1)["group_first"]) == pytest.approx(1)
    two = [group(g.task, *(c for c in g.candidates if c.arm < 2)) for g in groups]
    assert sum(e.value for e in summary(two, 2, seed=1)["win_rate"]) == pytest.approx(1)


def test_what_is_not_defined_has_no_value_and_says_why():
    alone = [group("a", one(0, 0), one(1, 1, passed=False))]
    found = summary(alone, 2, seed=1)
    assert found["win_rate"][0].value is None and found["win_rate"][0].why
    assert found["W_passing"][1].value is None
    assert found["W"][0].value == 4 and found["W"][0].low is None and "1 task" in found["W"][0].why
    assert summary([], 2, seed=1)["W"][0].value is None


def test_a_leak_is_not_ranked_and_loses_every_first_place():
    found = summary([group("a", one(0, None), one(1, 0)), group("b", one(0, 0), one(1, 1))], 2, seed=1)
    assert [e.value for e in found["found"]] == [0.5, 0]
    assert [e.value for e in found["group_first"]] == [0.5, 0.5]
    assert found["W"][0].n == 1


def test_the_interval_covers_the_truth_as_often_as_it_says():
    """Tasks differ by 1 point, rollouts of a task by less: intervals over rollouts would be far too narrow."""
    draw, inside = np.random.default_rng(11), 0
    for trial in range(120):
        level = draw.normal(3, 1, 30)
        groups = [
            group(str(t), *(Judged(0, True, ALL, level[t] + draw.normal(0, 0.2), 1, 0) for _ in range(3)))
            for t in range(30)
        ]
        found = summary(groups, 1, seed=trial)["W"][0]
        inside += found.low <= 3 <= found.high
    assert 0.86 <= inside / 120 <= 1.0


def test_a_difference_is_paired_by_task_and_so_narrower_than_either():
    draw = np.random.default_rng(3)
    groups = []
    for t in range(30):
        level, gained = draw.normal(3, 1), 0.3 + 0.02 * (t % 2 - 0.5)
        groups.append(group(str(t), Judged(0, True, ALL, level, 1, 0), Judged(1, True, ALL, level + gained, 1, 0)))
    gain, each = differences(groups, 2, seed=1)["W"][1], summary(groups, 2, seed=1)["W"][1]
    assert gain.value == pytest.approx(0.3)
    assert gain.low > 0.25 and gain.high - gain.low < (each.high - each.low) / 5
    assert differences(groups, 2, seed=1)["W"][0].value == 0


def test_tasks_that_all_say_the_same_have_no_interval_of_no_width():
    groups = [group(f"t{n}", one(0, 0, score=5), one(1, 1, score=3)) for n in range(4)]
    found, gain = summary(groups, 2, seed=1), differences(groups, 2, seed=1)["W"][1]
    assert gain.value == -2 and gain.low is None and "all 4 tasks say the same" in gain.why
    assert found["W"][0].low is None and "all 4 tasks say the same" in found["W"][0].why


def test_the_same_seed_gives_the_same_interval():
    assert summary(TWO, 2, seed=9) == summary(TWO, 2, seed=9)
