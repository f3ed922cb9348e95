"""Every knob of a rubric turned a little, one at a time: what to try, so that its effect can be measured. Core."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from grading.calibration.replay import Scored
from grading.scoring.criteria import CONSTANTS, CRITERIA, HIGHEST, LOWEST, THRESHOLDS, Rubric

STEP = Decimal("0.05")  # of a weight and of a constant
CAP_STEP = Decimal("0.25")
NOISE = 0.1  # share of the scores that move by one
SCORE_NOISE = "score noise"


@dataclass(frozen=True)
class Turn:
    """One knob at another value."""

    knob: str
    kind: str  # weight, threshold, constant, cap
    now: str
    tried: str
    rubric: Rubric


def turns(rubric: Rubric) -> Iterator[Turn]:
    """Turn each knob down and up by one step, where the rules of publishing allow it.

    A weight moves by 0.05 and the others give or take it in proportion; a threshold by 1; a constant by 0.05, stopped
    by its neighbours; the cap by 0.25, and off.

    Args:
        rubric: the version in force.
    Returns:
        The turns, by knob.
    """
    for c, criterion in enumerate(CRITERIA):
        for value in (rubric.weights[c] - STEP, rubric.weights[c] + STEP):
            if 0 <= value <= 1 and rubric.weights[c] < 1:
                weights = _reweighted(rubric.weights, c, value)
                yield Turn(criterion, "weight", str(rubric.weights[c]), str(value), replace(rubric, weights=weights))
    for name in THRESHOLDS:
        now = getattr(rubric, name)
        for value in (now - 1, now + 1):
            if 0 <= value <= HIGHEST:
                yield Turn(name, "threshold", str(now), str(value), replace(rubric, **{name: value}))
    for name in CONSTANTS.values():
        now = getattr(rubric, name)
        for value in _constant_steps(rubric, name):
            yield Turn(name, "constant", str(now), str(value), replace(rubric, **{name: value}))
    yield from _cap_turns(rubric)


def _reweighted(weights: tuple[Decimal, ...], c: int, value: Decimal) -> tuple[Decimal, ...]:
    """The others share the rest as they did; twelve places, and the largest of them takes what rounding leaves."""
    rest = 1 - weights[c]
    places = Decimal(1).scaleb(-12)
    made = [value if i == c else w and (w / rest * (1 - value)).quantize(places) for i, w in enumerate(weights)]
    largest = max((i for i in range(len(made)) if i != c), key=lambda i: made[i])
    made[largest] += 1 - sum(made)
    return tuple(made)


def _constant_steps(rubric: Rubric, name: str) -> list[Decimal]:
    order = ("f_low", "f_min", "f_max", "f_runner")
    at, now = order.index(name), getattr(rubric, name)
    least = getattr(rubric, order[at - 1]) if at else Decimal("0.01")
    most = getattr(rubric, order[at + 1]) if at + 1 < len(order) else Decimal(1)
    return [value for value in (max(now - STEP, least), min(now + STEP, most)) if value != now]


def _cap_turns(rubric: Rubric) -> Iterator[Turn]:
    now = rubric.lambda_max
    values = [Decimal("1.5")] if now is None else [max(now - CAP_STEP, Decimal(1)), now + CAP_STEP, None]
    for value in values:
        if value != now:
            words = ["exact" if one is None else str(one) for one in (now, value)]
            yield Turn("lambda_max", "cap", *words, replace(rubric, lambda_max=value))


def with_noise(scored: Scored, *, share: float = NOISE, seed: int = 0) -> Scored:
    """Move a share of the scores by one point, as a grader that reads twice might; revisions do not survive it.

    Args:
        scored: the verdicts.
        share: of the scores, 0 to 1.
        seed: of the draw.
    Returns:
        The same candidates with other scores, inside 1 to 5.
    """
    rng = np.random.default_rng(seed)
    shape = scored.scores_BGC.shape
    step_BGC = np.where(rng.random(shape) < share, rng.choice(np.array([-1, 1], np.int8), shape), np.int8(0))
    return replace(scored, scores_BGC=np.clip(scored.scores_BGC + step_BGC, LOWEST, HIGHEST).astype(np.int8))
