"""The client for an asyncio job: the same verbs, the ones that may block awaited. The work is the sync client's."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Any, Self

from training_bridge.client.freezing import GivenUp
from training_bridge.client.gagar import GagarClient
from training_bridge.client.groups import GroupHandle
from training_bridge.client.sets import FrozenBatch


class AsyncGagarClient:
    """`async with AsyncGagarClient(url, run, token) as gagar:`; rules and errors are those of `GagarClient`.

    Attributes:
        sync: the client that does the work.
        task, declare, applied, log: its verbs that only queue and return at once, for use without `await`.
    """

    def __init__(self, url: str, run: str, token: str, **options: Any):
        """Prepare; `async with` starts it. Args: as `GagarClient`."""
        self.sync = GagarClient(url, run, token, **options)
        self.task, self.declare = self.sync.task, self.sync.declare
        self.applied, self.log = self.sync.applied, self.sync.log

    async def __aenter__(self) -> Self:
        """Get a life, or start without one if the server does not answer within seconds."""
        await asyncio.to_thread(self.sync.__enter__)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give what is queued some seconds (few after an exception), then stop the threads."""
        await asyncio.shield(asyncio.to_thread(self.sync.__exit__, kind, error, trace))

    @property
    def life(self) -> int:
        """The life of this process; negative while no server has issued one."""
        return self.sync.life

    @property
    def online(self) -> bool:
        """Whether the socket is up and welcomed."""
        return self.sync.online

    @property
    def mode(self) -> str:
        """`outcome_only` while the run is paused, else `normal`."""
        return self.sync.mode

    @property
    def problems(self) -> list[str]:
        """What was refused or lost, oldest of the last 1,000 first."""
        return self.sync.problems

    async def freeze(
        self, step: int, groups: Iterable[GroupHandle], within_s: float = 5.0, hold_steps: int = 0
    ) -> FrozenBatch:
        """Choose the rows of one optimiser step, once. Cancelled, it has frozen nothing.

        Args, Returns, Raises:
            As `GagarClient.freeze`.
        """
        given_up = threading.Event()
        frozen = asyncio.ensure_future(
            asyncio.to_thread(self.sync.freeze_unless, given_up, step, [*groups], within_s, hold_steps)
        )
        try:
            return await asyncio.shield(frozen)
        except asyncio.CancelledError:
            self.sync.give_up(given_up)
            with suppress(GivenUp):
                self.sync.take_back(await frozen)  # it was chosen in the very moment
            raise

    @asynccontextmanager
    async def checkpoint(self) -> AsyncIterator[dict[str, Any]]:
        """Save the cursor inside the job's own checkpoint.

        Yields:
            As `GagarClient.checkpoint`; leave the block only when the file is written and synced.
        """
        with self.sync.checkpoint() as cursor:
            yield cursor
