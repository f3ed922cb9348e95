"""One rollout as a grader sees it: under its letter, scrubbed, read from the bodies only when looked at."""

from functools import cached_property, lru_cache
from typing import Any

from grading import bodies
from grading.grader import gather
from grading.grader.material import CandidateMaterial
from grading.grader.scrub import Scrub
from grading.grader.scrub_patch import scrub_patch
from grading.integrity.events import event_text
from grading.models import Trajectory
from grading.review.diffs.parse import parse_patch
from grading.review.diffs.patch import Patch, Side

EVENTS_AT_ONCE = 32


class Shown:
    """A rollout of the group: `letter`, `passed`, `twins` (letters with the byte-identical patch) and its bodies."""

    def __init__(self, letter: str, row: Trajectory, raw: CandidateMaterial, scrub: Scrub, *, passed: bool):
        self.letter, self.raw, self.passed = letter, raw, passed
        self.twins: tuple[str, ...] = ()
        self._row, self._scrub = row, scrub
        self._chunk = lru_cache(maxsize=8)(self._read_chunk)

    @cached_property
    def patch(self) -> bytes:
        return scrub_patch(self.raw.patch, self._scrub)

    @cached_property
    def parsed(self) -> Patch:
        return self.raw.parsed if self.patch == self.raw.patch else parse_patch(self.patch)

    @cached_property
    def tests(self) -> list[dict[str, Any]]:
        """The tests of its evaluation: {name, status, message}."""
        names = {raw: shown for shown, raw in self.results.items()}
        return [_test(test, names, self._scrub) for test in self._row.tests]

    @cached_property
    def results(self) -> dict[str, str]:
        """Scrubbed name -> raw name of each result that may be cited."""
        return {self.result_name(raw): raw for raw in sorted(self.raw.results, reverse=True)}

    def result_name(self, raw: str) -> str:
        return self._scrub.code(raw).text

    @cached_property
    def log(self) -> bytes:
        text = gather.log_of(self._row).decode("utf-8", "surrogateescape")
        return self._scrub.words(text).encode("utf-8", "surrogateescape")

    @property
    def counts(self) -> dict[str, float]:
        """Turns, tokens and other numbers that its run told."""
        given = self._row.counts.items()
        return {name: n for name, n in given if isinstance(n, int | float) and not isinstance(n, bool)}

    @property
    def is_truncated(self) -> bool:
        return self._row.is_truncated

    @property
    def event_count(self) -> int:
        return self.raw.event_count

    def event(self, index: int) -> dict[str, Any] | None:
        """The event with an index from 0, scrubbed; None where there is none or its body is not kept."""
        if index < 0 or index >= self.event_count or not self._row.event_body:
            return None
        events, at = self._chunk(index // EVENTS_AT_ONCE), index % EVENTS_AT_ONCE
        return events[at] if at < len(events) else None

    def event_text(self, index: int) -> str | None:
        """All words of an event, scrubbed: what a citation of it may quote."""
        event = self.event(index)
        return None if event is None else event_text(event)

    def _read_chunk(self, number: int) -> list[dict[str, Any]]:
        start = number * EVENTS_AT_ONCE
        events = bodies.read_events(self._row.event_body, start, start + EVENTS_AT_ONCE)
        return [_scrubbed(event, self._scrub) for event in events]

    def lettered(self, results: frozenset[str]) -> CandidateMaterial:
        """The material under its letter, as the grader saw it; the raw patch says who is a twin."""
        names = frozenset(self.result_name(raw) for raw in results)
        return CandidateMaterial(self.letter, self.raw.patch, self.parsed, self.event_text, self.event_count, names)

    @cached_property
    def touched(self) -> frozenset[str]:
        """Real paths of the files that its patch leaves changed."""
        return frozenset(file.new_path for file in self.raw.parsed.files if file.new_path)

    def raw_path(self, path: str, side: Side | None = None) -> str:
        """The real path of a file that the grader knows by its scrubbed one."""
        return self._raw_paths.get((side, path), self._raw_paths.get((None, path), path))

    def shown_path(self, path: str) -> str:
        """The path under which the grader knows a file of this rollout."""
        return self._shown_paths.get(path, path)

    @cached_property
    def _raw_paths(self) -> dict[tuple[Side | None, str], str]:
        found: dict[tuple[Side | None, str], str] = {}
        if self.parsed is self.raw.parsed:
            return found
        for shown, raw in zip(self.parsed.files, self.raw.parsed.files, strict=False):
            for side in ("new", "old"):
                known, real = shown.path_on(side), raw.path_on(side)
                if known and real and known != real:
                    found.setdefault((side, known), real)
                    found.setdefault((None, known), real)
        return found

    @cached_property
    def _shown_paths(self) -> dict[str, str]:
        return {real: known for (side, known), real in self._raw_paths.items() if side is None}


def _test(test: dict[str, Any], names: dict[str, str], scrub: Scrub) -> dict[str, Any]:
    name = str(test.get("name", ""))
    shown = {"name": names.get(name, name), "status": test.get("status", "")}
    return shown | {"message": scrub.words(str(test.get("message") or ""))}


def _scrubbed(value: Any, scrub: Scrub) -> Any:
    """Each text by itself: no rule reaches over a line, so that their sum is the scrubbed sum."""
    if isinstance(value, str):
        return scrub.words(value)
    if isinstance(value, dict):
        return {scrub.words(str(key)): _scrubbed(inner, scrub) for key, inner in value.items()}
    if isinstance(value, list):
        return [_scrubbed(inner, scrub) for inner in value]
    return value
