"""The numbers of one group: the one builder behind preview, what-if and delivery."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np

from grading.scoring.rows import EXCLUDED, FILTERED, EffectiveGroup, EffectiveRow, Row, effective_group
from training_bridge.redistribution import regimes
from training_bridge.redistribution.baselines import favours_the_worse
from training_bridge.redistribution.regimes import Credit, Group

UNGRADED = "ungraded"
NEGATIVE_REWARD = "negative_reward"


@dataclass(frozen=True)
class NumberRow:
    """One rollout as training sees it. A masked row has no reward, no equivalent reward, advantage 0."""

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


def numbers(
    rows: Sequence[Row],
    factors: Mapping[str, Real] | None,
    *,
    method: str,
    lambda_max: Real | None,
    eligible: bool,
    broken_evaluation: bool,
    mask_truncated: bool,
    fallback_reason: str | None = None,
    allow_negative_discount: bool = False,
) -> Numbers:
    """Turn outcomes, confirmed findings and factors into what training gets.

    Args:
        rows: every rollout of the group, in order.
        factors: id -> factor in (0, 1] of every pass, or None; others are not read.
        method: the run's, one of `regimes.METHODS`.
        lambda_max: the rubric's, at least 1; None for the exact form.
        eligible: whether this kind of task is graded at all.
        broken_evaluation, mask_truncated: as in `rows.effective_group`.
        fallback_reason: why the grade does not count (`deadline`, `skipped`, `shadow`, ...).
        allow_negative_discount: discount negative rewards too; a real run falls back instead.
    Returns:
        The numbers. A group that does not train is zero throughout.
    Raises:
        ValueError: an id twice, factors missing or outside (0, 1], or no such method or lambda_max.
    """
    if method not in regimes.METHODS:
        raise ValueError(f"method is {method!r}, expected one of {list(regimes.METHODS)}")
    effective = effective_group(rows, mask_truncated=mask_truncated, broken_evaluation=broken_evaluation)
    group = _arrays(effective.rows)
    credit, factors_G = _ungraded(effective, group, method, eligible), None
    if credit is None:
        factors_G = None if fallback_reason else _factors(effective.rows, factors or {})
        reason = fallback_reason or (UNGRADED if factors_G is None else None)
        if method == regimes.REWARD_DISCOUNT and not allow_negative_discount:
            reason = reason or (NEGATIVE_REWARD if favours_the_worse(group.rewards_G, group.passing_G) else None)
        credit = _graded(group, factors_G, method, lambda_max, reason)
    return Numbers(effective.status, effective.bad_reward, credit, _rows(effective, credit, factors_G))


def _ungraded(effective: EffectiveGroup, group: Group, method: str, eligible: bool) -> Credit | None:
    """Return the credit of a group that no grade would change, or None."""
    if effective.status in EXCLUDED:
        return regimes.no_credit(group, regimes.EXCLUDED, effective.status)
    if not eligible:
        return regimes.untouched_credit(group, regimes.INELIGIBLE)
    if effective.status in FILTERED:
        return regimes.no_credit(group, regimes.FILTERED, effective.status)
    return regimes.untouched_credit(group, regimes.BASELINE) if method == regimes.OUTCOME else None


def _graded(group: Group, factors_G, method: str, lambda_max: Real | None, reason: str | None) -> Credit:
    if reason is not None:
        return regimes.untouched_credit(group, regimes.FALLBACK, reason)
    if method == regimes.REDISTRIBUTE:
        return regimes.redistributed_credit(group, factors_G, None if lambda_max is None else float(lambda_max))
    return regimes.baseline_credit(group, factors_G, method)


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


def _rows(effective: EffectiveGroup, credit: Credit, factors_G: np.ndarray | None) -> tuple[NumberRow, ...]:
    used = factors_G is not None and credit.regime != regimes.FALLBACK
    return tuple(
        NumberRow(
            trajectory=row.id,
            outcome=row.outcome,
            integrity=row.integrity,
            reward=row.reward,
            equivalent_reward=credit.equivalent_rewards_G[i] if row.valid else None,
            advantage=credit.advantages_G[i],
            factor=float(factors_G[i]) if used and row.passing else None,
        )
        for i, row in enumerate(effective.rows)
    )
