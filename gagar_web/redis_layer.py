"""The Redis channel layer for sockets that outlive Redis: a doorbell may be lost, a socket must not be."""

import asyncio
import logging
import time

from channels_redis.core import RedisChannelLayer
from redis.exceptions import RedisError

log = logging.getLogger(__name__)
AGAIN_AFTER_S = 1.0
ANSWERS_WITHIN_S = 1.0  # else it counts as gone: a step that rings must not wait for it
ASKED_AGAIN_AFTER_S = 2.0
CANCELLED_AGAIN_AFTER_S = 0.05
GONE = (RedisError, OSError)  # a TimeoutError is an OSError


async def _ending_when_cancelled(listening):
    """Await a coroutine, and when we are cancelled, cancel it until it has ended.

    redis-py sends with `asyncio.wait_for`, which before Python 3.12 forgets a cancellation that comes as it returns:
    the reader of a socket that closed at once would listen for ever. What it heard meanwhile was a doorbell.
    """
    task = asyncio.ensure_future(listening)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=CANCELLED_AGAIN_AFTER_S)
        if not task.cancelled():
            task.exception()  # seen, or the loop would log it as forgotten
        raise


class PatientRedisChannelLayer(RedisChannelLayer):
    """While Redis is gone nothing rings and nothing fails; when it is back, every listener is in its groups again.

    A Redis that was restarted has forgotten who listens; one that hangs takes connections and answers none.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._groups_of: dict[str, set[str]] = {}  # listening channel -> its groups
        self._asked_again_at = 0.0  # while it is gone only one ring in seconds finds out that it still is

    async def receive(self, channel):
        while True:
            try:
                return await _ending_when_cancelled(super().receive(channel))
            except GONE as gone:
                log.warning("Redis is gone (%s): whoever listens looks for itself until it is back", gone)
                await self._come_back()

    async def group_add(self, group, channel):
        self._groups_of.setdefault(channel, set()).add(group)
        try:
            async with asyncio.timeout(ANSWERS_WITHIN_S):
                await super().group_add(group, channel)
        except GONE:
            log.warning("Redis is gone: group %s is joined when it is back", group)

    async def group_discard(self, group, channel):
        groups = self._groups_of.get(channel, set())
        groups.discard(group)
        if not groups:
            self._groups_of.pop(channel, None)
        try:
            async with asyncio.timeout(ANSWERS_WITHIN_S):
                await super().group_discard(group, channel)
        except GONE:
            log.warning("Redis is gone: group %s forgets by itself", group)

    async def group_send(self, group, message):
        if time.monotonic() < self._asked_again_at:
            return
        try:
            async with asyncio.timeout(ANSWERS_WITHIN_S):
                await super().group_send(group, message)
        except GONE:
            self._asked_again_at = time.monotonic() + ASKED_AGAIN_AFTER_S
            log.warning("Redis is gone: nobody heard %s in %s; whoever waits looks for itself", message["type"], group)

    async def _come_back(self) -> None:
        """Wait until Redis takes the memberships again."""
        while True:
            await asyncio.sleep(AGAIN_AFTER_S)
            try:
                for channel, groups in list(self._groups_of.items()):
                    for group in list(groups):
                        await super().group_add(group, channel)
                return
            except GONE:
                continue
