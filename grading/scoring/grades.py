"""All that follows from scores, flags and an order, in one call: W, tiers, ranking, factors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from grading.scoring.criteria import Candidate, Rubric, weighted_score
from grading.scoring.factors import factors
from grading.scoring.ranks import Ranking, rank, revised
from grading.scoring.tiers import TIERS


@dataclass(frozen=True)
class Grades:
    """What the rubric makes of a group. All by candidate id, exact."""

    weighted_score: Mapping[str, Fraction]
    tier: Mapping[str, int]
    ranking: Ranking
    factor: Mapping[str, Fraction]


def grade(candidates: Sequence[Candidate], rubric: Rubric, order: object = None) -> Grades:
    """Score, place, rank and weigh the candidates of one group.

    Args:
        candidates: every passing rollout left to rank; no confirmed leak or hack.
        rubric: whose weights, thresholds and constants count.
        order: a revised ranking `{"T1": [[id, ...], ...], ...}`, or None for the order by W.
    Returns:
        The grades. Nobody to rank: empty ones.
    Raises:
        ValueError: an id is there twice, or the order breaks a rule of `ranks.revised`.
    """
    by_score = rank(candidates, rubric)
    ranking = by_score if order is None else revised(by_score, order)
    return Grades(
        weighted_score={c.id: weighted_score(c.scores, rubric) for c in candidates},
        tier={id: t for t in TIERS for tied in ranking[t] for id in tied},
        ranking=ranking,
        factor=factors(ranking, rubric),
    )
