"""The golden values of choice models and of the pairwise logistic on the simplex."""

import json
from pathlib import Path

import numpy as np
import pytest

from grading.calibration import choice_models as models
from grading.calibration.fit_weights import PairData, fit

FILE = Path(__file__).resolve().parents[4] / "shared" / "golden" / "statistics.json"
pytestmark = pytest.mark.skipif(not FILE.exists(), reason="the golden values are not beside this checkout")


def case(id: str) -> dict:
    return next(one for one in json.loads(FILE.read_text())["cases"] if one["id"] == id)


def test_bradley_terry():
    golden = case("bt_three_items_evalica")
    theta = models.bradley_terry(golden["inputs"]["wins"])
    np.testing.assert_allclose(theta, golden["expected"]["theta_centered"], atol=golden["tol"])


def test_bradley_terry_has_no_value_where_one_item_always_wins():
    golden = case("bt_separable")
    assert golden["undefined"] and models.bradley_terry(golden["inputs"]["wins"]) is None


def test_davidson_without_ties_is_bradley_terry():
    golden = case("davidson_no_ties")
    got = models.davidson(*(golden["inputs"][name] for name in ("wins12", "wins21", "ties")))
    assert got["ratio"] == pytest.approx(golden["expected"]["ratio_pi1_pi2"], abs=golden["tol"])
    assert [got[k] for k in ("nu", "p_win1", "p_tie")] == [golden["expected"][k] for k in ("nu", "p_win1", "p_tie")]


def test_rao_kupper():
    golden = case("rao_kupper_two_items")
    got = models.rao_kupper(*(golden["inputs"][name] for name in ("wins12", "wins21", "ties")))
    assert got["ratio"] == pytest.approx(golden["expected"]["ratio_pi1_pi2"], abs=golden["tol"])
    assert got["theta"] == pytest.approx(golden["expected"]["theta"], abs=golden["tol"])


def test_plackett_luce_reads_partial_rankings():
    golden = case("pl_partial_rankings")
    theta = models.plackett_luce(golden["inputs"]["rankings_best_first"])
    np.testing.assert_allclose(theta, golden["expected"]["theta_centered"], atol=golden["tol"])


def test_a_tied_block_is_the_sum_of_its_orders():
    golden = case("pl_tied_block_exact")
    got = models.tied_probability(golden["inputs"]["theta"], golden["inputs"]["tied_ranking"])
    assert got == pytest.approx(golden["expected"]["prob"], abs=golden["tol"])
    assert np.log(got) == pytest.approx(golden["expected"]["log_prob"], abs=golden["tol"])


def test_scores_that_contradict_people_identify_no_weights():
    golden = case("simplex_all_contrary")
    difference_PC = np.array(golden["inputs"]["diff"], float)
    nobody = np.zeros(len(difference_PC), int)
    got = fit(PairData(difference_PC, np.array(golden["inputs"]["a_preferred"], float), nobody, nobody))
    assert got.beta == golden["expected"]["beta"] and got.weights_C is None
    assert got.nll == pytest.approx(golden["expected"]["nll"], abs=golden["tol"])


def test_the_fit_of_two_items_with_ties_is_davidsons_closed_form():
    # one criterion, one point apart: s = u, so e^u is the ratio of the strengths
    difference_PC = np.ones((20, 1))
    first_P = np.array([1.0] * 9 + [0.0] * 4 + [0.5] * 7)
    got = fit(PairData(difference_PC, first_P, np.zeros(20, int), np.zeros(20, int)))
    closed = models.davidson(9, 4, 7)
    assert np.exp(got.beta) == pytest.approx(closed["ratio"], rel=1e-5)
    assert got.nu == pytest.approx(closed["nu"], rel=1e-5)
