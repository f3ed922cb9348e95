"""Tier thresholds from people's tiers: which of the near ones agree best, by quadratic weighted kappa. Core."""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from grading.calibration.estimate import Estimate
from grading.calibration.intervals import estimate
from grading.calibration.kappa import cohen
from grading.calibration.replay import Scored, tiers
from grading.scoring.criteria import HIGHEST, THRESHOLDS, Rubric

TIERS = (1, 2, 3)


@dataclass(frozen=True)
class Thresholds:
    """The best of the near thresholds. `gain` is of kappa over those in force, groups resampled whole."""

    rubric: Rubric
    now: Estimate
    best: Estimate
    gain: Estimate


def near(rubric: Rubric) -> list[Rubric]:
    """The rubric with each threshold as it is, one lower and one higher; itself first, so that equals keep it."""
    choices = [[v for v in (getattr(rubric, name) + d for d in (0, -1, 1)) if 0 <= v <= HIGHEST] for name in THRESHOLDS]
    return [replace(rubric, **dict(zip(THRESHOLDS, values, strict=True))) for values in product(*choices)]


def fit_thresholds(scored: Scored, said_BG: np.ndarray, group_B: np.ndarray, rubric: Rubric) -> Thresholds:
    """Find the thresholds whose tiers agree best with people's.

    Args:
        scored: verdicts, one row a person's answer.
        said_BG: (B, G) int, the person's tier; 0 where none was given.
        group_B: (B,) int, the group of each row.
        rubric: the version in force.
    Returns:
        The best of the near ones; the gain is in sample, so a gate must still say whether it is one.
    """
    names, at_B = np.unique(group_B, return_inverse=True)
    tables = [(one, _tables(tiers(scored, one), said_BG, at_B, len(names))) for one in near(rubric)]
    kappas = [float(cohen(table_GKK.sum(0))) for _, table_GKK in tables]
    best = int(np.nanargmax(kappas)) if not np.isnan(kappas).all() else 0
    n = int(tables[0][1].sum())

    def kappa(of_M):
        return cohen(of_M[..., :9].reshape(*of_M.shape[:-1], 3, 3))

    def gain(of_M):
        return kappa(of_M[..., 9:]) - kappa(of_M[..., :9])

    flat = [tables[at][1].reshape(-1, 9) for at in (0, best)]
    said = {"n": n, "undefined": "people or rubric put everybody into one tier"}
    return Thresholds(
        rubric=tables[best][0],
        now=estimate(flat[0], kappa, **said),
        best=estimate(flat[1], kappa, **said),
        gain=estimate(np.hstack(flat), gain, **said),
    )


def _tables(tier_BG: np.ndarray, said_BG: np.ndarray, at_B: np.ndarray, groups: int) -> np.ndarray:
    """(G, 3, 3) counts: people's tier by the rubric's."""
    b, g = np.nonzero((said_BG > 0) & (tier_BG > 0))
    table_GKK = np.zeros((groups, len(TIERS), len(TIERS)))
    np.add.at(table_GKK, (at_B[b], said_BG[b, g] - 1, tier_BG[b, g] - 1), 1)
    return table_GKK
