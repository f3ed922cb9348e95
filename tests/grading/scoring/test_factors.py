from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest

from grading.scoring.criteria import FLASH
from grading.scoring.factors import factors
from grading.scoring.grades import grade
from tests.grading.scoring.factories import candidate


def test_factors_by_hand():
    ranking = {1: (("a",), ("b",), ("c", "d")), 2: (("e",), ("f", "g"), ("h",)), 3: (("i",), ("j",))}
    # T2 has K2 = 3 tied groups: 0.85 - 0.45 * k/2 = 0.85, 0.625, 0.4
    expected = {"a": "1", "b": "0.9", "c": "0.9", "d": "0.9", "e": "0.85", "f": "0.625", "g": "0.625", "h": "0.4"}
    expected |= {"i": "0.2", "j": "0.2"}
    assert factors(ranking, FLASH) == {id: Fraction(Decimal(text)) for id, text in expected.items()}


@pytest.mark.parametrize(
    ("ranking", "expected"),
    [
        ({1: (), 2: (), 3: ()}, {}),
        ({1: (), 2: (("a", "b"),), 3: ()}, {"a": "0.85", "b": "0.85"}),
        ({1: (("a", "b"),), 2: (), 3: ()}, {"a": "1", "b": "1"}),
        ({1: (), 2: (), 3: (("a",),)}, {"a": "0.2"}),
        ({1: (), 2: (("a",), ("b",)), 3: ()}, {"a": "0.85", "b": "0.4"}),
    ],
)
def test_factors_of_degenerate_rankings(ranking, expected):
    assert factors(ranking, FLASH) == {id: Fraction(Decimal(text)) for id, text in expected.items()}


def test_equal_constants_give_equal_factors_without_dividing_by_zero():
    flat = replace(FLASH, f_low=Decimal("0.5"), f_min=Decimal("0.5"), f_max=Decimal("0.5"), f_runner=Decimal("0.5"))
    got = factors({1: (), 2: (("a",), ("b",)), 3: (("c",),)}, flat)
    assert set(got.values()) == {Fraction(1, 2)}


def test_ranks_count_after_the_revision():
    trio = [candidate("x", 3, 3, 3, 3, 3), candidate("y", 3, 3, 3, 3, 3), candidate("z", 3, 3, 3, 3, 2)]
    by_score = grade(trio, FLASH)
    split = grade(trio, FLASH, {"T2": [["y"], ["x"], ["z"]]})
    assert [by_score.factor[id] for id in "xyz"] == [Fraction(17, 20), Fraction(17, 20), Fraction(2, 5)]
    assert [split.factor[id] for id in "xyz"] == [Fraction(5, 8), Fraction(17, 20), Fraction(2, 5)]
    assert by_score.weighted_score == split.weighted_score
    assert by_score.tier == split.tier == {"x": 2, "y": 2, "z": 2}
