"""Which of verl's settings change decided advantages. Core: each is refused by name, with the way out."""

from collections.abc import Mapping
from typing import Any

from training_bridge.adapters.fidelity import FidelityError

LOSS_MODULE = "training_bridge.adapters.verl_loss"
OTHERS = {
    "grpo_vectorized": "it divides by the standard deviation whatever norm_adv_by_std_in_grpo says",
    "rloo": "its baseline leaves the rollout out (leave-one-out)",
    "rloo_vectorized": "its baseline leaves the rollout out (leave-one-out)",
    "gae": "a critic would replace the group's mean",
}
WAY_OUT = "algorithm.adv_estimator=grpo with algorithm.norm_adv_by_std_in_grpo=False, or algorithm.adv_estimator=gagar"


def check_settings(config: Mapping[str, Any]) -> None:
    """Look through verl's configuration before the first batch.

    Args:
        config: the trainer's, with `algorithm`, `reward` and `actor_rollout_ref`.
    Raises:
        FidelityError: names what would change the numbers, or that nothing would look at them in the loss.
    """
    algorithm, reward = config["algorithm"], config["reward"]["reward_model"]
    estimator = str(algorithm["adv_estimator"])
    if estimator not in ("grpo", "gagar"):
        why = OTHERS.get(estimator, "it is not known to keep the advantages")
        raise _refused("algorithm.adv_estimator", estimator, f"{why}: {WAY_OUT}")
    if estimator == "grpo" and algorithm.get("norm_adv_by_std_in_grpo", True):
        why = "a division by the standard deviation undoes the redistribution"
        raise _refused("algorithm.norm_adv_by_std_in_grpo", True, f"{why}: {WAY_OUT}")
    if algorithm.get("use_kl_in_reward", False):
        why = "a penalty in the reward moves the group's mean: take actor.use_kl_loss=True"
        raise _refused("algorithm.use_kl_in_reward", True, why)
    if reward.get("enable", False) and not reward.get("enable_resource_pool", False):
        why = "a colocated reward model writes over the decided rewards: set reward.reward_model.enable_resource_pool"
        raise _refused("reward.reward_model.enable", True, why)
    loaded = config["actor_rollout_ref"]["model"].get("external_lib")
    if LOSS_MODULE not in ([loaded] if isinstance(loaded, str) else loaded or []):
        why = f"without {LOSS_MODULE} nobody looks at the advantages in the loss"
        raise _refused("actor_rollout_ref.model.external_lib", loaded, why)


def _refused(setting: str, got: object, why: str) -> FidelityError:
    return FidelityError(f"verl: got {setting}={got!r}: {why}")
