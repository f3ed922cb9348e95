"""The same update as rewards, for trainers that take no advantages (App. A.3).

Only where the trainer centres by the mean, divides by no deviation and clips nothing.
"""

import numpy as np

from training_bridge.redistribution.masks import keep
from training_bridge.redistribution.outcome import mean_rewards


def equivalent_rewards(weighted_BG: np.ndarray, rewards_BG: np.ndarray, valid_BG: np.ndarray) -> np.ndarray:
    """Turn advantages before centring into rewards whose centring gives the training advantages. Eq. (9, 10).

    Args:
        weighted_BG: (..., G) float, reward units; B of Eq. (7) or (8), 0 on masked rows.
        rewards_BG: (..., G) float, reward units; effective rewards, not read where a row is masked.
        valid_BG: (..., G) bool.
    Returns:
        (..., G) float, reward units; B + mean(r), may exceed 1, 0 on masked rows. Outcome advantages
        give the rewards themselves.
    Raises:
        ValueError: shapes differ or the mask is not bool.
    """
    return keep(weighted_BG + mean_rewards(rewards_BG, valid_BG), valid_BG)
