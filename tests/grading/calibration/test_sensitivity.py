"""Knobs turned one at a time: every turn is a rubric that could be published, and differs in what it says."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from grading.calibration.rubric_form import read_rubric, same_numbers, typed_of
from grading.calibration.sensitivity import turns, with_noise
from grading.scoring.criteria import CRITERIA, FLASH, THRESHOLDS, Rubric
from tests.grading.calibration.packs import scored
from tests.grading.scoring.factories import candidate


def test_every_knob_is_turned_and_every_turn_could_be_published():
    made = list(turns(FLASH))
    assert {turn.knob for turn in made} == {*CRITERIA, *THRESHOLDS, "f_runner", "f_min", "f_max", "f_low", "lambda_max"}
    for turn in made:
        assert Rubric.from_json(turn.rubric.to_json()) and not same_numbers(turn.rubric, FLASH)


def test_the_other_weights_keep_their_proportions():
    up = next(t for t in turns(FLASH) if t.knob == "approach" and t.tried == "0.35")
    assert sum(up.rubric.weights) == 1 and up.rubric.weights[0] == Decimal("0.35")
    assert float(up.rubric.weights[1] / up.rubric.weights[4]) == pytest.approx(2.5)


def test_a_constant_stops_at_its_neighbour():
    tight = replace(FLASH, f_max=Decimal("0.9"))
    assert [t.tried for t in turns(tight) if t.knob == "f_max"] == ["0.85"]


def test_noise_moves_about_the_share_that_was_asked_for_and_stays_inside_the_scale():
    arrays = scored([[candidate("a", 1, 2, 3, 4, 5)] * 16] * 100, FLASH, [None] * 100)
    noisy = with_noise(arrays, share=0.25)
    moved = (noisy.scores_BGC != arrays.scores_BGC)[..., 1:4].mean()
    assert 0.22 < moved < 0.28 and noisy.scores_BGC.min() == 1 and noisy.scores_BGC.max() == 5
    assert np.array_equal(with_noise(arrays, share=0).scores_BGC, arrays.scores_BGC)


def test_a_form_reads_back_to_the_rubric_it_stands_for():
    assert read_rubric(typed_of(FLASH), FLASH).rubric.to_json() == FLASH.to_json()
    exact = read_rubric({"lambda_max": ""}, FLASH).rubric
    assert exact.lambda_max is None and exact.weights == FLASH.weights


def test_a_form_that_breaks_rules_names_them_all_and_keeps_what_was_typed():
    typed = read_rubric({"weight-approach": "0.5", "min": "0.9", "t1_floor": "four"}, FLASH)
    assert typed.rubric is None and typed.fields["t1_floor"] == "four"
    for words in ("weights sum to 1.20, expected 1", "expected 0 < low <= min <= max", "t1_floor 'four'"):
        assert words in typed.error
    assert "expected a decimal string" in read_rubric({"max": "0,85"}, FLASH).error
