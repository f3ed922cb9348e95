"""Outcome advantages: rewards centred over the valid rows of the group (Sec. 3.1)."""

import numpy as np

from training_bridge.redistribution.masks import as_floats, check_masks, group_sizes, group_sums, keep_valid


def mean_rewards(rewards_BG: np.ndarray, valid_BG: np.ndarray) -> np.ndarray:
    """Average the rewards of the valid rows.

    Args:
        rewards_BG: (..., G) float, reward units; not read where a row is masked.
        valid_BG: (..., G) bool.
    Returns:
        (..., 1) float, reward units. No valid row: 0.
    Raises:
        ValueError: shapes differ or the mask is not bool.
    """
    rewards_BG = as_floats(rewards_BG)
    check_masks(rewards_BG, valid_BG)
    return _means(keep_valid(rewards_BG, valid_BG), valid_BG)


def outcome_advantages(rewards_BG: np.ndarray, valid_BG: np.ndarray) -> np.ndarray:
    """Centre the rewards over the valid rows, A = R - mean(R); no division by a deviation.

    Args:
        rewards_BG: (..., G) float, reward units; effective rewards, not read where a row is masked.
        valid_BG: (..., G) bool.
    Returns:
        (..., G) float, reward units; 0 on masked rows. One valid row or equal rewards: all 0.
    Raises:
        ValueError: shapes differ or the mask is not bool.
    """
    rewards_BG = as_floats(rewards_BG)
    check_masks(rewards_BG, valid_BG)
    return centred(keep_valid(rewards_BG, valid_BG), valid_BG)


def mixed(passing_BG: np.ndarray, valid_BG: np.ndarray) -> np.ndarray:
    """Say which groups dynamic sampling keeps: 0 < mean(R) < 1 over the binary outcomes.

    Args:
        passing_BG: (..., G) bool, effective outcomes.
        valid_BG: (..., G) bool.
    Returns:
        (...,) bool. One valid row or none: False.
    """
    return (passing_BG & valid_BG).any(-1) & (~passing_BG & valid_BG).any(-1)


def centred(values_BG: np.ndarray, valid_BG: np.ndarray) -> np.ndarray:
    """Subtract the mean over the valid rows from values that are 0 on masked ones.

    Args:
        values_BG: (..., G) float, reward units; 0 on masked rows.
        valid_BG: (..., G) bool.
    Returns:
        (..., G) float, reward units; 0 on masked rows, sum 0.
    """
    return keep_valid(values_BG - _means(values_BG, valid_BG), valid_BG)


def _means(kept_BG: np.ndarray, valid_BG: np.ndarray) -> np.ndarray:
    return group_sums(kept_BG) / np.maximum(group_sizes(valid_BG, kept_BG), 1)
