"""One group's numbers, and the regime they came about in: computed, never assumed."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from training_bridge.redistribution.baselines import discounted_rewards, downweight_only
from training_bridge.redistribution.masks import TINY, keep
from training_bridge.redistribution.outcome import centred, mean_rewards, outcome_advantages
from training_bridge.redistribution.reward_space import equivalent_rewards
from training_bridge.redistribution.safeguards import bounded_shaped
from training_bridge.redistribution.sum_preserving import conserves

REDISTRIBUTE, OUTCOME, DOWNWEIGHT_ONLY, REWARD_DISCOUNT = METHODS = (
    "redistribute",
    "outcome",
    "downweight_only",
    "reward_discount",
)
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
    """Redistribute one graded group, Eq. (8), and name the regime by what came out.

    Args:
        group: with at least one pass and one failure.
        factors_G: (G,) float in (0, 1], no unit; read where a rollout passes.
        lambda_max: at least 1, no unit; None for the exact form.
    Returns:
        The credit. If a failure ends above a pass that it was not above before, or a number is not
        finite: the outcome advantages, regime `fallback`, with the reason.
    Raises:
        ValueError: shapes differ, a factor is outside (0, 1], or lambda_max < 1.
    """
    advantages_G = outcome_advantages(group.rewards_G, group.valid_G)
    with np.errstate(over="ignore", invalid="ignore"):
        made = bounded_shaped(advantages_G, factors_G, group.passing_G, group.valid_G, lambda_max)
    if not np.isfinite(made.train_BG).all():
        return untouched_credit(group, FALLBACK, NOT_FINITE)
    if introduces_inversion(made.train_BG, advantages_G, group):
        return untouched_credit(group, FALLBACK, INVERTS_ORDER)
    capped = bool(made.capped_B)
    conserved = bool(conserves(made.train_BG, advantages_G, group.passing_G, group.valid_G))
    regime = BOUNDED if capped else EXACT if conserved else CLIPPED
    lambda_ = float(made.lambda_B)
    return _credit(group, advantages_G, made.train_BG, made.weighted_BG, regime=regime, lambda_=lambda_, capped=capped)


def baseline_credit(group: Group, factors_G: np.ndarray, method: str) -> Credit:
    """Apply the method that a run compares redistribution with: Eq. (1) or Eq. (11).

    Args:
        group: with at least one pass and one failure.
        factors_G: (G,) float in (0, 1], no unit; read where a rollout passes.
        method: `downweight_only` or `reward_discount`.
    Returns:
        The credit, regime `baseline`, whatever the order of its numbers.
    Raises:
        ValueError: shapes differ, a factor is outside (0, 1], or it is another method.
    """
    advantages_G = outcome_advantages(group.rewards_G, group.valid_G)
    if method == DOWNWEIGHT_ONLY:
        weighted_G = downweight_only(advantages_G, factors_G, group.passing_G)
        return _credit(group, advantages_G, weighted_G, weighted_G, regime=BASELINE)
    if method == REWARD_DISCOUNT:
        discounted_G = discounted_rewards(keep(group.rewards_G, group.valid_G), factors_G, group.passing_G)
        # B is what the equivalent reward exceeds the mean by, so that r' is the discounted reward itself.
        weighted_G = keep(discounted_G - mean_rewards(group.rewards_G, group.valid_G), group.valid_G)
        return _credit(group, advantages_G, centred(discounted_G, group.valid_G), weighted_G, regime=BASELINE)
    raise ValueError(f"method is {method!r}, expected {DOWNWEIGHT_ONLY!r} or {REWARD_DISCOUNT!r}")


def untouched_credit(group: Group, regime: str, reason: str | None = None) -> Credit:
    """Pass on the outcome advantages as they are: no factor, no clipping, no bound.

    Args:
        group: any group; masked rows get 0.
        regime: `fallback`, `baseline` (method `outcome`) or `ineligible`.
        reason: why, for a fallback.
    Returns:
        The credit; equivalent rewards are the rewards.
    Raises:
        ValueError: it is another regime.
    """
    if regime not in UNTOUCHED:
        raise ValueError(f"regime is {regime!r}, expected one of {list(UNTOUCHED)}")
    advantages_G = outcome_advantages(group.rewards_G, group.valid_G)
    return _credit(group, advantages_G, advantages_G, advantages_G, regime=regime, reason=reason)


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


def introduces_inversion(train_G: np.ndarray, advantages_G: np.ndarray, group: Group) -> bool:
    """Say whether a failure ends above a pass that it did not stand above before.

    Args:
        train_G, advantages_G: (G,) float, reward units; after and before.
        group: who passes, who fails.
    Returns:
        True if there is such a pair, by more than rounding.
    """
    before_FP, after_FP = _above(advantages_G, group), _above(train_G, group)
    return bool((after_FP & ~before_FP).any())


def _above(values_G: np.ndarray, group: Group) -> np.ndarray:
    failures_F, passes_P = values_G[group.valid_G & ~group.passing_G], values_G[group.passing_G]
    rounding = TINY * np.abs(values_G).max(initial=1.0)
    return failures_F[:, None] - passes_P[None, :] > rounding


def _credit(
    group: Group, advantages_G, train_G, weighted_G, *, regime, reason=None, lambda_=1.0, capped=False
) -> Credit:
    failing_G = group.valid_G & ~group.passing_G
    credit = np.maximum(advantages_G, 0)[group.passing_G].sum()
    penalty = advantages_G[failing_G].sum()
    return Credit(
        regime=regime,
        reason=reason,
        lambda_=lambda_,
        capped=capped,
        inverted_by_reward=bool(_above(advantages_G, group).any()),
        advantages_G=tuple(train_G.tolist()),
        equivalent_rewards_G=tuple(equivalent_rewards(weighted_G, group.rewards_G, group.valid_G).tolist()),
        positive_sum=float(train_G[train_G > 0].sum()),
        negative_sum=float(train_G[train_G < 0].sum()),
        credit_kept=float(train_G[group.passing_G].sum() / credit) if credit > TINY else None,
        penalty_kept=float(train_G[failing_G].sum() / penalty) if penalty < -TINY else None,
    )
