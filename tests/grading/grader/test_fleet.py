import json
from io import StringIO

import numpy as np
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from grading.grader.fleet import Played, Step, Times, draw, graders_for, growth, play

CONSTANT = Times("constant", (100.0,))
NO_TIMES = ["", "normal:1:2", "constant:-1", "lognormal:600", "lognormal:1:-1", "sample:", "exponential:inf"]
BY_HAND = Step(4, 1, 2, 1.0, CONSTANT, Times("constant", (30.0,)), train_s=40.0)


def drawn():
    return draw(BY_HAND, np.random.default_rng(0))


def test_rollouts_wait_for_a_slot():
    # two slots, 100 s each: groups are complete at 100, 100, 200, 200
    assert drawn().complete_G.tolist() == [100, 100, 200, 200]
    assert drawn().plain_s == 240


def test_one_grader_by_hand():
    # begins at 100, 130, 200, 230: ends 60 s after the last rollout
    assert play(drawn(), 1, overlap=True) == Played(60, 0, 120)
    # all four after the last rollout: 4 x 30
    assert play(drawn(), 1, overlap=False) == Played(120, 0, 120)


def test_a_grader_for_every_group_still_costs_the_last_grading():
    assert play(drawn(), 4, overlap=True).added_s == play(drawn(), 4, overlap=False).added_s == 30


def test_a_deadline_frees_the_grader_and_counts_what_falls_back():
    # 50 s from complete: the second ends at 160 > 150, the fourth at 260 > 250; the grader works 30 + 20 + 30 + 20 s
    assert play(drawn(), 1, overlap=True, deadline_s=50) == Played(50, 2, 100)


def test_what_could_not_even_begin_falls_back_too():
    # 20 s: nothing ends; the second and fourth cannot begin before 120 and 220
    assert play(drawn(), 1, overlap=True, deadline_s=20) == Played(20, 4, 40)


def test_growth_is_over_the_whole_step():
    grown, late = growth([drawn(), drawn()], 1, overlap=True, deadline_s=50)
    assert (grown, late) == (pytest.approx(50 / 240), 0.5)


def test_the_smallest_number_of_graders_that_keeps_a_step_short():
    # with two: ends at 230, 30 / 240 = 12.5 %; with one 60 / 240 = 25 %
    assert graders_for([drawn()], 0.2, overlap=True) == 2
    assert graders_for([drawn()], 0.25, overlap=True) == 1
    assert graders_for([drawn()], 0.1, overlap=True) is None


def test_more_graders_never_make_a_step_longer_and_overlap_never_hurts():
    step = Step(40, 4, 60, 0.7, Times.parse("lognormal:100:0.8"), Times.parse("exponential:60"), 10.0)
    one = draw(step, np.random.default_rng(1))
    added = [play(one, n, overlap=True).added_s for n in range(1, 30)]
    assert added == sorted(added, reverse=True) and added[0] > added[-1] > 0
    assert all(play(one, n, overlap=True).added_s <= play(one, n, overlap=False).added_s for n in (1, 3, 10))


def test_times_have_the_mean_they_are_given():
    rng = np.random.default_rng(0)
    for text, mean in (("constant:3", 3), ("exponential:40", 40), ("lognormal:600:0.5", 600), ("sample:1,2,6", 3)):
        assert Times.parse(text).draw((20000,), rng).mean() == pytest.approx(mean, rel=0.03), text


@pytest.mark.parametrize("text", NO_TIMES)
def test_times_that_are_none_are_refused_in_words(text):
    with pytest.raises(ValueError, match="expected"):
        Times.parse(text)


def test_the_command_prints_what_it_found_and_refuses_nonsense():
    def said(*more):
        out = StringIO()
        call_command("simulate_grading", "--groups", "4", "--rollouts", "1", "--slots", "2", "--steps", "1",
                     "--mixed-share", "1", "--rollout", "constant:100", "--grading", "constant:30", "--train-s", "40",
                     "--grow", "0.2", "--deadlines-s", "50", *more, stdout=out)  # fmt: skip
        return out.getvalue()

    found = json.loads(said("--json"))
    with_overlap, without = found["modes"]
    assert (with_overlap["graders"], without["graders"]) == (2, 4)
    last = with_overlap["rows"][1]
    assert (last["graders"], last["added_s"], last["deadlines"]["50"]["fallback_share"]) == (1, pytest.approx(60), 0.5)
    # a grader for the 300 s of the step at 4 USD an hour
    assert last["usd"] == pytest.approx(4 * 300 / 3600)
    assert "N = 2" in said() and "50.0%" in said()
    with pytest.raises(CommandError, match="expected constant"):
        said("--grading", "slow")
