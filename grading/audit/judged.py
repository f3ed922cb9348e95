"""What a verdict on an audit group must be: all candidates scored, failures included. Core.

A grader's reply obeys the rules of every verdict; a person gives scores and flags, and may order inside a tier.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from grading.grader.material import OUTCOME
from grading.grader.shape import CandidateReply, Cited, GraderReply
from grading.review.anchors import Citation
from grading.scoring.criteria import FLAGS, Candidate, Rubric
from grading.scoring.grades import Grades, grade
from grading.scoring.ranks import rank
from grading.scoring.tiers import TIER_NAMES

FAILED_AT_MOST = {"approach": 3, "precision": 2}


def with_failures(reply: GraderReply, failed: Collection[str]) -> GraderReply:
    """Let the static grader know what it does not read: that tests failed.

    Args:
        reply: of the static grader, which takes every candidate for a passing one.
        failed: ids of the candidates whose tests failed.
    Returns:
        The reply; a failed candidate has at most 3 on approach and 2 on precision, shown by its outcome.
    """
    entries = [_failed(entry) if entry.id in failed else entry for entry in reply.candidates]
    return replace(reply, candidates=tuple(entries))


def _failed(entry: CandidateReply) -> CandidateReply:
    low = {c: most for c, most in FAILED_AT_MOST.items() if entry.scores[c] > most}
    shown = Citation("result", entry.id, result=OUTCOME)
    return replace(
        entry,
        scores={**entry.scores, **low},
        reasons={**entry.reasons, **dict.fromkeys(low, "its tests failed")},
        citations=(*entry.citations, *(Cited(c, shown) for c in low)),
    )


@dataclass(frozen=True)
class Said:
    """What a person said of one candidate. `place` orders it inside its tier; None leaves that to the scores."""

    letter: str
    scores: Mapping[str, int]
    flags: frozenset[str]
    reason: str = ""
    place: int | None = None
    citations: tuple[Cited, ...] = ()


@dataclass(frozen=True)
class PersonVerdict:
    """Either `problems`, or the grades that follow and the reply in the one verdict shape."""

    problems: tuple[str, ...]
    grades: Grades | None
    reply: GraderReply


def judge(said: Sequence[Said], rubric: Rubric, *, twins: Collection[frozenset[str]] = (), notes="") -> PersonVerdict:
    """Check a person's verdict.

    Args:
        said: of every candidate.
        rubric: whose weights and thresholds count.
        twins: letters with byte-identical patches: the same scores, unless a flag about their way tells them apart.
        notes: a person's words about the group.
    Returns:
        The verdict; a place may reorder, tie or split inside a tier, never across.
    """
    candidates = [Candidate(one.letter, one.scores, one.flags) for one in said]
    placed = {one.letter: one.place for one in said if one.place is not None}
    problems = list(_twin_problems(said, twins))
    if placed and len(placed) < len(said):
        missing = ", ".join(sorted({one.letter for one in said} - placed.keys()))
        problems.append(f"Places: {missing} has none. Give every candidate a place, or none.")
    order = None
    if placed and not problems:
        order = _by_place(candidates, rubric, placed)
        problems += _across_tiers(order, placed)
    entries = tuple(
        CandidateReply(
            one.letter, one.scores, {"overall": one.reason} if one.reason else {}, _flags(one), citations=one.citations
        )
        for one in said
    )
    reply = GraderReply(entries, order=order, notes=notes)
    return PersonVerdict(tuple(problems), None if problems else grade(candidates, rubric, order), reply)


def _flags(one: Said) -> dict[str, bool]:
    return {flag: flag in one.flags for flag in FLAGS}


def _twin_problems(said: Sequence[Said], twins: Collection[frozenset[str]]) -> Iterator[str]:
    by_letter = {one.letter: one for one in said}
    for a, b in (pair for same in twins for pair in combinations(sorted(same), 2)):
        one, other = by_letter[a], by_letter[b]
        if one.flags == other.flags and (one.scores, one.place) != (other.scores, other.place):
            yield f"{a} and {b} have the same patch, byte for byte: give both the same scores and place, or a flag."


def _by_place(candidates: Sequence[Candidate], rubric: Rubric, placed: Mapping[str, int]) -> dict:
    order = {}
    for tier, groups in rank(candidates, rubric).items():
        letters = sorted((letter for tied in groups for letter in tied), key=lambda letter: (placed[letter], letter))
        places = sorted({placed[letter] for letter in letters})
        order[TIER_NAMES[tier]] = tuple(tuple(one for one in letters if placed[one] == place) for place in places)
    return order


def _across_tiers(order: Mapping[str, Sequence[Sequence[str]]], placed: Mapping[str, int]) -> Iterator[str]:
    """A place never lifts a candidate over one of a better tier."""
    lowest, below = 0, ""
    for tier, groups in order.items():
        for tied in groups:
            if below and placed[tied[0]] <= lowest:
                yield (
                    f"Place {placed[tied[0]]} of {', '.join(tied)} is not behind {below}, whose scores and flags make "
                    f"a better tier than {tier}: change a score or a flag."
                )
        if groups:
            lowest, below = max(placed[tied[0]] for tied in groups), ", ".join(groups[-1])
