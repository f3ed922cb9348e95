"""A group as values, to be changed at will and graded again. Core."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

ADDED = re.compile(rb"^\+(?!\+\+ )", re.MULTILINE)
HUNK = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)


@dataclass(frozen=True)
class Try:
    """One rollout with everything it left behind. `family` is whose model it is, where that is known."""

    id: str
    passed: bool = True
    patch: bytes = b""
    events: tuple[Mapping[str, Any], ...] = ()
    tests: tuple[Mapping[str, str], ...] = ()
    log: bytes = b""
    extra: Mapping[str, Any] = field(default_factory=dict)
    family: str = ""


@dataclass(frozen=True)
class Trial:
    """One group to be graded. `human` is how people ranked it: tied groups of ids, best first."""

    key: str
    statement: str
    tries: tuple[Try, ...]
    reference: bytes | None = None
    human: tuple[tuple[str, ...], ...] = ()

    @property
    def passing(self) -> tuple[Try, ...]:
        return tuple(one for one in self.tries if one.passed)

    def swapped(self, new: Try) -> "Trial":
        """The same group with this try in place of the one with its id."""
        return replace(self, tries=tuple(new if one.id == new.id else one for one in self.tries))

    def only(self, *tries: Try) -> "Trial":
        """These passing tries, and the failed ones as they are."""
        return replace(self, tries=(*tries, *(one for one in self.tries if not one.passed)))


def with_comment(patch: bytes, text: str, times: int = 1) -> bytes:
    """The patch with comment lines after its first added line, its hunk's count kept right.

    Returns:
        The patch as it is where it adds no line.
    """
    found = ADDED.search(patch)
    heads = [head for head in HUNK.finditer(patch) if found and head.start() < found.start()]
    if not heads:
        return patch
    end = patch.find(b"\n", found.start()) + 1 or len(patch)
    lines = [line for _ in range(times) for line in text.splitlines() or [""]]
    added = b"".join(f"+# {line}\n".encode() for line in lines)
    head = heads[-1]
    old, old_count, new, new_count = (int(n) if n else 1 for n in head.groups())
    said = f"@@ -{old},{old_count} +{new},{new_count + len(lines)} @@".encode()
    return patch[: head.start()] + said + patch[head.end() : end] + added + patch[end:]


def added_file(path: str, text: str) -> bytes:
    """A patch that adds one file."""
    lines = text.splitlines() or [""]
    body = "".join(f"+{line}\n" for line in lines)
    head = f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n"
    return f"{head}@@ -0,0 +1,{len(lines)} @@\n{body}".encode()
