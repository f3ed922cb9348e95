"""Two rankings compared, ties included; the first values by hand."""

from itertools import combinations, product
from math import sqrt

import pytest

from grading.review.agreement import flat, is_same, pairs, places


def test_pairs_and_tau_b_by_hand():
    # A > B = C against A > B > C: AB and AC alike, BC tied in the first only.
    found = pairs([["A"], ["B", "C"]], [["A"], ["B"], ["C"]])
    assert (found.same, found.opposite, found.tied_one, found.tied_other, found.tied_both) == (2, 0, 1, 0, 0)
    assert found.tau_b == pytest.approx(2 / sqrt((2 + 1) * 2))
    assert found.accuracy == 1.0


def test_a_tie_of_the_other_is_half_right():
    assert pairs([["A"], ["B"]], [["A", "B"]]).accuracy == 0.5


def test_an_order_that_ties_everything_has_no_tau():
    assert pairs([["A", "B"]], [["A"], ["B"]]).tau_b is None
    assert pairs([["A"]], [["A"]]).tau_b is None and pairs([["A"]], [["A"]]).accuracy is None


def test_tau_b_is_the_correlation_of_signs_on_all_orders_of_three():
    for one, other in product(product(range(3), repeat=3), repeat=2):
        signs = [[sign(said[a] - said[b]) for a, b in combinations(range(3), 2)] for said in (one, other)]
        scale = sqrt(sum(s * s for s in signs[0]) * sum(s * s for s in signs[1]))
        expected = scale and sum(a * b for a, b in zip(*signs, strict=True)) / scale
        found = pairs(order(one), order(other)).tau_b
        assert found == pytest.approx(expected) if scale else found is None


def sign(x: int) -> int:
    return (x > 0) - (x < 0)


def order(said) -> list[list[str]]:
    return [[id for id, place in zip("ABC", said, strict=True) if place == n] for n in range(3)]


def test_only_common_candidates_count():
    assert pairs([["A"], ["X"], ["B"]], [["B"], ["A"], ["Y"]]).opposite == 1


def test_rankings_are_the_same_where_tiers_and_orders_are():
    one = {"T1": [["A", "B"]], "T2": [["C"]], "T3": []}
    assert is_same(one, {"T1": [["B", "A"]], "T2": [["C"]], "T3": []})
    assert not is_same(one, {"T1": [["A"], ["B"]], "T2": [["C"]], "T3": []})
    assert not is_same(one, {"T1": [["A", "B"], ["C"]], "T2": [], "T3": []})
    assert is_same(one, {"T1": [["A", "B"]], "T2": [], "T3": [["X"]]})  # C is not in both


def test_tiers_come_before_ranks():
    assert places(flat({"T1": [["B"]], "T2": [["A"]], "T3": []})) == {"B": 0, "A": 1}
