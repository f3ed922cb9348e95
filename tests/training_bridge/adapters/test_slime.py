"""slime's hooks on recorded samples: it has no released package, so its own centring stands here as documented.

Recorded from slime's `Sample` (types.py) and the documented hooks: fields, defaults, and who calls what with what.
"""

import asyncio
import inspect
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

from tests.training_bridge.adapters.deciding_server import decide_all
from training_bridge.adapters.fidelity import FidelityError
from training_bridge.adapters.slime import GagarSlime, centred_by_group

P, F, INVALID = "passed", "failed", "infra_invalid"
OUTCOMES = [P, F, P, P, F, F, P, F]


@dataclass
class Sample:
    """As slime's, the fields that rewards pass through."""

    group_index: int | None = None
    index: int | None = None
    reward: float | dict | None = None
    response_length: int = 3
    remove_sample: bool = False
    metadata: dict = field(default_factory=dict)
    train_metadata: dict | None = None

    def get_reward_value(self, args) -> float:
        return self.reward if not args.reward_key else self.reward[args.reward_key]


def args_of(**changes):
    defaults = {
        "advantage_estimator": "grpo", "normalize_advantages": False, "grpo_std_normalization": False,
        "rewards_normalization": True, "custom_reward_post_process_path": "my_job.post_process", "reward_key": None,
        "rollout_data_postprocess_path": "my_job.look", "n_samples_per_prompt": 8, "rollout_batch_size": 2,
    }  # fmt: skip
    return SimpleNamespace(**(defaults | changes))


def samples_of(group: int, outcomes=OUTCOMES) -> list[Sample]:
    return [Sample(group, 8 * group + i, metadata={"outcome": outcome}) for i, outcome in enumerate(outcomes)]


def evaluate(args, sample):
    return {"outcome": sample.metadata["outcome"], "task": f"t-{sample.group_index}"}


def rolled_out(server, gagar, groups, args=None):
    """What slime does with finished groups: the hook for each at once, its answer into `reward`, one flat list."""

    async def together():
        many = len(groups[0])
        hooks = asyncio.gather(*(gagar.group_rm(args or args_of(), group) for group in groups))
        decided = await decide_all(server, many, groups=len(groups))
        for group, rewards in zip(groups, await hooks, strict=True):
            for sample, reward in zip(group, rewards, strict=True):
                sample.reward = reward
        return decided

    decided = asyncio.run(together())
    return [sample for group in groups for sample in group], {n: a for one in decided.values() for n, a in one.items()}


def built_in_centring(args, samples) -> np.ndarray:
    """slime's documented default: rows of n_samples_per_prompt if the batch is whole, else one group of all."""
    rewards = np.array([sample.reward for sample in samples], np.float32)
    whole = rewards.size == args.n_samples_per_prompt * args.rollout_batch_size
    rows = rewards.reshape(-1, args.n_samples_per_prompt) if whole else rewards.reshape(1, -1)
    rows = rows - rows.mean(-1, keepdims=True)
    return (rows / (rows.std(-1, keepdims=True, ddof=1) + 1e-6) if args.grpo_std_normalization else rows).reshape(-1)


def on_rank(samples, rewards) -> dict:
    """What a rank holds of some samples after slime's advantage step: the reward on each token."""
    return {
        "advantages": [[reward] * sample.response_length for sample, reward in zip(samples, rewards, strict=True)],
        "metadata": [sample.train_metadata for sample in samples],
    }


@pytest.fixture
def gagar(connect):
    return GagarSlime(connect, evaluate, within_s=20.0)


def named(samples, decided) -> list[float]:
    return [decided[f"{sample.group_index}/{sample.index % 8}"] for sample in samples]


def test_slimes_own_centring_gives_the_decided_advantages_in_float32(server, gagar):
    samples, decided = rolled_out(server, gagar, [samples_of(0), samples_of(1)])
    got = built_in_centring(args_of(), samples)
    assert np.abs(got - named(samples, decided)).max() < 1e-6 and len({*named(samples, decided)}) > 3
    gagar.look(args_of(), 0, on_rank(samples, got))


def test_our_post_processing_gives_them_exactly_and_keeps_the_outcome_as_raw_reward(server, gagar):
    samples, decided = rolled_out(server, gagar, [samples_of(0), samples_of(1)])
    raw, rewards = gagar.post_process(args_of(), samples)
    assert rewards == named(samples, decided) and raw == [float(o == P) for o in OUTCOMES] * 2


def test_groups_may_be_uneven_where_slimes_own_centring_takes_the_batch_for_one_group(server, gagar):
    samples, decided = rolled_out(server, gagar, [samples_of(0), samples_of(1)])
    there = samples[:-3]  # slime dropped three samples of the second group after their reward
    assert np.abs(built_in_centring(args_of(), there) - named(there, decided)).max() > 0.01
    _, rewards = gagar.post_process(args_of(), there)
    assert rewards == named(there, decided)


def test_samples_that_nobody_decides_are_centred_over_their_own_group():
    assert centred_by_group([1, 0, 1, 1, 0], ["a", "a", "b", "a", "b"]) == pytest.approx(
        [1 / 3, -2 / 3, 0.5, 1 / 3, -0.5]
    )


def test_an_invalid_sample_keeps_the_mean_trains_nobody_and_is_removed(server, gagar):
    outcomes = [P, F, INVALID, P, F, F, INVALID, F]
    samples, decided = rolled_out(server, gagar, [samples_of(0, outcomes), samples_of(1, outcomes)])
    assert [sample.remove_sample for sample in samples[:8]] == [outcome == INVALID for outcome in outcomes]
    got = built_in_centring(args_of(), samples)
    assert np.abs(got - named(samples, decided)).max() < 1e-6
    assert got[2] == pytest.approx(0, abs=1e-7) and named(samples, decided)[2] == 0.0


def test_a_lone_survivor_trains_nobody(server, gagar):
    samples, _ = rolled_out(server, gagar, [samples_of(0, [P] + [INVALID] * 7)])
    assert gagar.post_process(args_of(rollout_batch_size=1), samples)[1] == [0.0] * 8


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda samples, a: built_in_centring(args_of(grpo_std_normalization=True), samples), "standard deviation"),
        (lambda samples, a: np.clip(a, -0.1, 0.1), "clipping at 0.1"),
        (lambda samples, a: a * 8 / 7, "leave-one-out"),
        (lambda samples, a: np.r_[a[8:], a[:8]][::-1], "another order"),
    ],
)
def test_the_look_on_a_rank_stops_what_changes_the_numbers(server, gagar, spoil, words):
    samples, _ = rolled_out(server, gagar, [samples_of(0)])
    rewards = np.array(gagar.post_process(args_of(), samples)[1])
    gagar.look(args_of(), 0, on_rank(samples, rewards))
    with pytest.raises(FidelityError, match=words):
        gagar.look(args_of(), 0, on_rank(samples, spoil(samples, rewards)))


def test_each_rank_looks_at_its_own_rows_and_one_without_loss_at_none(server, gagar):
    samples, _ = rolled_out(server, gagar, [samples_of(0), samples_of(1)])
    _, rewards = gagar.post_process(args_of(), samples)
    for rank in (slice(0, 5), slice(5, 16)):
        gagar.look(args_of(), 0, on_rank(samples[rank], rewards[rank]))
    gagar.look(args_of(), 0, {"metadata": [], "advantages": None})
    with pytest.raises(FidelityError, match="no decided advantage travels"):
        gagar.look(args_of(), 0, {"metadata": None, "advantages": [[0.1]]})


def test_a_batch_is_applied_when_slime_asks_for_the_next_one(server, gagar, connect):
    samples, _ = rolled_out(server, gagar, [samples_of(0)])
    gagar.post_process(args_of(), samples)
    assert not any("applied" in words for words in server.ledger().values())
    gagar.post_process(args_of(), [])
    server.wait(lambda: ["applied"] in server.ledger().values())


def test_without_an_answer_in_time_outcome_advantages_go_out(connect):
    gagar = GagarSlime(connect, evaluate, within_s=0.0)
    rewards = asyncio.run(gagar.group_rm(args_of(), samples_of(0)))
    assert rewards == [float(outcome == P) for outcome in OUTCOMES]


@pytest.mark.parametrize(("path", "space"), [(None, "reward"), ("my_job.post_process", "advantage")])
def test_the_server_is_told_whether_slime_centres_itself(server, gagar, path, space):
    rolled_out(server, gagar, [samples_of(0)], args_of(custom_reward_post_process_path=path))
    server.wait(lambda: server.resumes and server.resumes[-1].estimator.space == space)
    asyncio.run(asyncio.sleep(0.3))  # another description would come now
    assert server.resumes[-1].estimator.space == space


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"normalize_advantages": True}, "--normalize-advantages=True"),
        ({"advantage_estimator": "rloo"}, "--advantage-estimator='rloo'"),
        ({"grpo_std_normalization": True, "custom_reward_post_process_path": None}, "grpo_std_normalization=True"),
        ({"rollout_data_postprocess_path": None}, "--rollout-data-postprocess-path=None"),
    ],
)
def test_settings_that_change_the_numbers_are_refused_by_name(gagar, changes, words):
    with pytest.raises(FidelityError, match=words):
        gagar.post_process(args_of(**changes), [])


def test_the_hooks_have_the_signatures_that_slime_calls():
    names = {
        "group_rm": ["args", "samples", "unused"], "post_process": ["args", "samples"],
        "look": ["args", "rollout_id", "rollout_data"],
    }  # fmt: skip
    for name, expected in names.items():
        assert [*inspect.signature(getattr(GagarSlime, name)).parameters][1:] == expected
    assert inspect.iscoroutinefunction(GagarSlime.group_rm)
