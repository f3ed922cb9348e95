"""Readers of the Redis layer end with their sockets. Skips where no Redis answers."""

import asyncio
import os

import pytest

from gagar_web.redis_layer import PatientRedisChannelLayer
from tests.on_services import SERVICES, answers

OVERRIDE, DEFAULT, PORT = SERVICES["REDIS_URL"]
URL = os.environ.get("REDIS_URL") or os.environ.get(OVERRIDE, DEFAULT)
pytestmark = pytest.mark.skipif(
    OVERRIDE not in os.environ and not answers(PORT), reason=f"no Redis answers on 127.0.0.1:{PORT}"
)


async def reader_cancelled_after(turns: int) -> bool:
    """Whether a reader, cancelled so many turns of the loop after it began, ended within seconds."""
    layer = PatientRedisChannelLayer(hosts=[URL])
    reader = asyncio.create_task(layer.receive(await layer.new_channel()))
    for _ in range(turns):
        await asyncio.sleep(0)
    reader.cancel()
    ended, _ = await asyncio.wait([reader], timeout=4)
    reader.cancel()
    return bool(ended)


def test_a_reader_ends_at_its_first_cancellation_wherever_it_stands():
    async def all_of_them():
        return [turns for turns in range(60) if not await reader_cancelled_after(turns)]

    assert asyncio.run(all_of_them()) == []


def test_a_reader_that_is_cancelled_leaves_the_next_one_its_messages():
    async def hear():
        layer = PatientRedisChannelLayer(hosts=[URL])
        name = await layer.new_channel()
        reader = asyncio.create_task(layer.receive(name))
        await asyncio.sleep(0.1)
        reader.cancel()
        await asyncio.wait([reader])
        await layer.send(name, {"type": "rung"})
        return await asyncio.wait_for(layer.receive(name), 5)

    assert asyncio.run(hear()) == {"type": "rung"}
