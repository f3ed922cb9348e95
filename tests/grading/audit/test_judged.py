"""A person's places reorder inside a tier, never across."""

from grading.audit.judged import Said, judge
from grading.scoring.criteria import CRITERIA, FLASH


def said(letter, score, place=None, flags=()):
    return Said(letter, dict.fromkeys(CRITERIA, score), frozenset(flags), place=place)


def test_without_places_the_scores_order():
    made = judge([said("A", 3), said("B", 5), said("C", 4)], FLASH)
    assert made.grades.ranking == {1: (("B",), ("C",)), 2: (("A",),), 3: ()}


def test_places_tie_and_reorder_inside_a_tier():
    made = judge([said("A", 3, 3), said("B", 5, 2), said("C", 4, 1), said("D", 4, 2)], FLASH)
    assert made.grades.ranking == {1: (("C",), ("B", "D")), 2: (("A",),), 3: ()}
    assert made.problems == ()


def test_a_place_over_a_better_tier_is_refused_in_words():
    made = judge([said("A", 3, 1), said("B", 5, 2)], FLASH)
    assert made.grades is None
    assert "Place 1 of A is not behind B" in made.problems[0]
    tied = judge([said("A", 3, 1), said("B", 5, 1)], FLASH)
    assert tied.problems


def test_half_the_places_are_no_order():
    made = judge([said("A", 5, 1), said("B", 5)], FLASH)
    assert "B has none" in made.problems[0]
