"""The numbers of groups: the one builder behind preview, what-if and delivery."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import NamedTuple

import numpy as np

from grading.scoring.rows import EXCLUDED, FILTERED, EffectiveGroup, EffectiveRow, Row, effective_group
from training_bridge.redistribution import regimes
from training_bridge.redistribution.additive import neutral_when_equal as neutral
from training_bridge.redistribution.baselines import favours_the_worse
from training_bridge.redistribution.controls import inverted_factors, shuffled_factors
from training_bridge.redistribution.regimes import Credit, Group, Groups

UNGRADED = "ungraded"
NEGATIVE_REWARD = "negative_reward"


class NumberRow(NamedTuple):
    """One rollout as training sees it. A masked row has no reward, no equivalent reward, advantage 0.

    `factor` is the one that was used: with `neutral_when_equal` the verdict's divided by the best of the group, in a
    control one that the verdict gave to another pass.
    """

    trajectory: str
    outcome: str
    integrity: str | None
    reward: float | None
    equivalent_reward: float | None
    advantage: float
    factor: float | None


@dataclass(frozen=True)
class Numbers:
    """One group as training sees it: how it ended, the credit, and the credit row by row.

    `status` is that of dynamic sampling; `bad_reward` names the row whose reward is no number.
    """

    status: str
    bad_reward: str | None
    credit: Credit
    rows: tuple[NumberRow, ...]


class Asked(NamedTuple):
    """One group to count, and how.

    Attributes:
        rows: every rollout of the group, in order.
        factors: id -> factor in (0, 1] of every pass, or None; others are not read.
        method: the run's, one of `regimes.METHODS`.
        lambda_max: the rubric's, at least 1; None for the exact form.
        eligible: whether this kind of task is graded at all.
        broken_evaluation, mask_truncated: as in `rows.effective_group`.
        neutral_when_equal: divide the factors by the group's best one first (method `redistribute` and its controls).
        fallback_reason: why the grade does not count (`deadline`, `skipped`, `shadow`, ...).
        allow_negative_discount: discount negative rewards too; a real run falls back instead.
    """

    rows: Sequence[Row]
    factors: Mapping[str, Real] | None
    method: str
    lambda_max: Real | None
    eligible: bool
    broken_evaluation: bool
    mask_truncated: bool
    neutral_when_equal: bool = False
    fallback_reason: str | None = None
    allow_negative_discount: bool = False


class _Plan(NamedTuple):
    """What an asked group comes to: a regime without factors, with its reason, or a method with them."""

    effective: EffectiveGroup
    group: Group
    regime: str | None
    reason: str | None = None
    factors_G: np.ndarray | None = None
    method: str | None = None
    lambda_max: float | None = None


def numbers(rows: Sequence[Row], factors: Mapping[str, Real] | None, **options) -> Numbers:
    """`numbers_of` one group. Args: as the attributes of `Asked`. Returns, Raises: as there."""
    return numbers_of([Asked(rows, factors, **options)])[0]


def numbers_of(asked: Sequence[Asked]) -> list[Numbers]:
    """Turn outcomes, confirmed findings and factors into what training gets.

    Args:
        asked: the groups; each gets the numbers it would get alone, to the last bit.
    Returns:
        The numbers of each. A group that does not train is zero throughout.
    Raises:
        ValueError: an id twice, factors missing or outside (0, 1], or no such method or lambda_max.
    """
    plans = [_plan(one) for one in asked]
    alike: dict[tuple, list[int]] = {}
    for place, plan in enumerate(plans):
        kind = plan.regime in regimes.UNTOUCHED if plan.regime else plan.method
        alike.setdefault((kind, len(plan.effective.rows), plan.lambda_max), []).append(place)
    credits: dict[int, Credit] = {}
    for places in alike.values():
        credits |= zip(places, _credits([plans[place] for place in places]), strict=True)
    return [
        Numbers(plan.effective.status, plan.effective.bad_reward, credits[place], _rows(plan, credits[place]))
        for place, plan in enumerate(plans)
    ]


def _plan(one: Asked) -> _Plan:
    if one.method not in regimes.METHODS:
        raise ValueError(f"method is {one.method!r}, expected one of {list(regimes.METHODS)}")
    effective = effective_group(one.rows, mask_truncated=one.mask_truncated, broken_evaluation=one.broken_evaluation)
    group, status = _arrays(effective.rows), effective.status
    if status in EXCLUDED:
        return _Plan(effective, group, regimes.EXCLUDED, status)
    if not one.eligible:
        return _Plan(effective, group, regimes.INELIGIBLE)
    if status in FILTERED:
        return _Plan(effective, group, regimes.FILTERED, status)
    if one.method == regimes.OUTCOME:
        return _Plan(effective, group, regimes.BASELINE)
    factors_G = None if one.fallback_reason else _factors(effective.rows, one.factors or {})
    reason = one.fallback_reason or (UNGRADED if factors_G is None else None)
    if one.method == regimes.REWARD_DISCOUNT and not one.allow_negative_discount:
        reason = reason or (NEGATIVE_REWARD if favours_the_worse(group.rewards_G, group.passing_G) else None)
    if reason is not None:
        return _Plan(effective, group, regimes.FALLBACK, reason)
    factors_G = _of_method(factors_G, effective, group, one.method, one.neutral_when_equal)
    bound = None if one.lambda_max is None else float(one.lambda_max)
    return _Plan(effective, group, None, None, factors_G, one.method, bound)


def _credits(plans: Sequence[_Plan]) -> list[Credit]:
    """Of groups of one size that come to the same kind of numbers."""
    first = plans[0]
    if first.regime in regimes.UNTOUCHED:
        groups = Groups.of([plan.group for plan in plans])
        return regimes.untouched_credits(groups, [plan.regime for plan in plans], [plan.reason for plan in plans])
    if first.regime:
        return [regimes.no_credit(plan.group, plan.regime, plan.reason) for plan in plans]
    if first.method == regimes.REDISTRIBUTE:
        factors_BG = np.stack([plan.factors_G for plan in plans])
        return regimes.redistributed_credits(Groups.of([plan.group for plan in plans]), factors_BG, first.lambda_max)
    if first.method in regimes.CONTROLS:
        return [regimes.control_credit(plan.group, plan.factors_G, plan.lambda_max) for plan in plans]
    return [regimes.baseline_credit(plan.group, plan.factors_G, plan.method) for plan in plans]


def _of_method(factors_G, effective: EffectiveGroup, group: Group, method: str, neutral_when_equal: bool):
    """Return (G,) the factors the method uses: the verdict's, neutral ones, or those of a control."""
    if neutral_when_equal and method in (regimes.REDISTRIBUTE, *regimes.CONTROLS):
        factors_G = neutral(factors_G, group.passing_G)
    if method == regimes.SHUFFLED:
        return shuffled_factors(factors_G, group.passing_G, [row.id for row in effective.rows])
    return inverted_factors(factors_G, group.passing_G) if method == regimes.INVERTED else factors_G


def _arrays(rows: Sequence[EffectiveRow]) -> Group:
    return Group(
        rewards_G=np.array([np.nan if row.reward is None else row.reward for row in rows], float),
        passing_G=np.array([row.passing for row in rows], bool),
        valid_G=np.array([row.valid for row in rows], bool),
    )


def _factors(rows: Sequence[EffectiveRow], factors: Mapping[str, Real]) -> np.ndarray | None:
    """Return (G,) factors, NaN where nobody reads them; None if no pass has one.

    Raises:
        ValueError: only some passes have one, or one is outside (0, 1]; names the rows.
    """
    passes = [row.id for row in rows if row.passing]
    missing = [id for id in passes if factors.get(id) is None]
    if len(missing) == len(passes):
        return None
    if missing:
        raise ValueError(f"factors are missing for {missing}, expected one for each pass, or none at all")
    outside = {id: factors[id] for id in passes if not 0 < factors[id] <= 1}
    if outside:
        raise ValueError(f"factors are {outside}, expected more than 0 and at most 1")
    return np.array([factors[row.id] if row.passing else np.nan for row in rows], float)


def _rows(plan: _Plan, credit: Credit) -> tuple[NumberRow, ...]:
    used = plan.factors_G is not None and credit.regime != regimes.FALLBACK
    factors = plan.factors_G.tolist() if used else [None] * len(plan.effective.rows)
    columns = zip(plan.effective.rows, credit.equivalent_rewards_G, credit.advantages_G, factors, strict=True)
    return tuple(
        NumberRow(
            trajectory=row.id,
            outcome=row.outcome,
            integrity=row.integrity,
            reward=row.reward,
            equivalent_reward=equivalent if row.valid else None,
            advantage=advantage,
            factor=factor if row.passing else None,
        )
        for row, equivalent, advantage, factor in columns
    )
