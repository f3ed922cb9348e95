"""Patches as pages need them: bodies never change, so what was parsed once is kept for the next request."""

from collections.abc import Iterable
from functools import lru_cache

from grading import bodies
from grading.grader.gather import KEPT_BYTES, event_reader, kept_patch
from grading.grader.material import OUTCOME
from grading.models import Trajectory
from grading.review.anchors import Citation, Resolution, resolve
from grading.review.diffs import Patch, Shares, parse_patch, shared_changes


def patch_of(trajectory: Trajectory) -> Patch:
    """The parsed patch; an empty one where none was submitted."""
    if trajectory.patch_bytes > KEPT_BYTES:
        return _large_patch(trajectory.patch)
    return kept_patch(trajectory.patch)[1]


@lru_cache(maxsize=2)
def _large_patch(sha256: str) -> Patch:
    """The two that a reader compares: their files are asked for one by one."""
    return parse_patch(bodies.read_bytes(sha256))


@lru_cache(maxsize=16)
def _shares(patches: tuple[str, ...]) -> Shares:
    return shared_changes([kept_patch(sha256)[1] for sha256 in patches])


def shares_of(ranked: Iterable[Trajectory]) -> Shares:
    """Which changes the passing candidates have in common. Large patches are left out of the count."""
    rows = sorted((t for t in ranked if t.patch_bytes <= KEPT_BYTES), key=lambda t: t.pk)
    return _shares(tuple(t.patch for t in rows))


@lru_cache(maxsize=4096)
def _resolved(citation: Citation, patch: str, event_body: str, event_count: int, results: frozenset) -> Resolution:
    text = event_reader(event_body)
    return resolve(citation, patch=kept_patch(patch)[1], event_text=text, event_count=event_count, results=results)


def resolved(citation: Citation, trajectory: Trajectory, checks: Iterable[str] = ()) -> Resolution:
    """Where a citation stands now. Only a cited event that is not where it was opens an event body."""
    results = frozenset(test["name"] for test in trajectory.tests) | {OUTCOME, *checks}
    return _resolved(citation, trajectory.patch, trajectory.event_body, trajectory.event_count or 0, results)
