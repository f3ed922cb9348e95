"""verl, inside its processes: the estimator "gagar", and a look at the advantages in the loss, row by row.

`actor_rollout_ref.model.external_lib=training_bridge.adapters.verl_loss` makes verl import this in every worker.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import torch
from verl.trainer.ppo.core_algos import register_adv_est

from training_bridge.adapters import fidelity

NAME = "verl (norm_adv_by_std_in_grpo, adv_estimator, use_kl_in_reward)"
ESTIMATOR = "gagar"
EXPECTED = "gagar_advantage"  # a field of each row, beside verl's own `advantages`


@register_adv_est(ESTIMATOR)
def rewards_are_advantages(
    token_level_rewards: torch.Tensor, response_mask: torch.Tensor, index: Any = None, config: Any = None, **unused: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """Advantage space: each row's reward is its decided advantage; nothing is centred here.

    Args:
        token_level_rewards: (B, T) float, the advantage on one token, reward units.
        response_mask: (B, T), 1 where the policy wrote.
        index, config: verl's groups and settings, not needed.
    Returns:
        Advantages and returns, (B, T) each.
    """
    advantages = token_level_rewards.sum(-1, keepdim=True) * response_mask
    return advantages, advantages


def in_each_row(advantages: torch.Tensor, mask: torch.Tensor, expected_B: np.ndarray) -> np.ndarray:
    """Read one number a row from (B, T) advantages: of its trained tokens the one farthest from what is expected.

    Args:
        advantages: (B, T) float, padded or nested.
        mask: (B, T), 1 where the policy wrote, padded or nested.
        expected_B: (B,) decided advantages.
    Returns:
        (B,) float. A row without trained tokens trains nobody: what is expected.
    """
    values_BT, mask_BT = (
        (t.to_padded_tensor(0) if t.is_nested else t).detach().double().cpu().numpy() for t in (advantages, mask)
    )
    off_BT = np.where(mask_BT > 0, np.abs(values_BT - expected_B[:, None]), -1.0)
    at_B = np.where(np.isnan(off_BT).any(-1), np.isnan(off_BT).argmax(-1), off_BT.argmax(-1))
    return np.where((mask_BT > 0).any(-1), values_BT[np.arange(len(expected_B)), at_B], expected_B)


def watched(loss: Callable) -> Callable:
    """Wrap verl's `ppo_loss`, so that it refuses rows whose advantage is not the decided one."""

    @wraps(loss)
    def looked_at(config: Any, model_output: Any, data: Any, dp_group: Any = None):
        if EXPECTED in data.keys():  # noqa: SIM118  a TensorDict has no `in` of its own
            expected_B = _column(data[EXPECTED])
            got_B = in_each_row(data["advantages"], data["response_mask"], expected_B)
            trained_B = _trained(data["response_mask"])  # verl fills up with rows that train nobody
            fidelity.check(expected_B[trained_B], got_B[trained_B], group="of this micro-batch", trainer=NAME)
        return loss(config=config, model_output=model_output, data=data, dp_group=dp_group)

    return looked_at


def _trained(mask: torch.Tensor) -> np.ndarray:
    padded = mask.to_padded_tensor(0) if mask.is_nested else mask
    return (padded > 0).any(-1).cpu().numpy()


def _column(values: torch.Tensor) -> np.ndarray:
    return (values.values() if values.is_nested else values).detach().double().cpu().numpy().reshape(-1)


def watch() -> None:
    """Put the look between verl's engine and its loss; a second call changes nothing."""
    from verl.trainer.distillation import losses
    from verl.workers import engine_workers

    for module in (engine_workers, losses):
        if not hasattr(module.ppo_loss, "__wrapped__"):
            module.ppo_loss = watched(module.ppo_loss)


watch()  # verl imports this module by name and calls nothing in it
