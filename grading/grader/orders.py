"""One verdict out of several of the same group, each made with the candidates in another order (orders=k). Core.

A score, a flag and a finding need more than half of the orders against a candidate; with two orders both.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations

from grading.grader.shape import (
    EVIDENCE_BELOW,
    FINDING_KINDS,
    CandidateReply,
    Cited,
    Finding,
    GraderReply,
    Revision,
)
from grading.scoring.criteria import CRITERIA, FLAGS
from grading.scoring.ranks import Ranking


def flips(rankings: Sequence[Ranking]) -> float | None:
    """How far the order of presentation decides the order of quality.

    Args:
        rankings: of the same group, one of each order of presentation that gave a valid verdict.
    Returns:
        The share of candidate pairs of which some two rankings say the opposite, tiers included; a tie opposes
        nothing. None for fewer than two rankings; 0 where no two candidates are in two of them.
    """
    if len(rankings) < 2:
        return None
    sides = [_sides(ranking) for ranking in rankings]
    pairs = {pair for one, other in combinations(sides, 2) for pair in one.keys() & other.keys()}
    flipped = {
        pair
        for one, other in combinations(sides, 2)
        for pair in one.keys() & other.keys()
        if one[pair] * other[pair] < 0
    }
    return len(flipped) / len(pairs) if pairs else 0.0


def closest(rankings: Sequence[Ranking]) -> int:
    """Returns: the index of the ranking that the others oppose least; the first of equals."""
    return min(range(len(rankings)), key=lambda n: sum(flips([rankings[n], one]) or 0.0 for one in rankings))


def merge(replies: Sequence[GraderReply]) -> GraderReply:
    """Merge valid replies to one group.

    Scores are medians, of an even number the upper one: a candidate is low only where more than half say so. What is
    cited survives with what it is cited for, from all who say it. An order of its own, with its revisions, survives
    only if every reply has the same one; else weighted scores order.

    Args:
        replies: at least one, each valid by itself, about the same candidates.
    Returns:
        The merged reply, without notes. It may break a rule that each reply kept (twins tied by their sums alone may
        come apart): check it, and take the `closest` then.
    """
    findings = tuple(_findings(replies))
    gone = {finding.id for finding in findings}
    ids = dict.fromkeys(entry.id for reply in replies for entry in reply.candidates)
    said = {id: [e for reply in replies for e in reply.candidates if e.id == id] for id in ids if id not in gone}
    order, revisions = _order(replies)
    return GraderReply(tuple(_entry(id, entries) for id, entries in said.items()), order, revisions, findings)


def _entry(id: str, entries: Sequence[CandidateReply]) -> CandidateReply:
    scores = {c: sorted(entry.scores[c] for entry in entries)[len(entries) // 2] for c in CRITERIA}
    flags = {flag: 2 * sum(bool(e.flags.get(flag)) for e in entries) > len(entries) for flag in FLAGS}
    reasons: dict[str, str] = {}
    for entry in entries:
        for about, words in entry.reasons.items():
            if entry.scores.get(about) == scores.get(about) and _agrees(about, entry, scores, flags):
                reasons.setdefault(about, words)
    cited = [c for entry in entries for c in entry.citations if _agrees(c.about, entry, scores, flags)]
    return CandidateReply(id, scores, reasons, flags, _once(cited))


def _agrees(about: str, entry: CandidateReply, scores: dict[str, int], flags: dict[str, bool]) -> bool:
    """Whether what this order says of a claim is what the orders say together: low, or not low; raised, or not."""
    if about in scores:
        return (entry.scores[about] < EVIDENCE_BELOW) == (scores[about] < EVIDENCE_BELOW)
    if about in flags:
        return flags[about] and bool(entry.flags.get(about))
    return about not in FINDING_KINDS


def _findings(replies: Sequence[GraderReply]) -> Iterable[Finding]:
    said: dict[tuple[str, str], list[Finding]] = {}
    for reply in replies:
        for key in dict.fromkeys((f.id, f.kind) for f in reply.findings):
            alike = [f for f in reply.findings if (f.id, f.kind) == key]
            citations = _once(c for f in alike for c in f.citations)
            said.setdefault(key, []).append(Finding(*key, alike[0].reason, citations))
    for (id, kind), found in said.items():
        if 2 * len(found) > len(replies):
            yield Finding(id, kind, found[0].reason, _once(c for f in found for c in f.citations))


def _order(replies: Sequence[GraderReply]) -> tuple[object, tuple[Revision, ...]]:
    orders = [_as_sets(reply) for reply in replies]
    if orders[0] is None or not all(reply.revisions for reply in replies) or any(o != orders[0] for o in orders):
        return None, ()
    named = [{frozenset(r.candidates) for r in reply.revisions} for reply in replies]
    if any(one != named[0] for one in named):
        return None, ()
    kept = []
    for revision in replies[0].revisions:
        same = [r for reply in replies for r in reply.revisions if set(r.candidates) == set(revision.candidates)]
        kept.append(Revision(revision.candidates, revision.reason, _once(c for r in same for c in r.citations)))
    return replies[0].order, tuple(kept)


def _as_sets(reply: GraderReply) -> dict | None:
    if reply.order is None:
        return None
    return {tier: [frozenset(tied) for tied in groups] for tier, groups in reply.order.items() if groups}


def _sides(ranking: Ranking) -> dict[tuple[str, str], int]:
    """Pair -> 1 if its first stands below its second, -1 above, 0 tied."""
    place = {id: (tier, k) for tier, groups in ranking.items() for k, tied in enumerate(groups) for id in tied}
    return {(a, b): (place[a] > place[b]) - (place[a] < place[b]) for a, b in combinations(sorted(place), 2)}


def _once(found: Iterable[Cited]) -> tuple:
    return tuple(dict.fromkeys(found))
