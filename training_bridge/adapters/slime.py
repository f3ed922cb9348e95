"""slime (read at 624b824): its group reward hook waits for decisions, its reward post-processing keeps the numbers.

`--group-rm --custom-rm-path`, `--custom-reward-post-process-path`, `--rollout-data-postprocess-path`; see README.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from training_bridge.adapters import fidelity
from training_bridge.adapters.deciding import Decider, Evaluate, told
from training_bridge.client import GagarClient

NAME = "slime (grpo_std_normalization, normalize_advantages, advantage_estimator)"
ESTIMATORS = ("grpo", "gspo", "cispo")  # they take the post-processed reward as the advantage of each token
EXPECTED = "gagar_advantage"  # in `train_metadata`, which travels with a sample to its rank
GROUP = "gagar_group"


class GagarSlime:
    """Make one at the top of a module of yours and name its methods in slime's arguments."""

    def __init__(
        self, connect: Callable[[], GagarClient], evaluate: Evaluate, *, within_s: float = 600.0, first_step: int = 0
    ):
        """Prepare; every process of slime's may do so, only the one that rolls out connects.

        Args:
            connect: gives the entered client.
            evaluate: `(args, sample) -> fields of GroupHandle.submit`, at least `outcome`; `task` and `statement` too.
                May be async.
            within_s: how long a group may wait; keep it below what slime waits for a rollout.
            first_step: slime's `--start-rollout-id`.
        """
        self._decider = Decider(connect, within_s, first_step)
        self._evaluate = evaluate
        self._used: list[str] = []  # groups of the batch that trains now

    async def group_rm(self, args: Any, samples: Sequence[Any], **unused: Any) -> list[float]:
        """slime's group reward: the equivalent rewards (Eq. 9-10); an invalid sample gets its group's mean.

        The binary outcome stays in `sample.metadata["raw_reward"]`: filters must not look at the equivalent reward.
        """
        check_settings(args)
        self._decider.describe(name="slime", space="reward" if _centres_itself(args) else "advantage")
        rollouts = await asyncio.gather(*(told(self._evaluate(args, sample)) for sample in samples))
        rows = await self._decider.decide(str(samples[0].group_index), rollouts)
        for sample, rollout, group, reward, advantage in zip(
            samples, rollouts, rows.groups, rows.rewards, rows.advantages, strict=True
        ):
            sample.remove_sample = reward is None
            sample.metadata["raw_reward"] = float(rollout["outcome"] == "passed")
            sample.train_metadata = (sample.train_metadata or {}) | {EXPECTED: advantage, GROUP: group}
        return rows.filled()

    def post_process(self, args: Any, samples: Sequence[Any]) -> tuple[list[float], list[float]]:
        """slime's reward post-processing: decided samples keep their advantage, whoever is missing in their group.

        Returns: raw rewards (binary outcomes) and what slime trains on; undecided samples are centred by group.
        """
        check_settings(args)
        flat = [one for sample in samples for one in (sample if isinstance(sample, list) else [sample])]
        self._decider.applied(self._used)  # slime asks for the next batch when the last one is trained
        self._decider.step += 1
        self._used = [*dict.fromkeys(_decided(sample)[GROUP] for sample in flat if _decided(sample))]
        rewards = [float(sample.get_reward_value(args)) for sample in flat]
        raw = [float(sample.metadata.get("raw_reward", reward)) for sample, reward in zip(flat, rewards, strict=True)]
        centred = centred_by_group(rewards, [sample.group_index for sample in flat])
        return raw, [
            _decided(sample)[EXPECTED] if _decided(sample) else value
            for sample, value in zip(flat, centred, strict=True)
        ]

    def look(self, args: Any, rollout_id: int, rollout_data: Mapping[str, Any]) -> None:
        """slime's last hook before the optimiser, on each rank: its rows must carry their decided advantages.

        Raises:
            FidelityError: they do not, or nothing decided travelled with them.
        """
        if rollout_data.get("advantages") is None:
            return  # a pipeline stage without loss
        told_rows = rollout_data.get("metadata") or []
        expected = np.array([(row or {}).get(EXPECTED, np.nan) for row in told_rows])
        if len(expected) == 0 or np.isnan(expected).all():
            raise fidelity.FidelityError(f"step {rollout_id}: {NAME}: no decided advantage travels with the samples")
        got = np.array([_farthest(row, value) for row, value in zip(rollout_data["advantages"], expected, strict=True)])
        known = ~np.isnan(expected)  # samples of another data source
        fidelity.check(expected[known], got[known], group=f"of step {rollout_id} on this rank", trainer=NAME)


def check_settings(args: Any) -> None:
    """Refuse by name what would change the numbers.

    Args:
        args: slime's.
    Raises:
        FidelityError: the setting, what it has, and the way out.
    """
    estimator = getattr(args, "advantage_estimator", "grpo")
    if estimator not in ESTIMATORS:
        raise _refused("--advantage-estimator", estimator, f"expected one of {', '.join(ESTIMATORS)}")
    if getattr(args, "normalize_advantages", False):
        raise _refused("--normalize-advantages", True, "it whitens over the batch: leave it out")
    if _centres_itself(args) and getattr(args, "grpo_std_normalization", True):
        why = "a division by the standard deviation undoes the redistribution: --disable-grpo-std-normalization"
        raise _refused("grpo_std_normalization", True, why)
    if not getattr(args, "rollout_data_postprocess_path", None):
        raise _refused("--rollout-data-postprocess-path", None, "without `look` nobody looks at the advantages")


def centred_by_group(rewards: Sequence[float], groups: Sequence[Any]) -> list[float]:
    """Subtract each group's own mean, however many samples it has.

    Args:
        rewards: (B,) float.
        groups: (B,) the sample's group, anywhere in the batch.
    Returns:
        (B,) float.
    """
    of_group = defaultdict(list)
    for reward, group in zip(rewards, groups, strict=True):
        of_group[group].append(reward)
    return [r - sum(of_group[g]) / len(of_group[g]) for r, g in zip(rewards, groups, strict=True)]


def _centres_itself(args: Any) -> bool:
    """Whether slime turns rewards into advantages; else `post_process` hands over advantages."""
    return not getattr(args, "custom_reward_post_process_path", None)


def _decided(sample: Any) -> dict[str, Any]:
    told_it = sample.train_metadata or {}
    return told_it if EXPECTED in told_it else {}


def _farthest(advantages_T: Any, expected: float) -> float:
    """Of one row's tokens the advantage farthest from what is expected; a rank may hold none of its tokens."""
    values = np.asarray([float(value) for value in advantages_T])
    if values.size == 0:
        return expected
    off = np.abs(values - expected)
    return float(values[np.isnan(off).argmax() if np.isnan(off).any() else off.argmax()])


def _refused(setting: str, got: object, why: str) -> fidelity.FidelityError:
    return fidelity.FidelityError(f"slime: got {setting}={got!r}: {why}")
