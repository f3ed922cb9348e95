"""Controls of the ablation: the same factors on the wrong passes. They must not win, or the ranking did nothing."""

from collections.abc import Sequence
from hashlib import sha256

import numpy as np

from training_bridge.redistribution.masks import as_floats, check_factors


def shuffled_factors(factors_G: np.ndarray, passing_G: np.ndarray, ids: Sequence[str]) -> np.ndarray:
    """Deal the passes' factors out among them at random. The ids are the seed, so a replay deals the same.

    Args:
        factors_G: (G,) float in (0, 1], no unit; read where a rollout passes.
        passing_G: (G,) bool.
        ids: one a row, all different; which of them pass changes nothing in how two passes are drawn.
    Returns:
        (G,) float, no unit; NaN where no rollout passes. Each factor is used once, so lambda and the cap are those of
        redistribution for binary rewards; ties may break. The order of the rows does not matter.
    Raises:
        ValueError: a factor is outside (0, 1].
    """
    factors_G = as_floats(factors_G)
    check_factors(factors_G, passing_G)
    seed = "\n".join(sorted(ids))
    givers, takers = (sorted(np.flatnonzero(passing_G), key=lambda i: _draw(seed, side, ids[i])) for side in ("f", "t"))
    dealt_G = np.full(len(factors_G), np.nan)
    dealt_G[takers] = factors_G[givers]
    return dealt_G


def inverted_factors(factors_G: np.ndarray, passing_G: np.ndarray) -> np.ndarray:
    """Give the best pass the factor of the worst, the second that of the second worst, and so on.

    Args:
        factors_G, passing_G: as for `shuffled_factors`.
    Returns:
        (G,) float, no unit; NaN where no rollout passes. Equal factors stay equal: they get the mean of what their
        places get, so the sum is kept, and with it lambda and the cap of redistribution for binary rewards.
    Raises:
        ValueError: a factor is outside (0, 1].
    """
    factors_G = as_floats(factors_G)
    check_factors(factors_G, passing_G)
    inverted_G = np.full(len(factors_G), np.nan)
    values, place_P, counts = np.unique(factors_G[passing_G], return_inverse=True, return_counts=True)
    if len(values):
        falling_P = np.repeat(values, counts)[::-1]
        starts = np.concatenate([[0], counts[:-1].cumsum()])
        inverted_G[passing_G] = (np.add.reduceat(falling_P, starts) / counts)[place_P]
    return inverted_G


def _draw(seed: str, side: str, id: str) -> bytes:
    """A hash, not a generator: its order is the same under every version of every library."""
    return sha256(f"{side}\n{id}\n{seed}".encode()).digest()
