"""The numbers of groups, and the regime they came about in: computed, never assumed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from training_bridge.redistribution.additive import rubric_advantages
from training_bridge.redistribution.baselines import discounted_rewards, downweight_only
from training_bridge.redistribution.masks import TINY, group_sums, keep
from training_bridge.redistribution.outcome import centred, mean_rewards, outcome_advantages
from training_bridge.redistribution.reward_space import equivalent_rewards
from training_bridge.redistribution.safeguards import bounded_shaped
from training_bridge.redistribution.sum_preserving import conserves

REDISTRIBUTE, OUTCOME, DOWNWEIGHT_ONLY, REWARD_DISCOUNT, ADDITIVE_RUBRIC, SHUFFLED, INVERTED = METHODS = (
    "redistribute",
    "outcome",
    "downweight_only",
    "reward_discount",
    "additive_rubric",
    "redistribute_shuffled",
    "redistribute_inverted",
)
CONTROLS = (SHUFFLED, INVERTED)
EXACT, BOUNDED, CLIPPED, FALLBACK, BASELINE, INELIGIBLE, FILTERED, EXCLUDED = REGIMES = (
    "exact",
    "bounded",
    "clipped",
    "fallback",
    "baseline",
    "ineligible",
    "filtered",
    "excluded",
)
UNTOUCHED = (FALLBACK, BASELINE, INELIGIBLE)
INVERTS_ORDER = "redistribution_inverts_order"
NOT_FINITE = "not_finite"


class Group(NamedTuple):
    """One group as it counts: effective rewards, and who passes among the valid rows.

    rewards_G: (G,) float64, reward units; not read where a row is masked.
    passing_G: (G,) bool, False on masked rows.
    valid_G: (G,) bool.
    """

    rewards_G: np.ndarray
    passing_G: np.ndarray
    valid_G: np.ndarray


class Groups(NamedTuple):
    """Groups of one size, each as in `Group`. A group's numbers do not depend on those beside it, to the last bit."""

    rewards_BG: np.ndarray
    passing_BG: np.ndarray
    valid_BG: np.ndarray

    @classmethod
    def of(cls, groups: Sequence[Group]) -> "Groups":
        """Stack them; at least one, all of the same number of rows."""
        return cls(*(np.stack(columns) for columns in zip(*groups, strict=True)))


@dataclass(frozen=True)
class Credit:
    """What training gets for one group, in both spaces, with what was lost on the way.

    advantages_G, equivalent_rewards_G: one float a row, reward units; 0 on masked rows.
    lambda_: no unit, after the bound; 1 where nothing is rescaled.
    positive_sum, negative_sum: of the advantages, by sign.
    credit_kept, penalty_kept: share of the passes' and of the failures' outcome advantages that is
        left, no unit; None where there was nothing to keep.
    """

    regime: str
    reason: str | None
    lambda_: float
    capped: bool
    inverted_by_reward: bool
    advantages_G: tuple[float, ...]
    equivalent_rewards_G: tuple[float, ...]
    positive_sum: float
    negative_sum: float
    credit_kept: float | None
    penalty_kept: float | None

    @property
    def train(self) -> bool:
        """Whether the group trains; filtered and excluded ones are all zero."""
        return self.regime not in (FILTERED, EXCLUDED)


def redistributed_credit(group: Group, factors_G: np.ndarray, lambda_max: float | None) -> Credit:
    """Redistribute one graded group: `redistributed_credits` of a batch of one."""
    return redistributed_credits(Groups.of([group]), np.asarray(factors_G)[None], lambda_max)[0]


def redistributed_credits(groups: Groups, factors_BG: np.ndarray, lambda_max: float | None) -> list[Credit]:
    """Redistribute graded groups, Eq. (8), and name the regime of each by what came out.

    Args:
        groups: each with at least one pass and one failure.
        factors_BG: (B, G) float in (0, 1], no unit; read where a rollout passes.
        lambda_max: at least 1, no unit; None for the exact form.
    Returns:
        The credit of each. If a failure ends above a pass that it was not above before, or a number is not
        finite: the outcome advantages, regime `fallback`, with the reason.
    Raises:
        ValueError: shapes differ, a factor is outside (0, 1], or lambda_max < 1.
    """
    advantages_BG = outcome_advantages(groups.rewards_BG, groups.valid_BG)
    with np.errstate(over="ignore", invalid="ignore"):
        made = bounded_shaped(advantages_BG, factors_BG, groups.passing_BG, groups.valid_BG, lambda_max)
        finite_B = np.isfinite(made.train_BG).all(-1)
        inverted_B = introduces_inversion(made.train_BG, advantages_BG, groups)
        conserved_B = conserves(made.train_BG, advantages_BG, groups.passing_BG, groups.valid_BG)
    taken_B = finite_B & ~inverted_B
    return _credits(
        groups,
        advantages_BG,
        np.where(taken_B[:, None], made.train_BG, advantages_BG),
        np.where(taken_B[:, None], made.weighted_BG, advantages_BG),
        regimes=np.select([~taken_B, made.capped_B, conserved_B], [FALLBACK, BOUNDED, EXACT], CLIPPED).tolist(),
        reasons=[
            None if taken else INVERTS_ORDER if finite else NOT_FINITE
            for taken, finite in zip(taken_B, finite_B, strict=True)
        ],
        lambdas_B=np.where(taken_B, made.lambda_B, 1.0),
        capped_B=made.capped_B & taken_B,
    )


def control_credit(group: Group, factors_G: np.ndarray, lambda_max: float | None) -> Credit:
    """Redistribute by the factors of a control (`controls`): as the method does, regime `baseline`.

    Args, Returns, Raises: as for `redistributed_credit`; a fallback stays one.
    """
    made = redistributed_credit(group, factors_G, lambda_max)
    return made if made.regime == FALLBACK else replace(made, regime=BASELINE)


def baseline_credit(group: Group, factors_G: np.ndarray, method: str) -> Credit:
    """Apply a method that a run compares redistribution with: Eq. (1), Eq. (11), or the additive rubric advantage.

    Args:
        group: with at least one pass and one failure.
        factors_G: (G,) float in (0, 1], no unit; read where a rollout passes.
        method: `downweight_only`, `reward_discount` or `additive_rubric`.
    Returns:
        The credit, regime `baseline`, whatever the order of its numbers.
    Raises:
        ValueError: shapes differ, a factor is outside (0, 1], or it is another method.
    """
    advantages_G = outcome_advantages(group.rewards_G, group.valid_G)
    if method == DOWNWEIGHT_ONLY:
        weighted_G = downweight_only(advantages_G, factors_G, group.passing_G)
        return _credit(group, advantages_G, weighted_G, weighted_G)
    if method == REWARD_DISCOUNT:
        discounted_G = discounted_rewards(keep(group.rewards_G, group.valid_G), factors_G, group.passing_G)
        # B is what the equivalent reward exceeds the mean by, so that r' is the discounted reward itself.
        weighted_G = keep(discounted_G - mean_rewards(group.rewards_G, group.valid_G), group.valid_G)
        return _credit(group, advantages_G, centred(discounted_G, group.valid_G), weighted_G)
    if method == ADDITIVE_RUBRIC:
        added_G = advantages_G + rubric_advantages(factors_G, group.passing_G)
        return _credit(group, advantages_G, added_G, added_G)
    expected = [DOWNWEIGHT_ONLY, REWARD_DISCOUNT, ADDITIVE_RUBRIC]
    raise ValueError(f"method is {method!r}, expected one of {expected}")


def untouched_credit(group: Group, regime: str, reason: str | None = None) -> Credit:
    """Pass one group on as it is: `untouched_credits` of a batch of one."""
    return untouched_credits(Groups.of([group]), [regime], [reason])[0]


def untouched_credits(groups: Groups, regimes: Sequence[str], reasons: Sequence[str | None]) -> list[Credit]:
    """Pass on the outcome advantages as they are: no factor, no clipping, no bound.

    Args:
        groups: any groups; masked rows get 0.
        regimes: of each `fallback`, `baseline` (method `outcome`) or `ineligible`.
        reasons: of each why, for a fallback.
    Returns:
        The credit of each; equivalent rewards are the rewards.
    Raises:
        ValueError: it is another regime.
    """
    if others := set(regimes) - set(UNTOUCHED):
        raise ValueError(f"regime is {min(others)!r}, expected one of {list(UNTOUCHED)}")
    advantages_BG = outcome_advantages(groups.rewards_BG, groups.valid_BG)
    return _credits(groups, advantages_BG, advantages_BG, advantages_BG, regimes=regimes, reasons=reasons)


def no_credit(group: Group, regime: str, reason: str) -> Credit:
    """Give a group that does not train zeros throughout.

    Args:
        group: any group; its rewards may be anything.
        regime: `filtered` or `excluded`.
        reason: the end reason of the group.
    Returns:
        The credit: advantages 0, equivalent rewards all the mean of the group (0 where that is no
        finite number), so that centring them gives 0 as well.
    Raises:
        ValueError: it is another regime.
    """
    if regime not in (FILTERED, EXCLUDED):
        raise ValueError(f"regime is {regime!r}, expected {FILTERED!r} or {EXCLUDED!r}")
    with np.errstate(over="ignore", invalid="ignore"):
        mean = mean_rewards(group.rewards_G, group.valid_G)[0]
    zeros_G = np.zeros(len(group.valid_G))
    level_G = np.where(group.valid_G, mean if math.isfinite(mean) else 0.0, 0.0)
    return Credit(
        regime, reason, 1.0, False, False, tuple(zeros_G.tolist()), tuple(level_G.tolist()), 0.0, 0.0, None, None
    )


def introduces_inversion(train_BG: np.ndarray, advantages_BG: np.ndarray, groups: Groups) -> np.ndarray:
    """Say whether a failure ends above a pass that it did not stand above before.

    Args:
        train_BG, advantages_BG: (B, G) float, reward units; after and before.
        groups: who passes, who fails.
    Returns:
        (B,) bool, True if there is such a pair, by more than rounding.
    """
    found_B = _inverted(train_BG, groups)
    for place in np.flatnonzero(found_B):  # rare: only there are the pairs looked at
        passing_G = groups.passing_BG[place]
        failing_G = groups.valid_BG[place] & ~passing_G
        before_FP, after_FP = (_above(of_BG[place], failing_G, passing_G) for of_BG in (advantages_BG, train_BG))
        found_B[place] = (after_FP & ~before_FP).any()
    return found_B


def _inverted(values_BG: np.ndarray, groups: Groups) -> np.ndarray:
    failing_BG = groups.valid_BG & ~groups.passing_BG
    highest_B = np.where(failing_BG, values_BG, -np.inf).max(-1, initial=-np.inf)
    lowest_B = np.where(groups.passing_BG, values_BG, np.inf).min(-1, initial=np.inf)
    return highest_B - lowest_B > _rounding(values_BG)


def _above(values_G: np.ndarray, failing_G: np.ndarray, passing_G: np.ndarray) -> np.ndarray:
    return values_G[failing_G][:, None] - values_G[passing_G][None, :] > _rounding(values_G)


def _rounding(values_BG: np.ndarray) -> np.ndarray:
    return TINY * np.abs(values_BG).max(-1, initial=1.0)


def _credit(group: Group, advantages_G, train_G, weighted_G) -> Credit:
    made = (of_G[None] for of_G in (advantages_G, train_G, weighted_G))
    return _credits(Groups.of([group]), *made, regimes=[BASELINE], reasons=[None])[0]


def _credits(
    groups: Groups, advantages_BG, train_BG, weighted_BG, *, regimes, reasons, lambdas_B=None, capped_B=None
) -> list[Credit]:
    failing_BG, credit_BG = groups.valid_BG & ~groups.passing_BG, np.maximum(advantages_BG, 0)
    credit_B, paid_B = (_sums(keep(of_BG, groups.passing_BG)) for of_BG in (credit_BG, train_BG))
    penalty_B, left_B = (_sums(keep(of_BG, failing_BG)) for of_BG in (advantages_BG, train_BG))
    columns = zip(
        regimes,
        reasons,
        [1.0] * len(regimes) if lambdas_B is None else lambdas_B.tolist(),
        [False] * len(regimes) if capped_B is None else capped_B.tolist(),
        _inverted(advantages_BG, groups).tolist(),
        map(tuple, train_BG.tolist()),
        map(tuple, equivalent_rewards(weighted_BG, groups.rewards_BG, groups.valid_BG).tolist()),
        _sums(np.maximum(train_BG, 0)),
        _sums(np.minimum(train_BG, 0)),
        [paid / due if due > TINY else None for paid, due in zip(paid_B, credit_B, strict=True)],
        [left / due if due < -TINY else None for left, due in zip(left_B, penalty_B, strict=True)],
        strict=True,
    )
    return [Credit(*column) for column in columns]


def _sums(values_BG: np.ndarray) -> list[float]:
    return group_sums(values_BG)[..., 0].tolist()
