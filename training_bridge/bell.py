"""A bell inside one event loop: many rings make one run of the work."""

import asyncio


class Bell:
    """Work that runs once at a time: however often the bell rings meanwhile, it then runs once more."""

    def __init__(self, work):
        self.work, self.rung, self.task = work, False, None

    def ring(self) -> None:
        self.rung = True
        if self.task is None or self.task.done():
            self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while self.rung:
            self.rung = False
            await self.work()

    async def quiet(self) -> None:
        """Wait for what was rung so far."""
        if self.task is not None:
            await asyncio.wait([self.task])
