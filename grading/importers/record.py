"""The one shape every importer gives: a group of candidates with their events, and what was read, kept and dropped."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from grading.storable import storable


@dataclass(frozen=True)
class TaskRecord:
    """What was asked. `repository` is a name or URL as the source gives it; empty text where it gives none."""

    key: str
    statement: str = ""
    base_commit: str = ""
    repository: str = ""
    reference_patch: bytes | None = None


@dataclass(frozen=True)
class Dropped:
    """A source event that cannot be kept, and why."""

    why: str


@dataclass(frozen=True)
class Unlinked:
    """An observation whose action the source does not hold: kept, and counted."""

    event: dict


@dataclass
class EventCounts:
    """Events of a source; read = kept + dropped, unlinked ones are kept."""

    read: int = 0
    kept: int = 0
    dropped: int = 0
    unlinked: int = 0
    why: Counter = field(default_factory=Counter)


class EventStream:
    """The events of one trajectory, in order, counted while they are iterated; each iteration starts anew."""

    def __init__(self, source: Callable[[], Iterator[dict | Dropped | Unlinked]]):
        self.source = source
        self.counts = EventCounts()

    def __iter__(self) -> Iterator[dict]:
        self.counts = counts = EventCounts()
        for found in self.source():
            counts.read += 1
            if isinstance(found, Dropped):
                counts.dropped += 1
                counts.why[found.why] += 1
                continue
            counts.kept += 1
            counts.unlinked += isinstance(found, Unlinked)
            yield found.event if isinstance(found, Unlinked) else found


@dataclass(frozen=True)
class TrajectoryRecord:
    """What one trajectory file says. `task` is what it knows of its task; `submission` None where it holds no patch."""

    events: EventStream
    task: TaskRecord
    submission: bytes | None = None
    is_truncated: bool = False
    counts: dict[str, int | float] = field(default_factory=dict)  # turns, tokens, response_tokens, cost_usd, duration_s
    extra: dict[str, Any] = field(default_factory=dict)  # model, exit status: hidden from a grader


@dataclass(frozen=True)
class Problem:
    """Something that was not imported as it should be. `problem` is a word of a short list, `detail` says more."""

    group: str
    candidate: str
    problem: str
    detail: str = ""

    def as_json(self) -> dict[str, str]:
        return storable(self.__dict__)


@dataclass(frozen=True)
class CandidateRecord:
    """One rollout. `events` None: no trajectory was given; `raw`: a tar of one in a format that is not read yet."""

    external_id: str
    outcome: str
    problem: str = ""
    patch: bytes | None = None
    events: EventStream | None = None
    log: bytes | None = None
    raw: bytes | None = None
    is_truncated: bool = False
    tests: list[dict[str, str]] = field(default_factory=list)
    counts: dict[str, int | float] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class GroupRecord:
    key: str
    task: TaskRecord
    candidates: list[CandidateRecord]
    problems: list[Problem]


@dataclass
class Tally:
    """What an import read and kept, all groups together."""

    groups: int = 0
    candidates: int = 0
    events: EventCounts = field(default_factory=EventCounts)
    patches_parsed: int = 0
    patches_unparsed: int = 0
    problems: list[Problem] = field(default_factory=list)

    def add_events(self, counts: EventCounts) -> None:
        for name in ("read", "kept", "dropped", "unlinked"):
            setattr(self.events, name, getattr(self.events, name) + getattr(counts, name))
        self.events.why.update(counts.why)

    def as_json(self) -> dict[str, Any]:
        events = self.events
        return {
            "groups": self.groups,
            "candidates": self.candidates,
            "events": {
                "read": events.read,
                "kept": events.kept,
                "dropped": events.dropped,
                "unlinked": events.unlinked,
            },
            "patches": {"parsed": self.patches_parsed, "unparsed": self.patches_unparsed},
            "problems": [problem.as_json() for problem in self.problems],
        }
