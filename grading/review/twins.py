"""Passes with the same patch, byte for byte, tie: an edit of one holds for its twins, unless an event tells them apart.

Core.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from grading.grader.shape import CandidateReply, Cited

ORDER = "revision"
Edits = Mapping[str, Mapping[str, Any]]  # external id -> what changes
Followers = Mapping[str, Mapping[str, tuple[str, ...]]]
Citations = Mapping[str, tuple[Cited, ...]]


@dataclass(frozen=True)
class Said:
    """What a form changes, by external id; `places` are counted from 1.

    `followers`: edited candidate -> criterion, flag or ORDER -> the twins that take this edit over.
    """

    scores: Edits
    flags: Edits
    places: Mapping[str, int]
    citations: Citations
    followers: Followers


def twins_of(patches: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Find who has the same patch.

    Args:
        patches: external id -> the patch, or what stands for its bytes, such as a digest.
    Returns:
        External id -> the others with this patch; nobody without one.
    """
    same: dict[str, list[str]] = {}
    for id, patch in patches.items():
        same.setdefault(patch, []).append(id)
    return {id: tuple(o for o in ids if o != id) for ids in same.values() if len(ids) > 1 for id in ids}


def with_twins(
    said: Said, entries: Mapping[str, CandidateReply], seats: Mapping[str, tuple[int, int]], twins: Mapping[str, tuple]
) -> Said:
    """Carry edits over to twins that have none of their own about the same thing.

    Args:
        said: the edits of a form.
        entries: what the verdict that stands says of each candidate.
        seats: external id -> (tier, place) in that verdict.
        twins: from `twins_of`.
    Returns:
        The edits with those of the twins, and their citations of lines and results, about the twin. An edit that
        cites an event stays with its candidate: the event tells it apart.
    """
    moves = [
        *(("scores", *found) for found in _claims(said.scores, said.citations, entries, twins, _score)),
        *(("flags", *found) for found in _claims(said.flags, said.citations, entries, twins, _flag)),
        *(("places", *found) for found in _places(said, seats, twins)),
    ]
    scores, flags = ({id: dict(own) for id, own in edits.items()} for edits in (said.scores, said.flags))
    places, citations, followers = dict(said.places), dict(said.citations), {}
    for kind, source, twin, about, value in moves:
        if kind == "places":
            places[twin] = value
        elif about in (mine := (scores if kind == "scores" else flags).setdefault(twin, {})):
            continue
        else:
            mine[about] = value
        claims = followers.setdefault(source, {})
        claims[about] = (*claims.get(about, ()), twin)
        moved = (replace(c, citation=replace(c.citation, candidate=twin)) for c in _cited(citations, source, about))
        citations[twin] = tuple(dict.fromkeys((*citations.get(twin, ()), *moved)))
    return Said(scores, flags, places, {id: cs for id, cs in citations.items() if cs}, followers)


def _claims(edits: Edits, citations: Citations, entries: Mapping[str, CandidateReply], twins, value_of) -> Iterator:
    """Yield source, twin, claim and value of each edit to carry over."""
    for source, claims in edits.items():
        for about, value in claims.items():
            for twin in twins.get(source, ()):
                one, other = entries[source], entries[twin]
                is_own = about in edits.get(twin, {}) or value_of(other, about) == value
                stood_apart = value_of(one, about) != value_of(other, about) and any(
                    _is_event(cited, about) for cited in (*one.citations, *other.citations)
                )
                if not is_own and not stood_apart and not _told_apart(citations, source, twin, about):
                    yield source, twin, about, value


def _places(said: Said, seats: Mapping[str, tuple[int, int]], twins: Mapping[str, tuple]) -> Iterator:
    moved = {id: place for id, place in said.places.items() if id in seats and place != seats[id][1]}
    taken = set(moved)
    for source, place in moved.items():
        for twin in twins.get(source, ()):
            were_tied = seats.get(twin) == seats[source]
            if were_tied and twin not in taken and not _told_apart(said.citations, source, twin, ORDER):
                taken.add(twin)
                yield source, twin, ORDER, place


def _score(entry: CandidateReply, criterion: str) -> object:
    return entry.scores.get(criterion)


def _flag(entry: CandidateReply, flag: str) -> bool:
    return bool(entry.flags.get(flag))


def _told_apart(citations: Citations, one: str, other: str, about: str) -> bool:
    return any(_is_event(cited, about) for id in (one, other) for cited in citations.get(id, ()))


def _is_event(cited: Cited, about: str) -> bool:
    return cited.about == about and cited.citation.kind == "event"


def _cited(citations: Citations, id: str, about: str) -> Iterator[Cited]:
    return (cited for cited in citations.get(id, ()) if cited.about == about and cited.citation.kind != "event")
