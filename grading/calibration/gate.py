"""Does one order of factors agree better with people than another, on groups that nothing was fitted to? Core."""

from dataclasses import dataclass

import numpy as np

from grading.calibration.estimate import Estimate
from grading.calibration.intervals import estimate, ratio

GROUPS, PAIRS = 30, 150
TIE = 1e-12  # of factors
CHECKS = ("groups", "pairs", "gain")


@dataclass(frozen=True)
class Decided:
    """Pairs that a person decided, ties left out.

    verdict_P: (P,) int, row of the verdict. one_P, other_P: (P,) int, columns; `one` stands first. group_P: (P,) int.
    """

    verdict_P: np.ndarray
    one_P: np.ndarray
    other_P: np.ndarray
    group_P: np.ndarray


@dataclass(frozen=True)
class Looked:
    """What a gate saw. `passed` only if there is enough of it and the interval of the gain lies above 0."""

    groups: int
    pairs: int
    old: Estimate
    new: Estimate
    gain: Estimate

    @property
    def checks(self) -> dict[str, bool]:
        above = self.gain.low is not None and self.gain.low > 0
        return {"groups": self.groups >= GROUPS, "pairs": self.pairs >= PAIRS, "gain": above}

    @property
    def passed(self) -> bool:
        return all(self.checks.values())


def credit(decided: Decided, factor_BG: np.ndarray) -> np.ndarray:
    """Score each pair: 1 where the order of factors is the person's, 1/2 where the factors tie, else 0.

    Args:
        decided: the pairs.
        factor_BG: (B, G) float, no unit.
    Returns:
        (P,) float.
    """
    one_P = factor_BG[decided.verdict_P, decided.one_P]
    other_P = factor_BG[decided.verdict_P, decided.other_P]
    return np.where(np.abs(one_P - other_P) <= TIE, 0.5, (one_P > other_P).astype(float))


def look(decided: Decided, old_BG: np.ndarray, new_BG: np.ndarray) -> Looked:
    """Compare two sets of factors over the same pairs; whole groups are resampled.

    Args:
        decided: the pairs.
        old_BG, new_BG: (B, G) float, factors of the same candidates.
    Returns:
        Pairwise accuracies and their difference. No pair: undefined.
    """
    return looked(decided.group_P, credit(decided, old_BG), credit(decided, new_BG))


def looked(group_P: np.ndarray, old_P: np.ndarray, new_P: np.ndarray) -> Looked:
    """As `look`, from (P,) credits of the same pairs; two graders have verdicts of their own."""
    names, group_P = np.unique(group_P, return_inverse=True)
    count_G = np.bincount(group_P, minlength=len(names)).astype(float)

    def share(of_P: np.ndarray, *, is_share: bool) -> Estimate:
        sums_GM = np.column_stack([np.bincount(group_P, of_P, len(names)), count_G])
        return estimate(sums_GM, ratio, n=len(of_P), undefined="nobody decided a pair", is_share=is_share)

    return Looked(
        groups=len(names),
        pairs=len(group_P),
        old=share(old_P, is_share=True),
        new=share(new_P, is_share=True),
        gain=share(new_P - old_P, is_share=False),
    )
