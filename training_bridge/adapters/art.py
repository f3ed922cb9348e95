"""OpenPipe ART (tried with 0.5.18): `gather_trajectory_groups(..., after_each=gagar.after_each)`.

Train with `scale_rewards=False`. ART's packing then multiplies a whole batch by one factor: ratios and signs stay.
"""

import asyncio
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from training_bridge.adapters import fidelity
from training_bridge.adapters.deciding import Decider, Evaluate, told

NAME = "ART (scale_rewards, normalize_advantages)"
EXPECTED = "gagar_advantage"  # in the metadata of each trajectory


class GagarArt:
    """Rewards of finished groups; `trained()` after each `train`."""

    def __init__(self, decider: Decider, evaluate: Evaluate, key: Callable[[Any], str]):
        """Prepare.

        Args:
            decider: one a process.
            evaluate: `(trajectory) -> fields of GroupHandle.submit`, at least `outcome`; may be async.
            key: `(group) -> str`, names a trajectory group, for example by its task.
        """
        self._decider, self._evaluate, self._key = decider, evaluate, key
        decider.describe(name="art", space="reward")

    async def after_each(self, group: Any) -> Any:
        """Wait for the group's decision and set its rewards. Invalid trajectories leave before ART's mean.

        Returns: the group, or None where nobody of it trains, which ART leaves out.
        """
        if not group.trajectories:
            return None  # every rollout raised
        rollouts = await asyncio.gather(*(told(self._evaluate(t)) for t in group.trajectories))
        rows = await self._decider.decide(self._key(group), rollouts)
        kept = []
        for trajectory, reward, advantage in zip(group.trajectories, rows.rewards, rows.advantages, strict=True):
            if reward is not None:
                trajectory.reward, trajectory.metadata[EXPECTED] = reward, advantage
                kept.append(trajectory)
        group.trajectories = kept
        return group if any(rows.advantages) else None

    def trained(self) -> None:
        """The optimiser step with all groups so far is done."""
        self._decider.applied()
        self._decider.step += 1


def watched(tokenize: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    """Wrap ART's `tokenize_trajectory_groups`, where it computes advantages, so that it refuses other numbers.

    Args:
        tokenize: gives results with `advantage` and `trajectory`.
    Returns:
        The same, checked result by result.
    """

    @wraps(tokenize)
    def looked_at(*args: Any, **kwargs: Any) -> Iterator[Any]:
        results = [*tokenize(*args, **kwargs)]
        decided = [result for result in results if EXPECTED in result.trajectory.metadata]
        expected = [result.trajectory.metadata[EXPECTED] for result in decided]
        fidelity.check(expected, [one.advantage for one in decided], group="of this batch", trainer=NAME)
        yield from results

    return looked_at


def watch() -> None:
    """Look at the advantages of ART's local backend from now on; a second call changes nothing."""
    from art.local import backend

    if not hasattr(backend.tokenize_trajectory_groups, "__wrapped__"):
        backend.tokenize_trajectory_groups = watched(backend.tokenize_trajectory_groups)
