"""The array form of scoring equals the scalar one, whatever the rubric, the ties and the revisions."""

import json
import random
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from grading.calibration.replay import replay
from grading.scoring.cases import read_candidate
from grading.scoring.criteria import CRITERIA, FLASH, THRESHOLDS, Rubric
from grading.scoring.grades import grade
from grading.scoring.ranks import rank
from grading.scoring.tiers import TIER_NAMES
from tests.grading.calibration.packs import random_group, replayed_alone, same_as, scored
from tests.grading.scoring.factories import candidate

GOLDEN = Path(__file__).resolve().parents[4] / "shared" / "golden" / "tiers_and_factors.json"


def random_rubric(draw: random.Random) -> Rubric:
    """Weights of three decimals that sum to 1, thresholds and constants anywhere the rules allow."""
    cuts = sorted(draw.randint(0, 1000) for _ in range(4))
    weights = [b - a for a, b in zip([0, *cuts], [*cuts, 1000], strict=True)]
    low, least, most, runner = (Decimal(n) / 100 for n in sorted(draw.randint(1, 100) for _ in range(4)))
    return Rubric(
        name="drawn",
        weights=tuple(Decimal(w) / 1000 for w in weights),
        f_low=low,
        f_min=least,
        f_max=most,
        f_runner=runner,
        lambda_max=None,
        **{threshold: draw.randint(0, 5) for threshold in THRESHOLDS},
    )


@pytest.mark.skipif(not GOLDEN.exists(), reason="the golden values are not beside this checkout")
def test_every_golden_case_replays_to_its_own_numbers():
    cases = [case for case in json.loads(GOLDEN.read_text()) if "error" not in case["expected"]]
    assert len(cases) > 30
    for case in cases:
        group = [read_candidate(wire) for wire in case["candidates"] if not wire.get("leak_confirmed")]
        rubric = Rubric.from_json(case["rubric"]) if case.get("rubric") else FLASH
        got = replayed_alone(group, rubric, case.get("order"))
        for g, one in enumerate(group):
            assert got.tier_BG[0, g] == case["expected"]["tier"][one.id]
            assert got.factor_BG[0, g] == case["expected"]["factor"][one.id]
        same_as(got, 0, group, grade(group, rubric, case.get("order")))


def test_random_groups_replay_as_the_scalar_code_grades_them():
    draw = random.Random(6)
    groups = [random_group(draw) for _ in range(300)]
    arrays = scored(groups, FLASH, [None] * len(groups))
    for rubric in (FLASH, *(random_rubric(draw) for _ in range(20))):
        got = replay(arrays, rubric)
        for b, group in enumerate(groups):
            same_as(got, b, group, grade(group, rubric))


def test_candidates_equal_on_paper_tie_and_float_sums_would_not():
    # 4 + .20 + .10 = 4 + .30; summed as floats they differ in the last bit
    a, b = candidate("a", 4, 4, 5, 4, 5), candidate("b", 5, 4, 4, 4, 4)
    as_floats = [sum(float(w) * one.scores[c] for c, w in zip(CRITERIA, FLASH.weights, strict=True)) for one in (a, b)]
    assert as_floats[0] != as_floats[1]
    got = replayed_alone([a, b], FLASH)
    assert got.place_BG[0].tolist() == [0, 0] and got.scale == 20 and got.weighted_BG[0].tolist() == [86, 86]


def test_a_revision_stands_while_its_tier_keeps_candidates_and_order():
    a, b, c = candidate("a", 4, 3, 4, 4, 4), candidate("b", 3, 4, 4, 4, 4), candidate("c", 5, 5, 5, 5, 5)
    revised = {"T1": [["c"]], "T2": [["b"], ["a"]]}
    arrays = scored([[a, b, c]], FLASH, [revised])
    same_as(replay(arrays, FLASH), 0, [a, b, c], grade([a, b, c], FLASH, revised))
    lower = replay(arrays, replace(FLASH, f_min=Decimal("0.3")))  # constants move no order
    assert lower.place_BG[0].tolist() == [1, 0, 0] and lower.factor_BG[0].tolist() == [0.3, 0.85, 1.0]
    assert not lower.dropped_BT.any()


def test_a_revision_is_dropped_where_the_order_it_argued_about_is_another():
    a, b = candidate("a", 4, 3, 4, 4, 4), candidate("b", 3, 4, 4, 4, 4)  # W 3.75 and 3.70
    arrays = scored([[a, b]], FLASH, [{"T2": [["a", "b"]]}])
    turned = replace(FLASH, weights=tuple(map(Decimal, ("0.20", "0.35", "0.20", "0.15", "0.10"))))
    got = replay(arrays, turned)  # b before a by W: the tie was argued against a before b
    assert got.place_BG[0].tolist() == [1, 0] and got.dropped_BT[0].tolist() == [False, True, False]
    assert replay(arrays, FLASH).place_BG[0].tolist() == [0, 0]


def test_revised_random_groups_replay_to_their_stored_order_under_their_own_version():
    draw = random.Random(7)
    groups, rankings = [random_group(draw, most=8) for _ in range(200)], []
    for group in groups:
        order = {TIER_NAMES[t]: [list(tied) for tied in ranked] for t, ranked in rank(group, FLASH).items()}
        for tied_groups in order.values():
            draw.shuffle(tied_groups)
        rankings.append(order)
    got = replay(scored(groups, FLASH, rankings), FLASH)
    for b, group in enumerate(groups):
        same_as(got, b, group, grade(group, FLASH, rankings[b]))


def test_no_verdict_and_an_empty_one_replay_to_nothing():
    assert replay(scored([], FLASH, []), FLASH).factor_BG.shape == (0, 0)
    got = replay(scored([[], [candidate("a", 5, 5, 5, 5, 5)]], FLASH, [None, None]), FLASH)
    assert got.tier_BG.tolist() == [[-1], [1]] and np.isnan(got.factor_BG[0, 0]) and got.factor_BG[1, 0] == 1
