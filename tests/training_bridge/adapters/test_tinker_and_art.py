"""tinker-cookbook 0.6.1 and ART 0.5.18 on their shapes: rewards of a group that is done, and what they make of them.

Both centre by the group's mean; their formulas are written out here, the shapes are recorded from the packages.
"""

import asyncio
from dataclasses import dataclass, field

import numpy as np
import pytest

from tests.training_bridge.adapters.deciding_server import decide_all
from training_bridge.adapters import art, tinker
from training_bridge.adapters.deciding import Decider
from training_bridge.adapters.fidelity import FidelityError

OUTCOMES = ["passed", "failed", "passed", "infra_invalid", "passed", "failed"]


@dataclass
class Step:
    reward: float


@dataclass
class TinkerTrajectory:
    transitions: list[Step]


@dataclass
class TinkerGroup:
    trajectories_G: list[TinkerTrajectory]
    final_rewards_G: list[float]
    metrics_G: list[dict]


@dataclass
class ArtTrajectory:
    outcome: str
    reward: float = 0.0
    metadata: dict = field(default_factory=dict)


@dataclass
class ArtGroup:
    trajectories: list[ArtTrajectory]
    metadata: dict = field(default_factory=dict)


@dataclass
class ArtResult:
    advantage: float
    trajectory: ArtTrajectory


class Tensor(list):
    def tolist(self):
        return [*self]


def tinkers_advantages(groups, scale=1.0):
    """Total reward: of the steps and of the group, in float32; minus the group's mean."""
    advantages = []
    for group in groups:
        steps = [sum(step.reward for step in t.transitions) for t in group.trajectories_G]
        rewards = np.array(steps, np.float32) + np.array(group.final_rewards_G, np.float32)
        advantages.append(Tensor(((rewards - rewards.mean()) * np.float32(scale)).tolist()))
    return advantages


def arts_results(groups, scale_rewards):
    for group in groups:
        rewards = np.array([t.reward for t in group.trajectories])
        advantages = rewards - rewards.mean()
        if scale_rewards:
            advantages /= rewards.std() + 1e-6
        yield from (ArtResult(a, t) for a, t in zip(advantages.tolist(), group.trajectories, strict=True))


def tinker_group(server, decider, evaluate) -> tuple[TinkerGroup, list[float]]:
    trajectories = [TinkerTrajectory([Step(0.125), Step(-0.5)]) for _ in OUTCOMES]

    async def together():
        rewards = asyncio.create_task(tinker.group_rewards(decider, "t-1", evaluate, trajectories, OUTCOMES))
        decided = await decide_all(server, len(OUTCOMES))
        return await rewards, decided["t-1"]

    rewards, decided = asyncio.run(together())
    group = TinkerGroup(trajectories, [reward for reward, _ in rewards], [metrics for _, metrics in rewards])
    return group, [decided[f"t-1/{i}"] for i in range(len(OUTCOMES))]


async def from_env(trajectory, env):
    return {"outcome": env}


def test_tinker_centres_to_the_decided_advantages_though_steps_have_rewards_of_their_own(server, decider):
    group, decided = tinker_group(server, decider, from_env)
    [got] = tinker.watched(tinkers_advantages)([group])
    assert np.abs(np.array(got) - decided).max() < 1e-6 and decided[3] == 0.0 and len({*decided}) > 3
    assert [metrics["gagar_passed"] for metrics in group.metrics_G] == [1, 0, 1, 0, 1, 0]


def test_a_tinker_that_scales_is_stopped_and_groups_of_others_are_not_looked_at(server, decider):
    group, _ = tinker_group(server, decider, lambda trajectory, env: {"outcome": env})
    with pytest.raises(FidelityError, match="multiplied by 2"):
        tinker.watched(tinkers_advantages)([group], scale=2.0)
    others = TinkerGroup([TinkerTrajectory([Step(1.0)])] * 2, [0.0, 1.0], [{}, {}])
    assert tinker.watched(tinkers_advantages)([others], scale=2.0) == [[-1.0, 1.0]]


def gagar_of(decider):
    return art.GagarArt(decider, lambda trajectory: {"outcome": trajectory.outcome}, lambda group: group.metadata["id"])


def art_group(server, gagar, outcomes=OUTCOMES, name="g"):
    group = ArtGroup([ArtTrajectory(outcome) for outcome in outcomes], {"id": name})

    async def together():
        after = asyncio.create_task(gagar.after_each(group))
        decided = await decide_all(server, len(outcomes))
        return await after, decided[name]

    return asyncio.run(together())


def test_art_centres_to_the_decided_advantages_without_the_invalid_trajectory(server, decider):
    group, decided = art_group(server, gagar_of(decider))
    assert len(group.trajectories) == 5
    got = [one.advantage for one in art.watched(arts_results)([group], scale_rewards=False)]
    expected = [decided[f"g/{i}"] for i in (0, 1, 2, 4, 5)]
    assert np.abs(np.array(got) - expected).max() < 1e-12


def test_an_art_that_scales_rewards_is_stopped(server, decider):
    group, _ = art_group(server, gagar_of(decider))
    with pytest.raises(FidelityError, match="standard deviation"):
        [*art.watched(arts_results)([group], scale_rewards=True)]


def test_art_leaves_out_a_group_that_trains_nobody(server, decider):
    group, _ = art_group(server, gagar_of(decider), ["passed", "infra_invalid", "infra_invalid"])
    assert group is None
    assert asyncio.run(gagar_of(decider).after_each(ArtGroup([]))) is None  # ART keeps what raised elsewhere


def test_trained_says_what_was_applied_and_moves_the_step_on(server, decider):
    gagar = gagar_of(decider)
    art_group(server, gagar)
    gagar.trained()
    assert decider.step == 1
    server.wait(lambda: ["applied"] in server.ledger().values())


def told_of(server) -> tuple[str, str]:
    """What the server was told of the trainer. A description opens a connection anew, so it may take a moment."""
    server.wait(lambda: server.resumes and server.resumes[-1].estimator.name != "gagar")
    return server.resumes[-1].estimator.name, server.resumes[-1].estimator.space


def test_the_server_is_told_that_tinker_takes_rewards(server, decider):
    tinker_group(server, decider, from_env)
    assert told_of(server) == ("tinker-cookbook", "reward")


def test_the_server_is_told_that_art_takes_rewards(server, decider):
    art_group(server, gagar_of(decider))
    assert told_of(server) == ("art", "reward")


def test_groups_wait_side_by_side_and_a_second_one_of_a_name_gets_a_number(server, decider):
    async def together():
        rollouts = [{"outcome": outcome} for outcome in OUTCOMES]
        waiting = asyncio.gather(*(decider.decide("g", rollouts) for _ in range(3)))
        decided = await decide_all(server, len(OUTCOMES), groups=3)
        return await waiting, decided

    rows, decided = asyncio.run(together())
    assert [one.groups[0] for one in rows] == ["g", "g#2", "g#3"] and {*decided} == {"g", "g#2", "g#3"}


def test_a_group_that_nobody_decides_gets_outcome_advantages_in_time(connect):
    decider = Decider(connect, within_s=0.3)
    rows = asyncio.run(decider.decide("g", [{"outcome": "passed"}, {"outcome": "failed"}]))
    assert rows.advantages == [0.5, -0.5]
