"""The claim of worth.py against the builder of training's numbers, over every ranking of small groups."""

from dataclasses import replace
from decimal import Decimal
from itertools import product

import pytest

from grading.grader.worth import why_unchanged
from grading.scoring.criteria import FLASH
from grading.scoring.factors import factors
from grading.scoring.rows import Row, effective_group
from training_bridge.payload import numbers

EXACT = replace(FLASH, lambda_max=None)
ROOMY = replace(FLASH, lambda_max=Decimal(5))  # 5 x 0.2: a lone T3 pass keeps its credit
BY_FACTORS = ["redistribute", "redistribute_shuffled", "redistribute_inverted", "downweight_only", "reward_discount"]
ALL_ONE = replace(FLASH, f_runner=Decimal(1), f_max=Decimal(1), f_min=Decimal(1), f_low=Decimal(1))


def weak_orders(items):
    """Every way to rank items with ties: tuples of tied groups, best first."""
    items = list(items)
    if not items:
        yield ()
    for size in range(1, 2 ** len(items)):
        first = tuple(item for n, item in enumerate(items) if size >> n & 1)
        rest = [item for item in items if item not in first]
        for tail in weak_orders(rest):
            yield (first, *tail)


def rankings(tied):
    """Every ranking that keeps tied classes together: all tiers, all orders, all ties."""
    classes = {}
    for id, one in tied.items():
        classes.setdefault(one, []).append(id)
    for tiers in product((1, 2, 3), repeat=len(classes)):
        placed = {t: [c for c, tier in zip(classes, tiers, strict=True) if tier == t] for t in (1, 2, 3)}
        for orders in product(*(list(weak_orders(placed[t])) for t in (1, 2, 3))):
            yield {
                t: tuple(tuple(id for c in group for id in classes[c]) for group in order)
                for t, order in zip((1, 2, 3), orders, strict=True)
            }


def some_ranking_changes(rows, tied, *, method, rubric, neutral=False) -> tuple[bool, bool]:
    """Whether some ranking gives other advantages than a fallback does, and whether one fell back by itself."""
    said = {"method": method, "lambda_max": rubric.lambda_max, "eligible": True}
    said |= {"broken_evaluation": False, "mask_truncated": False, "neutral_when_equal": neutral}
    plain = numbers(rows, None, fallback_reason="skipped", **said)
    changes = turned = False
    for ranking in rankings(tied):
        made = numbers(rows, {id: float(f) for id, f in factors(ranking, rubric).items()}, **said)
        turned |= made.credit.reason == "redistribution_inverts_order"
        pairs = zip(made.credit.advantages_G, plain.credit.advantages_G, strict=True)
        changes |= any(abs(a - b) > 1e-9 for a, b in pairs)
    return changes, turned


def group(outcomes, rewards=None):
    rewards = rewards or [None] * len(outcomes)
    kinds = {"P": "passed", "F": "failed", "I": "infra_invalid"}
    return [Row(f"r{n}", kinds[o], reward) for n, (o, reward) in enumerate(zip(outcomes, rewards, strict=True))]


@pytest.mark.parametrize("rubric", [FLASH, EXACT, ROOMY, ALL_ONE], ids=["flash", "exact", "roomy", "all-one"])
@pytest.mark.parametrize("method", [*BY_FACTORS, "additive_rubric"])
@pytest.mark.parametrize("outcomes", ["PF", "PFF", "PIF", "PPF", "PPFF", "PPPF"])
def test_binary_groups_are_skipped_exactly_when_no_ranking_changes_an_advantage(outcomes, method, rubric):
    rows = group(outcomes)
    passes = [row.id for row in rows if row.outcome == "passed"]
    for classes in product(range(len(passes)), repeat=len(passes)):
        tied = dict(zip(passes, classes, strict=True))
        why = why_unchanged(effective_group(rows).rows, tied, method=method, rubric=rubric)
        changes, _ = some_ranking_changes(rows, tied, method=method, rubric=rubric)
        assert bool(why) == (not changes), (outcomes, classes, method, why)


@pytest.mark.parametrize("rubric", [FLASH, EXACT, ROOMY, ALL_ONE], ids=["flash", "exact", "roomy", "all-one"])
@pytest.mark.parametrize("method", BY_FACTORS)
def test_so_are_groups_with_shaped_rewards_apart_from_those_that_would_turn_over(method, rubric):
    skipped = graded = 0
    for rewards in product((-0.5, 0.0, 0.5, 1.0), repeat=3):
        for outcomes in ("PPF", "PFF"):
            rows, passes = group(outcomes, rewards), [f"r{n}" for n in range(outcomes.count("P"))]
            for tied in ({id: id for id in passes}, dict.fromkeys(passes, "twin")):
                why = why_unchanged(effective_group(rows).rows, tied, method=method, rubric=rubric)
                changes, turned = some_ranking_changes(rows, tied, method=method, rubric=rubric)
                assert not (why and changes), (rewards, outcomes, why)
                assert why or changes or turned, (rewards, outcomes, "nothing changes and it is not skipped")
                skipped, graded = skipped + bool(why), graded + changes
    assert skipped and (graded or rubric is ALL_ONE)


def test_a_lone_pass_is_worth_a_grade_as_long_as_the_cap_can_bind():
    # alone in T3: lambda would be 1 / 0.2 = 5; capped at 1.5 it keeps 1.5 x 0.2 = 0.3 of its credit
    rows = effective_group(group("PFF")).rows
    assert why_unchanged(rows, {"r0": 0}, method="redistribute", rubric=FLASH) == ""
    assert "one pass has all the credit" in why_unchanged(rows, {"r0": 0}, method="redistribute", rubric=EXACT)


@pytest.mark.parametrize("rubric", [FLASH, EXACT, ALL_ONE], ids=["flash", "exact", "all-one"])
@pytest.mark.parametrize("outcomes", ["PF", "PPF", "PPPF"])
def test_with_neutral_factors_a_lone_pass_is_never_worth_a_grade(outcomes, rubric):
    rows = group(outcomes)
    passes = [row.id for row in rows if row.outcome == "passed"]
    for classes in product(range(len(passes)), repeat=len(passes)):
        tied = dict(zip(passes, classes, strict=True))
        said = {"method": "redistribute", "rubric": rubric}
        why = why_unchanged(effective_group(rows).rows, tied, **said, neutral_when_equal=True)
        changes, _ = some_ranking_changes(rows, tied, **said, neutral=True)
        assert bool(why) == (not changes), (outcomes, classes, why)


def test_a_pass_at_the_mean_may_be_the_best_one_and_leaves_the_other_to_the_cap():
    # r = 1, 0.5, 0: only the first stands above the mean 0.5. With f = 0.2 and 1 the best factor is the second one's,
    # so the first keeps 0.2 and the cap of 1.5 binds, neutral factors or not.
    rows = group("PPF", [1.0, 0.5, 0.0])
    tied = {"r0": 0, "r1": 1}
    said = {"method": "redistribute", "rubric": FLASH}
    assert some_ranking_changes(rows, tied, **said, neutral=True)[0]
    assert why_unchanged(effective_group(rows).rows, tied, **said, neutral_when_equal=True) == ""
