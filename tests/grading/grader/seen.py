"""A rollout as tools see it, without a database: for tests of what is shown."""

from dataclasses import dataclass, field
from typing import Any

from grading.integrity.events import event_text
from grading.review.diffs.parse import parse_patch
from grading.review.diffs.patch import Patch


@dataclass
class SeenRollout:
    letter: str = "A"
    passed: bool = True
    patch: bytes = b""
    events: list[dict[str, Any]] = field(default_factory=list)
    tests: list[dict[str, Any]] = field(default_factory=list)
    counts: dict[str, Any] = field(default_factory=dict)
    twins: tuple[str, ...] = ()

    @property
    def parsed(self) -> Patch:
        return parse_patch(self.patch)

    @property
    def event_count(self) -> int:
        return len(self.events)

    def event(self, index: int) -> dict[str, Any] | None:
        return self.events[index] if index < len(self.events) else None

    def event_text(self, index: int) -> str | None:
        return event_text(self.events[index]) if index < len(self.events) else None


def did(command: str, words: str = "") -> dict[str, Any]:
    return {"kind": "action", "text": words, "tool": "bash", "args": {"command": command}}


def came(text: str, **more: Any) -> dict[str, Any]:
    return {"kind": "observation", "text": text, **more}


def changed(path: str, *, old: list[str] = (), new: list[str] = (), at: int = 1) -> bytes:
    """A patch of one hunk without context."""
    head = f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -{at},{len(old)} +{at},{len(new)} @@\n"
    return (head + "".join(f"-{line}\n" for line in old) + "".join(f"+{line}\n" for line in new)).encode()
