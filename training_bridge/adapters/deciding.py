"""For trainers that hand over one finished group and await its rewards: submit, wait beside the others, remember."""

import asyncio
import inspect
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from training_bridge.adapters.rows import Rows, rows_of
from training_bridge.client import FrozenBatch, GagarClient, GroupHandle

POLL_S = 0.1
LAST_CALL_S = 1.0  # what the server gets to answer once a group's time is over
HOLD_STEPS = 100  # how long a group waits is said in seconds
ABOUT_GROUP = ("task", "statement")
Evaluate = Callable[..., Mapping[str, Any] | Awaitable[Mapping[str, Any]]]


async def told(answer: Mapping[str, Any] | Awaitable[Mapping[str, Any]]) -> dict[str, Any]:
    """What `evaluate` says about one rollout, whether it is async or not."""
    return dict(await answer if inspect.isawaitable(answer) else answer)


class Decider:
    """The groups of one training process, each decided once.

    Attributes:
        step: the training step that new groups are rolled out for; the adapter moves it on.
    """

    def __init__(
        self,
        connect: Callable[[], GagarClient],
        within_s: float,
        first_step: int = 0,
    ):
        """Prepare.

        Args:
            connect: gives the entered client; called at the first group, so only in the process that has groups.
            within_s: how long a group may wait for its decision; after that outcome advantages, version 0.
            first_step: where a resumed job goes on.
        """
        self._about: dict[str, Any] = {}
        self._connect, self._within_s, self.step = connect, within_s, first_step
        self._client: GagarClient | None = None
        self._names: Counter[str] = Counter()
        self._frozen: dict[str, FrozenBatch] = {}

    def describe(self, **known: Any) -> None:
        """Say what the adapter knows of its trainer, fields of `Estimator`; kept until there is a client."""
        self._about |= known
        if self._client is not None:
            self._client.describe(**known)

    @property
    def client(self) -> GagarClient:
        """The client, connected at first use."""
        if self._client is None:
            self._client = self._connect()
            self._client.describe(**self._about)
        return self._client

    async def decide(self, key: str, rollouts: Sequence[Mapping[str, Any]]) -> Rows:
        """Submit a finished group and wait for its numbers; other groups wait at the same time.

        Args:
            key: the trainer's name of the group; a second one of the same name gets a number.
            rollouts: for each the fields of `GroupHandle.submit`; `task` and `statement` are read from the first.
        Returns:
            Rewards and advantages in the order of the rollouts.
        """
        self._names[key] += 1
        name = key if self._names[key] == 1 else f"{key}#{self._names[key]}"
        task = str(rollouts[0].get("task", key))
        self.client.task(task, statement=str(rollouts[0].get("statement", task)))
        group = self.client.declare(name, task=task, step=self.step, group_size=len(rollouts))
        ids = [f"{name}/{i}" for i in range(len(rollouts))]
        if any(fields.get("reward") is not None for fields in rollouts):
            self.describe(shaped=True)
        for rollout, fields in zip(ids, rollouts, strict=True):
            group.submit(rollout, **{k: v for k, v in fields.items() if k not in ABOUT_GROUP})
        self._frozen[name] = await self._waited(group)
        return rows_of(self._frozen[name].sets, [ids])

    async def _waited(self, group: GroupHandle) -> FrozenBatch:
        until = time.monotonic() + self._within_s
        while time.monotonic() < until:
            batch = self.client.freeze(group.step, [group], within_s=0.0, hold_steps=HOLD_STEPS)
            if batch.sets:
                return batch
            await asyncio.sleep(POLL_S)
        return await asyncio.to_thread(self.client.freeze, group.step, [group], LAST_CALL_S, 0)

    def applied(self, groups: Sequence[str] | None = None) -> None:
        """Say that an optimiser step with these groups is done. Args: groups, their names; None for all so far."""
        for name in [*self._frozen] if groups is None else groups:
            if batch := self._frozen.pop(name, None):
                self.client.applied(batch)
