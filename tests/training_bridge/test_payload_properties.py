"""What must hold for the numbers of any group, through the one builder. `make chaos` draws 10,000 groups a property."""

import math
import os

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from grading.scoring.rows import Row, effective_group
from tests.training_bridge.redistribution.batches import BOUNDS, FACTORS
from training_bridge.payload import numbers
from training_bridge.redistribution.outcome import outcome_advantages

GROUPS = 10_000 if "GAGAR_CHAOS" in os.environ else 120
OPTIONS = {"method": "redistribute", "eligible": True, "broken_evaluation": False, "mask_truncated": False}
TOLERANCE = 1e-11  # rewards lie within 2; a group has at most 16 rows
FLOAT32 = 1e-6
holds = settings(max_examples=GROUPS)


@st.composite
def groups(draw, *, shaped=True):
    """(rows, factors): a pass and a failure at least; masked rows, findings, truncation; factors of the passes."""
    kinds = draw(st.permutations(["p", "f", *draw(st.lists(st.sampled_from("ppfftxh"), max_size=14))]))
    rewards = st.none() | st.floats(-2, 2) if shaped else st.none()
    rows = [_row(f"r{place}", kind, draw(rewards)) for place, kind in enumerate(kinds)]
    return rows, {row.id: draw(FACTORS) for row in rows if row.outcome == "passed" and row.integrity is None}


def _row(id, kind, reward):
    outcome = {"p": "passed", "t": "passed", "h": "passed", "x": "infra_invalid"}.get(kind, "failed")
    return Row(id, outcome, reward, truncated=kind == "t", integrity="hack" if kind == "h" else None)


def built(rows, factors, bound=1.5, **said):
    return numbers(rows, factors, lambda_max=bound, **(OPTIONS | said))


def by_id(got) -> dict[str, float]:
    return {row.trajectory: row.advantage for row in got.rows}


def outcome_of(rows) -> dict[str, float]:
    """A = R - mean(R) over effective rewards, from the one function that computes it."""
    counted = effective_group(rows).rows
    rewards = np.array([np.nan if row.reward is None else row.reward for row in counted], float)
    found = outcome_advantages(rewards, np.array([row.valid for row in counted]))
    return dict(zip((row.id for row in rows), found.tolist(), strict=True))


def passes(rows) -> list[str]:
    return [row.id for row in effective_group(rows).rows if row.passing]


@holds
@given(groups(), BOUNDS)
def test_advantages_sum_to_zero_and_masked_rows_get_none(group, bound):
    rows, factors = group
    got = built(rows, factors, bound)
    assert abs(math.fsum(by_id(got).values())) <= TOLERANCE
    for row, entry in zip(rows, got.rows, strict=True):
        if row.outcome == "infra_invalid":
            assert (entry.advantage, entry.reward, entry.equivalent_reward) == (0.0, None, None)


@holds
@given(groups(shaped=False))
def test_without_a_bound_passes_keep_their_sum_and_failures_their_advantage(group):
    rows, factors = group
    got, before, passing = by_id(built(rows, factors, None)), outcome_of(rows), passes(rows)
    for id in before.keys() - set(passing):
        assert math.isclose(got[id], before[id], abs_tol=TOLERANCE)
    kept, due = (math.fsum(advantages[id] for id in passing) for advantages in (got, before))
    assert math.isclose(kept, due, abs_tol=TOLERANCE)


@holds
@given(groups(shaped=False))
def test_passes_share_their_credit_in_the_ratio_of_their_factors(group):
    rows, factors = group
    got, passing = by_id(built(rows, factors, None)), passes(rows)
    first = passing[0]
    for id in passing:
        assert math.isclose(got[id] * factors[first], got[first] * factors[id], abs_tol=TOLERANCE)


@holds
@given(groups(shaped=False), BOUNDS)
def test_a_better_pass_never_gets_less_and_every_failure_stays_below_every_pass(group, bound):
    rows, factors = group
    got, passing = by_id(built(rows, factors, bound)), passes(rows)
    ranked = sorted(passing, key=factors.get)
    for worse, better in zip(ranked, ranked[1:], strict=False):
        assert got[better] >= got[worse] - TOLERANCE
    failing = [row.id for row in effective_group(rows).rows if row.valid and not row.passing]
    assert max(got[id] for id in failing) <= min(got[id] for id in passing) + TOLERANCE


@holds
@given(groups(), BOUNDS)
def test_a_failure_stands_above_a_pass_only_where_the_rewards_put_it_there(group, bound):
    rows, factors = group
    made = built(rows, factors, bound)
    got, before, passing = by_id(made), outcome_of(rows), passes(rows)
    failing = [row.id for row in effective_group(rows).rows if row.valid and not row.passing]
    turned = [
        (p, f) for p in passing for f in failing if got[f] > got[p] + TOLERANCE and before[f] < before[p] - TOLERANCE
    ]
    assert not turned
    if any(before[f] > before[p] + TOLERANCE for p in passing for f in failing):
        assert made.credit.inverted_by_reward


@holds
@given(groups(), BOUNDS, st.randoms(use_true_random=False))
def test_in_whatever_order_rollouts_come_each_id_gets_its_own_number(group, bound, random):
    rows, factors = group
    shuffled, mixed_factors = rows[:], list(factors.items())
    random.shuffle(shuffled)
    random.shuffle(mixed_factors)
    straight, other = built(rows, factors, bound), built(shuffled, dict(mixed_factors), bound)
    assert [row.trajectory for row in other.rows] == [row.id for row in shuffled], "rows come back as they went in"
    if straight.credit.regime != other.credit.regime or straight.credit.capped != other.credit.capped:
        return  # a sum of floats on the edge of a rule may fall on either side of it
    for id, advantage in by_id(other).items():
        assert math.isclose(advantage, by_id(straight)[id], abs_tol=1e-9)


@holds
@given(groups(), BOUNDS)
def test_ids_are_names_and_never_positions(group, bound):
    rows, factors = group
    names = {row.id: f"other-{len(rows) - place:03}" for place, row in enumerate(rows)}
    renamed = [replace(row, id=names[row.id]) for row in rows]
    straight = built(rows, factors, bound)
    other = built(renamed, {names[id]: factor for id, factor in factors.items()}, bound)
    assert {names[id]: number for id, number in by_id(straight).items()} == by_id(other), "bit for bit"


@holds
@given(groups(), BOUNDS)
def test_in_single_precision_a_trainer_gets_the_same_numbers_and_a_sum_near_zero(group, bound):
    got = built(*group, bound)
    double = np.array([row.advantage for row in got.rows])
    equivalent = np.array([row.equivalent_reward for row in got.rows if row.equivalent_reward is not None], np.float32)
    valid = np.array([row.equivalent_reward is not None for row in got.rows])
    single = equivalent - equivalent.mean(dtype=np.float32)
    scale = max(1.0, float(np.abs(equivalent).max(initial=0.0)))
    np.testing.assert_allclose(single, double[valid], atol=FLOAT32 * 4 * scale, rtol=0)
    assert abs(float(double.astype(np.float32).sum(dtype=np.float32))) <= FLOAT32 * 16 * scale


@holds
@given(groups(shaped=False))
def test_equation_9_centred_is_equation_2(group):
    rows, factors = group
    got, before, passing = built(rows, factors, None), outcome_of(rows), passes(rows)
    due = math.fsum(before[id] for id in passing)
    scale = due / math.fsum(factors[id] * before[id] for id in passing)
    by_hand = {id: scale * factors[id] * before[id] if id in passing else before[id] for id in before}  # Eq. 2
    rewards = {row.trajectory: row.equivalent_reward for row in got.rows if row.equivalent_reward is not None}
    mean = math.fsum(rewards.values()) / len(rewards)
    for id, reward in rewards.items():
        assert math.isclose(reward - mean, by_hand[id], abs_tol=TOLERANCE)


@holds
@given(groups(), BOUNDS, st.sampled_from(["grader_failure", "deadline", "skipped", "shadow", "paused"]))
def test_an_invalid_verdict_pays_the_outcome_advantages_bit_for_bit(group, bound, reason):
    rows, factors = group
    expected = outcome_of(rows)
    for got in (built(rows, factors, bound, fallback_reason=reason), built(rows, None, bound)):
        assert got.credit.regime == "fallback" and got.credit.reason in (reason, "ungraded")
        assert by_id(got) == expected and all(row.factor is None for row in got.rows)
    assert by_id(built(rows, None, bound, method="outcome")) == expected
