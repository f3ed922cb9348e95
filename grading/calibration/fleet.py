"""How often the grader is right over all graded groups, from the few that people were drawn for. Core.

theta = E[credit] / E[decided] over pairs people would decide; a group is one observation A = f + xi / (pi r) (a - f):
f is the credit its W differences promise, xi whether it was drawn and answered, pi its stored probability of being
drawn, r that of an answer, as the easy is answered first. Unbiased if f or r is right.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
import scipy

from grading.calibration.curves import Steps, isotonic
from grading.calibration.estimate import Estimate
from grading.calibration.intervals import CONFIDENCE, wilson
from grading.calibration.prediction import clipped

FOLDS = 5
LEAST_RESPONSE = 0.05  # of a modelled r: one answer must not speak for more than twenty groups
RIDGE = 1.0  # on standardised features: few answers say little about who answers
FEW = "fewer than two drawn groups with decided pairs are answered"


@dataclass(frozen=True)
class Frame:
    """All groups that could have been drawn, and the pairs of their candidates, flattened."""

    probability_G: np.ndarray  # of being drawn, in (0, 1]
    drawn_G: np.ndarray  # bool
    answered_G: np.ndarray  # bool, only of drawn ones
    difficulty_GD: np.ndarray  # what is known of every group before anybody answers
    group_P: np.ndarray  # int, the pair's group
    apart_P: np.ndarray  # |W of the one - W of the other|
    tied_P: np.ndarray  # bool, the grader ties them
    credit_P: np.ndarray  # 1 as the grader, 0 against it, 1/2 its tie; 0 undecided; mean over people; read if answered
    decided_P: np.ndarray  # share of people who decide the pair; read if answered

    def __post_init__(self):
        p_G = self.probability_G
        if len(p_G) and not ((p_G > 0) & (p_G <= 1)).all():
            raise ValueError(f"probabilities from {p_G.min()} to {p_G.max()}, expected above 0, at most 1")
        if (self.answered_G & ~self.drawn_G).any():
            raise ValueError("a group is answered without having been drawn: only assigned reviews count")

    def sums(self, value_P: np.ndarray) -> np.ndarray:
        """(G,) sums of a value over each group's pairs."""
        return np.bincount(self.group_P, value_P, minlength=len(self.probability_G))


@dataclass(frozen=True)
class Fleet:
    naive: Estimate  # what came in, as it came
    weighted: Estimate  # by 1 / (pi r)
    powered: Estimate  # with predictions for all groups: the one to report
    response_G: np.ndarray
    effective: float  # as many equal weights would say as much


def fleet(frame: Frame, *, seed: int = 0) -> Fleet:
    """Estimate the accuracy over the frame three ways.

    Args:
        frame: at least one group; `seed` splits the answered groups into folds.
    Returns:
        Estimates in [0, 1] with n = answered groups; undefined with a reason where fewer than two say anything.
    """
    answered_G = frame.answered_G
    credit_G, decided_G = frame.sums(frame.credit_P), frame.sums(frame.decided_P)
    response_G = response(frame.drawn_G, answered_G, frame.difficulty_GD)
    n_answered = int((answered_G & (decided_G > 0)).sum())
    if n_answered < 2:
        nothing = Estimate.undefined(FEW, n=n_answered, groups=len(answered_G))
        return Fleet(nothing, nothing, nothing, response_G, 0.0)
    weight_G = np.where(answered_G, 1 / (frame.probability_G * response_G), 0.0)
    promised_G, expected_G = predicted(frame, seed=seed)
    rest_credit_G = weight_G * np.where(answered_G, credit_G - promised_G, 0.0)
    rest_decided_G = weight_G * np.where(answered_G, decided_G - expected_G, 0.0)
    perfect = _perfect(credit_G[answered_G], decided_G[answered_G])
    how = {"n_answered": n_answered, "perfect": perfect}
    return Fleet(
        naive=_ratio(credit_G[answered_G], decided_G[answered_G], **how),
        weighted=_ratio(weight_G * credit_G, weight_G * decided_G, **how),
        powered=_ratio(promised_G + rest_credit_G, expected_G + rest_decided_G, **how),
        response_G=response_G,
        effective=float(weight_G.sum() ** 2 / (weight_G**2).sum()),
    )


def response(drawn_G: np.ndarray, answered_G: np.ndarray, difficulty_GD: np.ndarray) -> np.ndarray:
    """r: the probability that a drawn group is answered, by logistic regression on its difficulty, shrunk to the mean.

    Returns:
        (G,) in [0.05, 1]; 1 throughout where all drawn groups are answered or none was drawn.
    """
    if answered_G[drawn_G].all():
        return np.ones(len(drawn_G))
    spread_D = difficulty_GD[drawn_G].std(0)
    x_GD = (difficulty_GD - difficulty_GD[drawn_G].mean(0)) / np.where(spread_D > 0, spread_D, 1.0)
    x_GD = np.hstack([np.ones((len(x_GD), 1)), np.clip(x_GD, -4, 4)])
    x_ND, y_N = x_GD[drawn_G], answered_G[drawn_G].astype(float)

    def loss(beta_D: np.ndarray) -> tuple[float, np.ndarray]:
        score_N = x_ND @ beta_D
        shrunk_D = np.append(0.0, beta_D[1:])
        value = (np.logaddexp(0, score_N) - y_N * score_N).sum() + RIDGE / 2 * (shrunk_D**2).sum()
        return value, x_ND.T @ (scipy.special.expit(score_N) - y_N) + RIDGE * shrunk_D

    found = scipy.optimize.minimize(loss, np.zeros(x_ND.shape[1]), jac=True, method="L-BFGS-B")
    return np.clip(scipy.special.expit(x_GD @ found.x), LEAST_RESPONSE, 1.0)


def predicted(frame: Frame, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """What each group's W differences promise: credit and decided pairs, learnt from answered groups but never from it.

    Returns:
        (G,) credit and (G,) decided pairs, of groups nobody answered the mean over the folds.
    """
    answered = np.flatnonzero(frame.answered_G)
    folds = np.array_split(np.random.default_rng(seed).permutation(answered), min(FOLDS, len(answered)))
    of_pair = frame.answered_G[frame.group_P]
    credit_G, decided_G = np.zeros((2, len(frame.answered_G)))
    for fold in folds:
        held_out = np.zeros(len(frame.answered_G), bool)
        held_out[fold] = True
        share_P, decides = _learnt(frame, of_pair & ~held_out[frame.group_P])
        promised_G, expected_G = frame.sums(share_P * decides), frame.sums(np.full(len(share_P), decides))
        credit_G[fold], decided_G[fold] = promised_G[fold], expected_G[fold]
        credit_G += np.where(frame.answered_G, 0.0, promised_G / len(folds))
        decided_G += np.where(frame.answered_G, 0.0, expected_G / len(folds))
    return credit_G, decided_G


def _learnt(frame: Frame, from_P: np.ndarray) -> tuple[np.ndarray, float]:
    """P(the grader is right | how far W is apart) of every pair, and the share of pairs that people decide."""
    known = from_P & ~frame.tied_P & (frame.decided_P > 0)
    curve = Steps(np.zeros(1), np.full(1, 0.5))
    if known.any():
        share_P = frame.credit_P[known] / frame.decided_P[known]
        curve = isotonic(frame.apart_P[known], share_P, frame.decided_P[known])
    decides = float(frame.decided_P[from_P].mean()) if from_P.any() else 1.0
    return np.where(frame.tied_P, 0.5, curve.at(frame.apart_P)), decides


def _perfect(credit_N: np.ndarray, decided_N: np.ndarray) -> float | None:
    """1 or 0 where every answered pair is right, or wrong: such answers have no spread of their own."""
    if np.allclose(credit_N, decided_N):
        return 1.0
    return 0.0 if not credit_N.any() else None


def _ratio(credit_N: np.ndarray, decided_N: np.ndarray, *, n_answered: int, perfect: float | None) -> Estimate:
    """sum A / sum D with the error of the ratio by groups; t with the answered groups' freedom, clipped to [0, 1]."""
    n = len(credit_N)
    if decided_N.sum() <= 0:
        return Estimate.undefined("no pair is decided", n=n_answered, groups=n)
    value = float(credit_N.sum() / decided_N.sum())
    if perfect is not None:
        low, high = wilson(perfect * n_answered, n_answered)
        return Estimate(min(max(value, 0.0), 1.0), low, high, n_answered, n, "Wilson over groups: all answers alike")
    error_N = (credit_N - value * decided_N) / decided_N.mean()
    half = float(scipy.stats.t.ppf(0.5 + CONFIDENCE / 2, n_answered - 1) * error_N.std(ddof=1) / sqrt(n))
    low, high, is_clipped = clipped(value - half, value + half)
    return Estimate(min(max(value, 0.0), 1.0), low, high, n_answered, n, is_clipped=is_clipped)
