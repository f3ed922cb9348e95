"""verl's settings: what changes decided advantages is refused by name."""

import copy

import pytest

from training_bridge.adapters.fidelity import FidelityError
from training_bridge.adapters.verl_settings import check_settings

GOOD = {
    "algorithm": {"adv_estimator": "grpo", "norm_adv_by_std_in_grpo": False, "use_kl_in_reward": False},
    "reward": {"reward_model": {"enable": False}},
    "actor_rollout_ref": {"model": {"external_lib": "training_bridge.adapters.verl_loss"}},
}


def with_(path: str, value) -> dict:
    config = copy.deepcopy(GOOD)
    *folders, name = path.split(".")
    here = config
    for folder in folders:
        here = here[folder]
    here[name] = value
    return config


def test_grpo_without_std_and_our_estimator_are_taken():
    check_settings(GOOD)
    check_settings(with_("algorithm.adv_estimator", "gagar"))
    check_settings(with_("actor_rollout_ref.model.external_lib", ["mine", "training_bridge.adapters.verl_loss"]))
    check_settings(with_("reward.reward_model", {"enable": True, "enable_resource_pool": True}))


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("algorithm.norm_adv_by_std_in_grpo", True, "norm_adv_by_std_in_grpo=True: a division"),
        ("algorithm.adv_estimator", "grpo_vectorized", "whatever norm_adv_by_std_in_grpo says"),
        ("algorithm.adv_estimator", "rloo", "leave-one-out"),
        ("algorithm.adv_estimator", "rloo_vectorized", "leave-one-out"),
        ("algorithm.adv_estimator", "gae", "critic"),
        ("algorithm.adv_estimator", "opo", "adv_estimator='opo'"),
        ("algorithm.use_kl_in_reward", True, "use_kl_in_reward=True"),
        ("reward.reward_model.enable", True, "enable_resource_pool"),
        ("actor_rollout_ref.model.external_lib", None, "external_lib=None"),
    ],
)
def test_what_changes_the_numbers_is_refused_by_name_with_the_way_out(path, value, words):
    with pytest.raises(FidelityError, match=words):
        check_settings(with_(path, value))


def test_verls_defaults_are_refused():
    config = with_("algorithm", {"adv_estimator": "grpo"})
    with pytest.raises(FidelityError, match="norm_adv_by_std_in_grpo"):
        check_settings(config)
