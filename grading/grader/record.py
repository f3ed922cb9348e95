"""What one grading costs and says while it runs: kept beside the reply, whatever becomes of it. Core."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Event
from typing import Any

from grading.grader.shape import GraderReply, Problem


@dataclass
class Record:
    """A grader writes into it as it goes, so that a failed or refused grading is booked like a good one.

    `events` is the transcript in our event shape (`kind`, `text`, `tool`, `args`…), readable like a trajectory.
    `cancelled` is set from outside once nobody waits for the answer: the grader looks at it before each turn and each
    retry, waits on it instead of sleeping, and then raises whatever it likes.
    """

    model: str = ""
    endpoint: str = ""
    prompt: str = ""
    order: tuple[str, ...] = ()
    turns: int = 0
    tool_calls: int = 0
    retries: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    flips: float | None = None
    events: list[Mapping[str, Any]] = field(default_factory=list)
    grading_id: int | None = None  # the row this record belongs to: the checks it runs name it
    cancelled: Event = field(default_factory=Event, repr=False, compare=False)

    def add(self, kind: str, text: str, **more: Any) -> None:
        """Add one line to the transcript."""
        self.events.append({"kind": kind, "text": text, **more})


@dataclass(frozen=True)
class Answer:
    """What a grader gives: its reply, with candidates by their ids of the group, and what could not be read of it."""

    reply: GraderReply
    unread: tuple[Problem, ...] = ()
