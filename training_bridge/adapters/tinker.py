"""tinker-cookbook (tried with 0.6.1): an `EnvGroupBuilder` whose group rewards are the decided ones.

It centres by the group's mean and nothing else; `watch()` looks at what it computed.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from training_bridge.adapters import fidelity
from training_bridge.adapters.deciding import Decider, Evaluate, told

NAME = "tinker-cookbook (compute_advantages)"
EXPECTED = "gagar_advantage"  # in the metrics of each trajectory


async def group_rewards(
    decider: Decider, key: str, evaluate: Evaluate, trajectories: Sequence[Any], envs: Sequence[Any]
) -> list[tuple[float, dict[str, float]]]:
    """Body of your builder's `compute_group_rewards`.

    Args:
        decider: one a process; say `decider.applied()` after an optimiser step, and move `decider.step` on.
        key: names the group, for example the task's id.
        evaluate: `(trajectory, env) -> fields of GroupHandle.submit`, at least `outcome`; may be async.
        trajectories, envs: as tinker-cookbook gives them.
    Returns:
        For each trajectory what is missing to its equivalent reward, as rewards of its steps are added to it; and its
        advantage and binary outcome as metrics.
    """
    decider.describe(name="tinker-cookbook", space="reward")
    rollouts = await asyncio.gather(*(told(evaluate(t, env)) for t, env in zip(trajectories, envs, strict=True)))
    rows = await decider.decide(key, rollouts)
    return [
        (
            reward - sum(step.reward for step in trajectory.transitions),
            {EXPECTED: advantage, "gagar_passed": float(rollout["outcome"] == "passed")},
        )
        for trajectory, reward, advantage, rollout in zip(
            trajectories, rows.filled(), rows.advantages, rollouts, strict=True
        )
    ]


def watched(compute_advantages: Callable) -> Callable:
    """Wrap tinker-cookbook's `compute_advantages`, so that it refuses groups that got other numbers.

    Args:
        compute_advantages: `(groups) -> one tensor of advantages a group`.
    Returns:
        The same, checked. Groups without decided metrics pass.
    """

    @wraps(compute_advantages)
    def looked_at(groups: Sequence[Any], *args: Any, **kwargs: Any):
        advantages = compute_advantages(groups, *args, **kwargs)
        for n, (group, got) in enumerate(zip(groups, advantages, strict=True)):
            expected = [metrics.get(EXPECTED) for metrics in group.metrics_G]
            if None not in expected:
                fidelity.check(expected, got.tolist(), group=f"{n} of the batch", trainer=NAME)
        return advantages

    return looked_at


def watch() -> None:
    """Look at the advantages of `tinker_cookbook.rl.train` from now on; a second call changes nothing."""
    from tinker_cookbook.rl import train

    computed, printed = train.compute_advantages, train.print_group
    if hasattr(computed, "__wrapped__"):
        return

    @wraps(printed)
    def print_group(*args: Any, **kwargs: Any):
        train.compute_advantages = computed  # it prints some rows of a group, and their mean is another one
        try:
            return printed(*args, **kwargs)
        finally:
            train.compute_advantages = checked

    train.compute_advantages = checked = watched(computed)
    train.print_group = print_group
