"""Trajectories out of NDJSON lines `trajectory`, `event`…, `end`, one event in memory at a time."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

from grading.errors import BadInput, WrongShape
from grading.ingest.serializers import event_of
from grading.ingest.strict_json import strict_json

LINE_TYPES = "trajectory, event or end"


class TrajectoryLines:
    """Walks the lines. After an item was refused, its remaining lines are passed over up to the next `trajectory`."""

    def __init__(self, lines: Iterator[tuple[int, bytes]]):
        self.lines = lines
        self._next: tuple[int, dict] | None = None  # a trajectory line that was read too early
        self._inside = False

    def __iter__(self) -> Iterator[tuple[int, dict]]:
        """The number and the fields of each `trajectory` line; call `events` before going on."""
        while (found := self._advance()) is not None:
            self._inside = True
            yield found

    def _advance(self) -> tuple[int, dict] | None:
        if self._next is not None:
            found, self._next = self._next, None
            return found
        for number, line in self.lines:
            if self._inside and b'"trajectory"' not in line:
                continue
            try:
                said = _read(number, line)
            except BadInput:
                if self._inside:
                    continue
                raise
            if said["type"] == "trajectory":
                return number, said
            if not self._inside:
                raise _wrong(number, said["type"], "trajectory")
        return None

    def events(self) -> Iterator[dict] | None:
        """The event lines that follow, read as they are asked for; None where there is not one."""
        events = self._events()
        first = next(events, None)
        return None if first is None else chain([first], events)

    def _events(self) -> Iterator[dict]:
        count = 0
        for number, line in self.lines:
            said = _read(number, line)
            kind = said.pop("type")
            if kind == "end":
                self._inside = False
                return
            if kind == "trajectory":
                self._next = (number, said)
                raise _wrong(number, kind, "event or end: the trajectory before it has no end")
            if kind != "event":
                raise _wrong(number, kind, LINE_TYPES)
            yield event_of(said, count, where=f"line {number}")
            count += 1
        raise BadInput("the body ends inside a trajectory", expected='a line {"type": "end"}', where="the last line")


def _read(number: int, line: bytes) -> dict[str, Any]:
    said = strict_json(line, where=f"line {number}")
    if not isinstance(said, dict) or not isinstance(said.get("type"), str):
        raise _wrong(number, said.get("type") if isinstance(said, dict) else said, LINE_TYPES)
    return said


def _wrong(number: int, got: Any, expected: str) -> WrongShape:
    return WrongShape("a line has another type", got=got, expected=expected, where=f"line {number}")
