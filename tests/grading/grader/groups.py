"""Small groups and replies for the grader's tests: every candidate changes line 10 of src/sum.py in its own way."""

from collections.abc import Mapping

from grading.grader.material import CandidateMaterial, GroupMaterial
from grading.grader.shape import CandidateReply, Cited, GraderReply
from grading.review.anchors import Citation
from grading.review.diffs.parse import parse_patch
from grading.scoring.criteria import CRITERIA, FLAGS

EVENTS = ["Let me look at the tests.", "cat hidden_tests/test_sum.py", "I am done."]


def patch_of(word: str) -> bytes:
    """A patch that replaces line 10 of src/sum.py; other words, other bytes."""
    head = "diff --git a/src/sum.py b/src/sum.py\n--- a/src/sum.py\n+++ b/src/sum.py\n@@ -10,2 +10,2 @@\n"
    return f"{head}-    return a\n+    return a + b  # {word}\n \n".encode()


def rollout(id: str, *, patch: bytes | None = None, events: list[str] = EVENTS) -> CandidateMaterial:
    """One rollout with its own patch, three events and one test."""
    data = patch_of(id) if patch is None else patch

    def event_text(index: int) -> str | None:
        return events[index] if index < len(events) else None

    return CandidateMaterial(id, data, parse_patch(data), event_text, len(events), frozenset({"test_sum"}))


def group(*passing: str | CandidateMaterial, failing: tuple[str, ...] = ("F",), confirmed: tuple[str, ...] = ()):
    """A group of passing rollouts (ids or material), one failed rollout unless told otherwise."""
    rollouts = [one if isinstance(one, CandidateMaterial) else rollout(one) for one in passing]
    return GroupMaterial.of(rollouts, [rollout(id) for id in failing], confirmed)


def line_of(id: str) -> Citation:
    """The changed line of a candidate."""
    return Citation("patch_line", id, path="src/sum.py", side="new", line=10, quote="return a + b")


def event_of(id: str) -> Citation:
    """The event in which a candidate reads hidden tests."""
    return Citation("event", id, event=1, quote="cat hidden_tests")


def entry(id: str, *scores: int, flags: tuple[str, ...] = (), cite: tuple[Cited, ...] | None = None) -> CandidateReply:
    """What is said of one candidate, with a citation for every score below 4 and every flag unless `cite` is given."""
    by_criterion: Mapping[str, int] = dict(zip(CRITERIA, scores or (5,) * 5, strict=True))
    low = [c for c, score in by_criterion.items() if not isinstance(score, int) or score < 4]
    own = tuple(Cited(claim, line_of(id)) for claim in (*low, *flags))
    return CandidateReply(id, by_criterion, {}, {flag: flag in flags for flag in FLAGS}, own if cite is None else cite)


def reply(*entries: CandidateReply, **fields) -> GraderReply:
    """A reply of these entries."""
    return GraderReply(entries, **fields)
