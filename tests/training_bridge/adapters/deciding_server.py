"""The little server decides a group by Eq. 2: passes count 1, 1/2, 1/4, … of their quality, in order of their id."""

import asyncio

import numpy as np

from training_bridge.protocol.messages import AdvantageRow, Advantages
from training_bridge.redistribution.outcome import outcome_advantages
from training_bridge.redistribution.sum_preserving import redistribute


async def decide_all(server, many: int, *, groups: int = 1) -> dict[str, dict[str, float]]:
    """Wait for `groups` whole groups, decide them newest first. Returns: group to rollout to advantage."""
    while len(server.trajectories) < many * groups:
        await asyncio.sleep(0.01)
    decided = {}
    for key in sorted({t["group"] for t in server.trajectories.values()}, reverse=True):
        decided[key] = decide(server, key)
    return decided


def decide(server, key: str) -> dict[str, float]:
    """Store the decision of one group. Returns: rollout to advantage."""
    rollouts = sorted((e, t["outcome"]) for (_, e), t in server.trajectories.items() if t["group"] == key)
    passing = np.array([[outcome == "passed" for _, outcome in rollouts]])
    valid = np.array([[outcome != "infra_invalid" for _, outcome in rollouts]])
    factors = np.where(passing, 0.5 ** (passing.cumsum() - 1), 1.0)
    rewards = passing.astype(float)
    train = bool(passing.any() and (valid & ~passing).any())
    advantages = np.zeros_like(rewards)
    if train:
        advantages = redistribute(outcome_advantages(rewards, valid), factors, passing)
    mean = rewards[valid].mean()
    rows = tuple(
        AdvantageRow(
            trajectory=name, outcome=outcome, reward=float(rewards[0, i]) if valid[0, i] else None,
            equivalent_reward=float(advantages[0, i] + mean) if valid[0, i] else None,
            advantage=float(advantages[0, i]), factor=float(factors[0, i]) if passing[0, i] else None,
        )
        for i, (name, outcome) in enumerate(rollouts)
    )  # fmt: skip
    with server.lock:
        regime = "exact" if train else "filtered"
        row = Advantages(
            seq=len(server.rows) + 1, group=key, life=server.lives, version=1, rows=rows, step=0, regime=regime,
            train=train,
        )  # fmt: skip
        server._store(row)
    return {row.trajectory: row.advantage for row in rows}
