"""Patches as pages need them: bodies never change, so what was parsed once is kept for the next request."""

from collections.abc import Iterable
from functools import lru_cache

from grading import bodies
from grading.grader.gather import event_reader
from grading.grader.material import OUTCOME
from grading.models import Trajectory
from grading.review.anchors import Citation, Resolution, resolve
from grading.review.diffs import Patch, Shares, parse_patch, shared_changes

KEPT_BYTES = 1_000_000  # a larger patch is parsed anew each time


@lru_cache(maxsize=128)
def _parsed(sha256: str) -> Patch:
    return parse_patch(bodies.read_bytes(sha256))


def patch_of(trajectory: Trajectory) -> Patch:
    """The parsed patch; an empty one where none was submitted."""
    if not trajectory.patch:
        return parse_patch(b"")
    if trajectory.patch_bytes > KEPT_BYTES:
        return parse_patch(bodies.read_bytes(trajectory.patch))
    return _parsed(trajectory.patch)


@lru_cache(maxsize=16)
def _shares(patches: tuple[str, ...]) -> Shares:
    return shared_changes([_parsed(sha256) if sha256 else parse_patch(b"") for sha256 in patches])


def shares_of(ranked: Iterable[Trajectory]) -> Shares:
    """Which changes the passing candidates have in common. Large patches are left out of the count."""
    rows = sorted((t for t in ranked if t.patch_bytes <= KEPT_BYTES), key=lambda t: t.pk)
    return _shares(tuple(t.patch for t in rows))


@lru_cache(maxsize=4096)
def _resolved(citation: Citation, patch: str, event_body: str, event_count: int, results: frozenset) -> Resolution:
    parsed = _parsed(patch) if patch else parse_patch(b"")
    text = event_reader(event_body)
    return resolve(citation, patch=parsed, event_text=text, event_count=event_count, results=results)


def resolved(citation: Citation, trajectory: Trajectory) -> Resolution:
    """Where a citation stands now. Only a cited event that is not where it was opens an event body."""
    results = frozenset(test["name"] for test in trajectory.tests) | {OUTCOME}
    return _resolved(citation, trajectory.patch, trajectory.event_body, trajectory.event_count or 0, results)
