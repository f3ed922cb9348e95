"""Ranking inside the tiers: by W, equal W tied; and what a grader's revision may change."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby

from grading.scoring.criteria import Candidate, Rubric, short, weighted_score
from grading.scoring.tiers import TIER_NAMES, TIERS, tier

# tier -> tied groups, best first -> ids
Ranking = Mapping[int, tuple[tuple[str, ...], ...]]


def rank(candidates: Sequence[Candidate], rubric: Rubric) -> Ranking:
    """Rank each tier by W, best first; exactly equal W is one tied group.

    Args:
        candidates: every passing rollout that is left to rank, no id twice.
        rubric: whose weights and thresholds count.
    Returns:
        All three tiers; ids inside a tied group in input order. Nobody to rank: three empty tiers.
    Raises:
        ValueError: an id is there twice.
    """
    check_ids(c.id for c in candidates)
    ranking = {}
    for here in TIERS:
        scored = [(weighted_score(c.scores, rubric), c.id) for c in candidates if tier(c, rubric) == here]
        scored.sort(key=lambda pair: -pair[0])  # stable: a tie keeps the input order
        tied_groups = groupby(scored, key=lambda pair: pair[0])
        ranking[here] = tuple(tuple(id for _, id in tied) for _, tied in tied_groups)
    return ranking


def revised(ranking: Ranking, order: object) -> Ranking:
    """Take a revised order in the place of the W order, if it stays inside the tiers.

    Args:
        ranking: the W order, from `rank`.
        order: `{"T1": [[id, ...], ...], "T2": ..., "T3": ...}`, tied groups best first.
    Returns:
        The order, in the shape of a ranking.
    Raises:
        ValueError: a candidate left its tier, is missing, is there twice or is a stranger; a tied
            group is empty; or it has another shape.
    """
    tier_of = {id: here for here in TIERS for tied in ranking[here] for id in tied}
    expected = list(tier_of)
    ordered = read_order(order)
    check_ids((id for here in TIERS for tied in ordered[here] for id in tied), "order")
    for here in TIERS:
        for id in (id for tied in ordered[here] for id in tied):
            if id not in tier_of:
                raise ValueError(f"order ranks {short(id)}, who is not to be ranked; expected {short(expected)}")
            if tier_of[id] != here:
                names = f"{TIER_NAMES[here]}, expected {TIER_NAMES[tier_of[id]]}"
                raise ValueError(f"order puts {id!r} into {names}: change a score or a flag to change the tier")
            del tier_of[id]
    if tier_of:
        raise ValueError(f"order leaves out {short(list(tier_of))}, expected every candidate exactly once")
    return ordered


def read_order(order: object) -> Ranking:
    """Read `{"T1": [[id, ...], ...], ...}`; a tier that is not named is empty.

    Raises:
        ValueError: it has another shape, an unknown tier, or an empty tied group.
    """
    if not isinstance(order, Mapping):
        raise ValueError(f"order is {short(order)}, expected an object with T1, T2 and T3")
    unknown = [name for name in order if name not in TIER_NAMES.values()]
    if unknown:
        raise ValueError(f"order has the tiers {short(unknown)}, expected T1, T2 and T3")
    return {here: tuple(_tied_groups(name, order.get(name, []))) for here, name in TIER_NAMES.items()}


def _tied_groups(name: str, groups: object) -> Iterable[tuple[str, ...]]:
    if not isinstance(groups, list | tuple):
        raise ValueError(f"order {name} is {short(groups)}, expected a list of tied groups")
    for tied in groups:
        if not isinstance(tied, list | tuple) or not tied or not all(isinstance(id, str) for id in tied):
            raise ValueError(f"order {name} has the tied group {short(tied)}, expected a list of at least one id")
        yield tuple(tied)


def moved_unnamed(ranking: Ranking, order: Ranking, named: Collection[str]) -> list[str]:
    """Find candidates that an order moves although no revision names them.

    Args:
        ranking: the W order.
        order: the revised order of the same candidates, from `revised`.
        named: ids that a revision names, each with its reason and citation.
    Returns:
        Ids that changed sides (above, tied, below) with another unnamed one, tier by tier. Empty:
        without the named ones both orders are the same.
    """
    before, after = _places(ranking), _places(order)
    moved = []
    for here in TIERS:
        unnamed = [id for tied in order[here] for id in tied if id not in named]
        sides = [[_side(before, a, b) == _side(after, a, b) for b in unnamed] for a in unnamed]
        moved += [id for id, kept in zip(unnamed, sides, strict=True) if not all(kept)]
    return moved


def _places(ranking: Ranking) -> dict[str, int]:
    return {id: k for here in TIERS for k, tied in enumerate(ranking[here]) for id in tied}


def _side(place: Mapping[str, int], a: str, b: str) -> int:
    return (place[a] > place[b]) - (place[a] < place[b])


def check_ids(ids: Iterable[str], what: str = "the group") -> None:
    """Refuse an id that is there twice.

    Raises:
        ValueError: naming the ids.
    """
    twice = [id for id, count in Counter(ids).items() if count > 1]
    if twice:
        raise ValueError(f"{what} has {short(twice)} more than once, expected each id once")
