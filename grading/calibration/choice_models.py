"""Choice models by which the fit is checked: Bradley-Terry, Davidson, Rao-Kupper, Plackett-Luce. Core."""

from collections.abc import Sequence
from itertools import permutations
from math import exp, prod, sqrt

import numpy as np
import scipy

LARGEST_BLOCK = 6  # tied items: 720 orders


def bradley_terry(wins_NN: Sequence[Sequence[float]]) -> np.ndarray | None:
    """Strengths theta with P(i beats j) = sigmoid(theta_i - theta_j), centred.

    Args:
        wins_NN: (N, N), wins of the row over the column.
    Returns:
        (N,) floats; None where no finite maximum exists: some items never lose to the others.
    """
    rankings = [((i, j), n) for i, row in enumerate(wins_NN) for j, n in enumerate(row) if n]
    return _strengths([r for r, _ in rankings], np.array([n for _, n in rankings], float), len(wins_NN))


def plackett_luce(rankings: Sequence[Sequence[int]]) -> np.ndarray | None:
    """Strengths by which each ranking picks its best, then the best of the rest; only its own items compete. Centred.

    Args:
        rankings: items, best first, without ties; an item may be missing.
    Returns:
        (N,) floats; None where no finite maximum exists.
    """
    return _strengths(rankings, np.ones(len(rankings)), 1 + max(item for ranking in rankings for item in ranking))


def _strengths(rankings: Sequence[Sequence[int]], times: np.ndarray, n_items: int) -> np.ndarray | None:
    beats_NN = np.zeros((n_items, n_items))
    for ranking in rankings:
        for place, item in enumerate(ranking):
            beats_NN[item, list(ranking[place + 1 :])] = 1
    if scipy.sparse.csgraph.connected_components(beats_NN, directed=True, connection="strong")[0] > 1:
        return None

    def loss(theta_N):
        value, slope_N = 0.0, np.zeros(n_items)
        for ranking, n in zip(rankings, times, strict=True):
            for place in range(len(ranking) - 1):
                rest = list(ranking[place:])
                share = np.exp(theta_N[rest] - theta_N[rest].max())
                value -= n * (theta_N[rest[0]] - theta_N[rest].max() - np.log(share.sum()))
                slope_N[rest] += n * share / share.sum()
                slope_N[rest[0]] -= n
        return value, slope_N

    theta_N = scipy.optimize.minimize(loss, np.zeros(n_items), jac=True, method="BFGS", options={"gtol": 1e-9}).x
    return theta_N - theta_N.mean()


def tied_probability(theta_N: Sequence[float], ranking: Sequence[Sequence[int]]) -> float:
    """P of a ranking with ties under Plackett-Luce: the sum over the orders inside its tied blocks.

    Raises:
        ValueError: a block has more than 6 items.
    """
    if max(map(len, ranking)) > LARGEST_BLOCK:
        raise ValueError(f"a tied block of {max(map(len, ranking))} items, expected at most {LARGEST_BLOCK}")
    total, left = 1.0, [item for block in ranking for item in block]
    for block in ranking:
        rest = sum(exp(theta_N[item]) for item in left)
        orders = 0.0
        for order in permutations(block):
            gone = np.cumsum([0.0, *(exp(theta_N[item]) for item in order[:-1])])
            orders += prod(exp(theta_N[item]) / (rest - before) for item, before in zip(order, gone, strict=True))
        total *= orders
        left = [item for item in left if item not in block]
    return total


def davidson(wins12: float, wins21: float, ties: float) -> dict | None:
    """Two items with ties: the strengths' ratio and nu, by the closed form; None where one of them never wins."""
    if not wins12 or not wins21:
        return None
    ratio, n = wins12 / wins21, wins12 + wins21 + ties
    return {"ratio": ratio, "nu": ties / sqrt(wins12 * wins21), "p_win1": wins12 / n, "p_tie": ties / n}


def rao_kupper(wins12: float, wins21: float, ties: float) -> dict | None:
    """Two items with ties, P(1 before 2) = p1 / (p1 + theta p2): both by the closed form; None as for `davidson`."""
    if not wins12 or not wins21:
        return None
    odds12, odds21 = wins12 / (wins21 + ties), wins21 / (wins12 + ties)
    return {"ratio": sqrt(odds12 / odds21), "theta": 1 / sqrt(odds12 * odds21)}
