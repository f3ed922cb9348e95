"""Simulated reviewers: they order candidates by weights of their own, with noise, and tie what is close."""

import numpy as np

from grading.calibration.fit_weights import PairData

BETA, NU = 2.0, 0.3


def simulated(
    rng: np.random.Generator, true_C: np.ndarray, *, groups: int, candidates: int = 5, reviewers: int = 1
) -> PairData:
    """Pairs of groups whose scores differ at random; a reviewer a group, in turn."""
    parts = []
    for group in range(groups):
        scores_GC = rng.integers(2, 6, (candidates, len(true_C)))
        one, other = np.triu_indices(candidates, 1)
        difference_PC = (scores_GC[one] - scores_GC[other]).astype(float)
        s_P = BETA * difference_PC @ true_C
        z_P = np.exp(s_P / 2) + np.exp(-s_P / 2) + NU
        draw_P = rng.random(len(s_P))
        first_P = np.where(draw_P < np.exp(s_P / 2) / z_P, 1.0, np.where(draw_P < 1 - NU / z_P, 0.0, 0.5))
        parts.append((difference_PC, first_P, np.full(len(s_P), group), np.full(len(s_P), group % reviewers)))
    return PairData(*(np.concatenate(column) for column in zip(*parts, strict=True)))
