"""How far two rankings of the same candidates agree, ties included. Core.

An order is a sequence of tied groups, best first; a ranking is an order for each tier. Only candidates of both count.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt

Order = Sequence[Sequence[str]]
Ranking = Mapping[str, Order]  # "T1", "T2", "T3" -> tied groups of external ids
TIERS = ("T1", "T2", "T3")


@dataclass(frozen=True)
class Pairs:
    """Pairs of candidates by how two orders place them."""

    same: int  # both put the same one first
    opposite: int
    tied_one: int  # tied in the first order only
    tied_other: int
    tied_both: int

    @property
    def tau_b(self) -> float | None:
        """Kendall's tau-b; None where an order ties everything, or there is no pair."""
        ordered = self.same + self.opposite
        scale = sqrt((ordered + self.tied_one) * (ordered + self.tied_other))
        return (self.same - self.opposite) / scale if scale else None

    @property
    def accuracy(self) -> float | None:
        """Share of the pairs that the first order decides which the other decides alike; a tie of the other is half."""
        decided = self.same + self.opposite + self.tied_other
        return (self.same + self.tied_other / 2) / decided if decided else None

    @property
    def n(self) -> int:
        return self.same + self.opposite + self.tied_one + self.tied_other + self.tied_both

    @property
    def three_way(self) -> float | None:
        """Share of all pairs that both call the same, a tie being an answer like the others."""
        return (self.same + self.tied_both) / self.n if self.n else None


def flat(ranking: Ranking) -> list[Sequence[str]]:
    """The tied groups of all tiers, best first."""
    return [tied for tier in TIERS for tied in ranking.get(tier, ())]


def pairs(one: Order, other: Order) -> Pairs:
    """Count the pairs of the candidates that both orders have.

    Args:
        one: tied groups of external ids, best first.
        other: the same.
    Returns:
        The counts; all 0 with fewer than two common candidates.
    """
    place_one, place_other = places(one), places(other)
    counts = dict.fromkeys(("same", "opposite", "tied_one", "tied_other", "tied_both"), 0)
    for a, b in combinations(sorted(place_one.keys() & place_other.keys()), 2):
        by_one, by_other = place_one[a] - place_one[b], place_other[a] - place_other[b]
        if by_one and by_other:
            counts["same" if (by_one > 0) == (by_other > 0) else "opposite"] += 1
        else:
            counts["tied_both" if by_one == by_other else "tied_other" if by_one else "tied_one"] += 1
    return Pairs(**counts)


def places(order: Order) -> dict[str, int]:
    """External id -> place of its tied group."""
    return {id: place for place, tied in enumerate(order) for id in tied}


def is_same(one: Ranking, other: Ranking) -> bool:
    """Whether both rankings put the common candidates into the same tiers in the same order, ties included."""
    return _common(one, other) == _common(other, one)


def _common(ranking: Ranking, other: Ranking) -> list[list[set[str]]]:
    ids = places(flat(other)).keys()
    return [[left for tied in ranking.get(tier, ()) if (left := ids & set(tied))] for tier in TIERS]
