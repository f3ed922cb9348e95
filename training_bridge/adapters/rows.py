"""From frozen sets to the rows of a trainer's batch, which knows places and no ids. Core."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from training_bridge.client.sets import AdvantageSet


@dataclass(frozen=True)
class Rows:
    """Decided numbers in the order of a batch. Plain values: broadcast it to the ranks.

    Attributes:
        groups: each row's group.
        rewards: each row's equivalent reward, whose mean-centring over its group gives the advantage; None for an
            invalid rollout, which must not enter the mean.
        advantages: each row's advantage, reward units.
    """

    groups: list[str] = field(default_factory=list)
    rewards: list[float | None] = field(default_factory=list)
    advantages: list[float] = field(default_factory=list)

    def part(self, start: int, many: int) -> "Rows":
        """Returns: the rows of one rank."""
        stop = start + many
        return Rows(self.groups[start:stop], self.rewards[start:stop], self.advantages[start:stop])

    def filled(self) -> list[float]:
        """For trainers that can drop no row: an invalid one gets its group's mean, so the mean stays and it trains 0.

        Returns: a reward for each row.
        """
        rewards: list[float] = []
        for _, start, stop in self.spans():
            here = self.rewards[start:stop]
            valid = [reward for reward in here if reward is not None]
            mean = sum(valid) / len(valid) if valid else 0.0
            rewards += [mean if reward is None else reward for reward in here]
        return rewards

    def spans(self) -> Iterator[tuple[str, int, int]]:
        """Yields: (group, first row, one past its last row) for each run of rows of one group."""
        start = 0
        for i in range(1, len(self.groups) + 1):
            if i == len(self.groups) or self.groups[i] != self.groups[start]:
                yield self.groups[start], start, i
                start = i


def rows_of(sets: Sequence[AdvantageSet], names: Sequence[Sequence[str]]) -> Rows:
    """Lay the sets of a frozen batch out as rows.

    Args:
        sets: one a group.
        names: for each set, its rollouts in the order of the batch.
    Returns:
        The rows. A group that does not train has reward 0 and advantage 0 on every row.
    """
    groups, rewards, advantages = [], [], []
    for one, order in zip(sets, names, strict=True):
        for name in order:
            groups.append(one.group)
            advantages.append(one.advantage[name] if one.train else 0.0)
            rewards.append(one.equivalent_reward[name] if one.train else 0.0)
    return Rows(groups, rewards, advantages)


def rewards_of(one: AdvantageSet, space: Literal["reward", "advantage"] = "reward") -> dict[str, float | None]:
    """Say which reward each rollout of a group has, for trainers that name their rows.

    Args:
        one: a frozen group.
        space: `reward`, the trainer subtracts the group's mean; `advantage`, it takes rewards as advantages.
    Returns:
        Rollout to reward; None for a rollout that must leave the batch before the mean. A group that does not train
        has reward 0, so has a lone survivor.
    """
    if not one.train:
        return dict.fromkeys(one.advantage, 0.0)
    valid = {name: reward is not None for name, reward in one.equivalent_reward.items()}
    # verl and SkyRL take the reward of a lone survivor as its advantage
    if space == "advantage" or sum(valid.values()) == 1:
        return {name: value if valid[name] else None for name, value in one.advantage.items()}
    return dict(one.equivalent_reward)
