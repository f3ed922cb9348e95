"""The async face: the same rules, and a cancelled freeze that froze nothing."""

import asyncio
import json

import pytest

from tests.training_bridge.client.little_server import TOKEN
from tests.training_bridge.client.test_faults import declare_four
from training_bridge.client import AsyncGagarClient, GagarError


def run(server, job):
    async def main():
        async with AsyncGagarClient(server.url, "r", TOKEN) as gagar:
            return await job(gagar)

    return asyncio.run(main())


async def until(condition):
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


def test_one_step_while_the_event_loop_goes_on(server):
    async def job(gagar):
        gagar.task("t", statement="fix it")
        group = declare_four(gagar, "g")
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        ticking = asyncio.create_task(tick())
        await until(lambda: len(server.trajectories) == 4)
        asyncio.get_running_loop().call_later(0.3, server.decide, "g")
        batch = await gagar.freeze(1, [group], within_s=20)
        ticking.cancel()
        gagar.applied(batch)
        gagar.log(1, {"loss": 0.5})
        async with gagar.checkpoint() as cursor:
            saved = json.dumps(cursor)
        await until(lambda: server.durable == 1 and server.metrics)
        return batch, ticks, saved, gagar.life, gagar.mode, gagar.problems

    batch, ticks, saved, *said = run(server, job)
    assert batch.sets[0].version == 1 and ticks > 5 and said == [1, "normal", []]
    assert json.loads(saved)["applied"] == [[1, "g", 1, 1]]
    assert server.ledger() == {(1, "g", 1): ["applied"]} and server.ended == [(1, "")]


def test_a_cancelled_freeze_has_frozen_nothing_and_returns_at_once(server):
    async def job(gagar):
        await until(lambda: gagar.online)
        group = declare_four(gagar, "g")
        await until(lambda: len(server.trajectories) == 4)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await gagar.freeze(1, [group], within_s=600)
        server.decide("g")
        first = await gagar.freeze(1, [group], within_s=20)
        gagar.sync.take_back(first)  # as after a cancellation in the very moment
        batch = await gagar.freeze(1, [group], within_s=20)
        gagar.applied(batch)
        return batch.sets[0].version

    assert run(server, job) == 1
    assert server.ledger() == {(1, "g", 1): ["applied"]}


def test_two_freezes_of_one_group_at_once_give_it_to_one_of_them(server):
    async def job(gagar):
        await until(lambda: gagar.online)
        group = declare_four(gagar, "g")
        both = [asyncio.create_task(gagar.freeze(1, [group], within_s=20)) for _ in range(2)]
        await until(lambda: len(server.trajectories) == 4)
        server.decide("g")
        return await asyncio.gather(*both, return_exceptions=True)

    got = run(server, job)
    assert sorted(isinstance(one, GagarError) for one in got) == [False, True]
