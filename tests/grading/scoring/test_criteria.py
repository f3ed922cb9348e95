from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest

from grading.scoring.criteria import CRITERIA, FLASH, Candidate, Rubric, short, weighted_score
from tests.grading.scoring.factories import scores


def test_weighted_score_by_hand():
    # 0.30*5 + 0.25*4 + 0.20*3 + 0.15*2 + 0.10*1 = 1.5 + 1 + 0.6 + 0.3 + 0.1 = 3.5
    got = weighted_score(scores(5, 4, 3, 2, 1), FLASH)
    assert got == Fraction(7, 2)


def test_weighted_score_ties_what_floats_would_not():
    # 0.30 (4, 3, 2, 4, 3) = 1.2 + 0.75 + 0.4 + 0.6 + 0.3 = 3.25; (3, 3, 4, 4, 2) = 0.9 + 0.75 + 0.8 + 0.6 + 0.2 = 3.25
    assert weighted_score(scores(4, 3, 2, 4, 3), FLASH) == weighted_score(scores(3, 3, 4, 4, 2), FLASH)


@pytest.mark.parametrize("bad", [0, 6, 4.0, "4", True, None, float("nan"), pytest.param(10**5000, id="huge")])
def test_a_score_that_is_no_integer_from_1_to_5_is_refused_by_name(bad):
    with pytest.raises(ValueError, match="'a' scores .* on minimality, expected an integer from 1 to 5"):
        Candidate("a", scores(4, 4, 4, 4, 4) | {"minimality": bad})


@pytest.mark.parametrize("wrong", [{}, [], None, scores(4, 4, 4, 4, 4) | {"beauty": 5}])
def test_scores_are_the_five_criteria_and_nothing_else(wrong):
    with pytest.raises(ValueError, match="candidate 'a' scores"):
        Candidate("a", wrong)


def test_an_unknown_flag_is_refused():
    with pytest.raises(ValueError, match="'ugly'"):
        Candidate("a", scores(4, 4, 4, 4, 4), frozenset({"ugly"}))


def test_flash_is_the_rubric_of_the_paper():
    assert FLASH.to_json() == {
        "weights": {
            "approach": "0.30",
            "precision": "0.25",
            "minimality": "0.20",
            "side_effects": "0.15",
            "consistency": "0.10",
        },
        "constants": {"runner": "0.9", "min": "0.4", "max": "0.85", "low": "0.2", "lambda_max": "1.5"},
        "thresholds": {"t1_floor": 4, "t3_approach": 1, "t3_minimality": 2, "t3_side_effects": 2},
    }


def test_a_rubric_survives_the_way_to_json_and_back():
    exact = replace(FLASH, lambda_max=None, t1_floor=5)
    assert Rubric.from_json(exact.to_json(), name="flash") == exact
    assert hash(exact) != hash(FLASH)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"weights": tuple(map(Decimal, ("0.3", "0.25", "0.2", "0.15", "0")))}, "weights sum to 0.90, expected 1"),
        ({"weights": tuple(map(Decimal, ("-0.1", "0.5", "0.2", "0.2", "0.2")))}, "weight -0.1, expected weights >= 0"),
        ({"weights": (Decimal(1),)}, "has 1 weights, expected 5"),
        ({"f_low": Decimal(0)}, "low 0, .*expected 0 < low"),
        ({"f_low": Decimal("0.5")}, "low 0.5, min 0.4"),
        ({"f_min": Decimal("0.9")}, "min 0.9, max 0.85"),
        ({"f_max": Decimal("0.95")}, "max 0.95, runner 0.9"),
        ({"f_runner": Decimal("1.01")}, "runner 1.01"),
        ({"lambda_max": Decimal("0.99")}, "lambda_max 0.99, expected >= 1, or null"),
        ({"t1_floor": 6}, "t1_floor 6, expected an integer from 0 to 5"),
        ({"t3_approach": True}, "t3_approach True"),
    ],
)
def test_publishing_refuses_a_rubric_that_breaks_a_rule(change, words):
    with pytest.raises(ValueError, match=words):
        replace(FLASH, **change)


def test_publishing_names_every_broken_rule_at_once():
    with pytest.raises(ValueError, match="runner.*lambda_max"):
        replace(FLASH, f_runner=Decimal(2), lambda_max=Decimal(0))


def test_the_limits_of_the_rules_are_allowed():
    one = Decimal(1)
    flat = replace(FLASH, f_low=one, f_min=one, f_max=one, f_runner=one, lambda_max=one)
    assert flat.f_low == flat.lambda_max == 1
    weights = tuple(map(Decimal, ("1", "0", "0", "0", "0")))
    assert weighted_score(scores(2, 5, 5, 5, 5), replace(FLASH, weights=weights)) == 2


@pytest.mark.parametrize("text", [0.3, "1e999999999", "NaN", "-0.1", " 0.3", "", "0.3 ", "٣", "1" * 100, None, True])
def test_only_a_short_decimal_string_is_a_decimal(text):
    wire = FLASH.to_json()
    wire["weights"]["approach"] = text
    with pytest.raises(ValueError, match="weight approach is .*, expected a decimal string"):
        Rubric.from_json(wire)


@pytest.mark.parametrize("part", ["weights", "constants"])
def test_a_missing_or_unknown_field_of_a_rubric_is_named(part):
    wire = FLASH.to_json()
    first = next(iter(wire[part]))
    del wire[part][first]
    wire[part]["speed"] = "0.1"
    with pytest.raises(ValueError, match=f"{part} lacks .'{first}'. and has the unknown .'speed'."):
        Rubric.from_json(wire)


def test_a_message_shows_a_value_in_one_line_whatever_its_size():
    deep = []
    for _ in range(900):
        deep = [deep]
    for value in ("x" * 100_000, list(range(100_000)), deep, {criterion: "y" * 500 for criterion in CRITERIA}):
        assert len(short(value)) < 500
