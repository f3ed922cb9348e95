"""What a group's rollouts left behind, as graders and the validity check see it: patch, events, results. Core."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from grading.review.anchors import Citation, Resolution, resolve
from grading.review.diffs.patch import Patch

# That a rollout passed is an execution result too: the one evidence there is against a patch without a line.
OUTCOME = "outcome"


def no_events(index: int) -> str | None:
    """Returns: None, for a rollout whose events are not kept."""
    return None


@dataclass(frozen=True)
class CandidateMaterial:
    """One rollout. `patch` is its bytes (empty for none), `parsed` the same read; `results` are its tests and checks.

    `event_text` gives the text of the event with an index from 0, None if its body is not kept.
    """

    id: str
    patch: bytes
    parsed: Patch
    event_text: Callable[[int], str | None] = no_events
    event_count: int = 0
    results: frozenset[str] = frozenset()

    def resolve(self, citation: Citation) -> Resolution:
        """Returns: what the citation points at in this rollout; `OUTCOME` is among the results of each."""
        return resolve(
            citation,
            patch=self.parsed,
            event_text=self.event_text,
            event_count=self.event_count,
            results=self.results | {OUTCOME},
        )


@dataclass(frozen=True)
class GroupMaterial:
    """All valid rollouts of one group by id, in the order of presentation: who passed, and who failed as context.

    `confirmed` are the passing ones with a leak or hack that is confirmed already: nobody ranks them.
    """

    passing: Mapping[str, CandidateMaterial]
    failing: Mapping[str, CandidateMaterial] = field(default_factory=dict)
    confirmed: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        passing: Iterable[CandidateMaterial],
        failing: Iterable[CandidateMaterial] = (),
        confirmed: Iterable[str] = (),
    ) -> "GroupMaterial":
        """Returns: the material of these rollouts, by their ids."""
        return cls({one.id: one for one in passing}, {one.id: one for one in failing}, frozenset(confirmed))

    def get(self, candidate: str) -> CandidateMaterial | None:
        """Returns: a rollout's material, None for an id that is not of this group."""
        return self.passing.get(candidate) or self.failing.get(candidate)
