"""Scores and candidates in one line."""

from grading.scoring.criteria import CRITERIA, Candidate


def scores(*values: int) -> dict[str, int]:
    return dict(zip(CRITERIA, values, strict=True))


def candidate(id: str, *values: int, flags: tuple[str, ...] = ()) -> Candidate:
    return Candidate(id, scores(*values), frozenset(flags))
