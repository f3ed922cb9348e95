"""What training gets for a group: the decided numbers from the server, or the job's own outcome advantages. Pure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from training_bridge.protocol.messages import Advantages, Outcome
from training_bridge.redistribution.outcome import mixed
from training_bridge.redistribution.regimes import (
    EXCLUDED,
    FALLBACK,
    FILTERED,
    INELIGIBLE,
    Credit,
    Group,
    no_credit,
    untouched_credit,
)


@dataclass(frozen=True)
class Rollout:
    """How one rollout ended, as the job measured it. `reward` is the shaped one, None where the outcome is all."""

    outcome: Outcome
    reward: float | None = None
    truncated: bool = False


@dataclass(frozen=True)
class AdvantageSet:
    """One group's numbers, frozen for one batch. Plain values: pickle it to broadcast it to the ranks.

    Attributes:
        group: the key it was declared with.
        life: the life of the group; negative while no server has issued one.
        version: the server's n-th decision; 0 is what the job computed itself.
        step: the training step the group was declared for.
        regime, reason: how the numbers came about; see the glossary.
        train: False for filtered and excluded groups, whose advantages are all 0.
        advantage: rollout to training advantage, reward units, before any trainer's own loss weighting.
        equivalent_reward: rollout to the reward whose mean-centring gives `advantage`; None on invalid rollouts.
        factor: rollout to quality factor in (0, 1]; None without a rank.
        outcome: rollout to its binary outcome, for a trainer's own group filters.
    """

    group: str
    life: int
    version: int
    step: int
    regime: str
    reason: str | None
    train: bool
    advantage: dict[str, float]
    equivalent_reward: dict[str, float | None] = field(default_factory=dict)
    factor: dict[str, float | None] = field(default_factory=dict)
    outcome: dict[str, str] = field(default_factory=dict)


def decided_set(row: Advantages, step: int, rollouts: Mapping[str, Rollout]) -> AdvantageSet:
    """Take the server's numbers.

    Args:
        row: the decision.
        step: the training step of the group.
        rollouts: every rollout the job submitted.
    Returns:
        The set. A rollout the decision does not know (it came late, or never arrived) has advantage 0 and no
        equivalent reward, as an invalid one.
    """
    known = {r.trajectory for r in row.rows}
    unknown = {name: rollout for name, rollout in rollouts.items() if name not in known}
    return AdvantageSet(
        group=row.group,
        life=row.life,
        version=row.version,
        step=step,
        regime=row.regime,
        reason=row.reason,
        train=row.train,
        advantage={r.trajectory: r.advantage for r in row.rows} | dict.fromkeys(unknown, 0.0),
        equivalent_reward={r.trajectory: r.equivalent_reward for r in row.rows} | dict.fromkeys(unknown),
        factor={r.trajectory: r.factor for r in row.rows} | dict.fromkeys(unknown),
        outcome={r.trajectory: r.outcome for r in row.rows} | {name: r.outcome for name, r in unknown.items()},
    )


def local_set(
    group: str,
    life: int,
    step: int,
    rollouts: Mapping[str, Rollout],
    *,
    eligible: bool,
    reason: str,
    mask_truncated: bool = False,
) -> AdvantageSet:
    """Compute version 0: outcome advantages A = R - mean(R) over the valid rollouts, shaped rewards where given.

    Args:
        group, life, step: of the group.
        rollouts: what the job has submitted so far.
        eligible: False for a group that is not graded anyway: it passes through unfiltered.
        reason: why there is no decision.
        mask_truncated: whether a truncated rollout is left out, as the run does it.
    Returns:
        Regime `fallback` with the reason (`ineligible` for such a group); `filtered` or `excluded`, all zero and
        `train` False, where the group cannot train.
    """
    names = list(rollouts)
    kept = {name: r.outcome != "infra_invalid" and not (mask_truncated and r.truncated) for name, r in rollouts.items()}
    valid_G = np.array(list(kept.values()), dtype=bool)
    credit = _local_credit(list(rollouts.values()), valid_G, eligible=eligible, reason=reason)
    rewards = zip(names, credit.equivalent_rewards_G, valid_G, strict=True)
    return AdvantageSet(
        group=group,
        life=life,
        version=0,
        step=step,
        regime=credit.regime,
        reason=credit.reason,
        train=credit.train,
        advantage=dict(zip(names, credit.advantages_G, strict=True)),
        equivalent_reward={name: reward if valid else None for name, reward, valid in rewards},
        factor=dict.fromkeys(names),
        outcome={name: rollout.outcome for name, rollout in rollouts.items()},
    )


def _local_credit(rollouts: list[Rollout], valid_G: np.ndarray, *, eligible: bool, reason: str) -> Credit:
    passing_G = np.array([r.outcome == "passed" for r in rollouts], dtype=bool) & valid_G
    rewards_G = np.array(
        [float(r.outcome == "passed") if r.reward is None else r.reward for r in rollouts], dtype=float
    )
    group = Group(rewards_G, passing_G, valid_G)
    if not valid_G.any():
        return no_credit(group, EXCLUDED, "excluded_no_valid_trajectory")
    if not all(math.isfinite(reward) for reward in rewards_G[valid_G]):
        return no_credit(group, EXCLUDED, "excluded_bad_reward")
    if not eligible:
        return untouched_credit(group, INELIGIBLE, reason)
    if not mixed(passing_G, valid_G):
        end = "filtered_all_passed" if passing_G.any() else "filtered_all_failed"
        return no_credit(group, FILTERED, end)
    return untouched_credit(group, FALLBACK, reason)


@dataclass(frozen=True)
class FrozenBatch:
    """The rows of one optimiser step, chosen once. Assemble it in one process and broadcast `sets` to the ranks.

    Attributes:
        step: the training step.
        sets: one a group, in the order asked for.
        waiting: handles of the groups that may still be decided for a later batch; pass them to a later freeze.
    """

    step: int
    sets: list[AdvantageSet]
    waiting: list[Any]
