"""One rollout as the detectors read it: what its patch leaves in the files, what it ran, what it said. Core."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

from grading.integrity.events import command_text, is_acting, prose_text, tool_names
from grading.integrity.paths import is_doc, is_test
from grading.integrity.signals import Events, Signal, Strength, event_place, line_place
from grading.review.diffs.patch import FilePatch, Line, Patch
from grading.review.diffs.text import line_text

SCAN_CHARS = 200_000  # of one command: longer ones are generated text, and their head says what they do
SCAN_LINES = 200_000  # of one patch, in the order of its files
LINE_BYTES = 2_000
LINES_TRIED = 5_000  # of one file and rule: what floods a patch with half-matches is seen without counting them
SHELLS = re.compile(r"bash|shell|\bsh\b|terminal|command|exec|\brun|python", re.IGNORECASE)
CODE = frozenset(
    ".py .pyi .pyx .js .jsx .ts .tsx .mjs .cjs .java .kt .kts .scala .groovy .go .rs .rb .php .c .cc .cpp .h .hpp .cs"
    " .swift .sh .bash .pl .lua .ex .exs".split()
)
_COMMENT = re.compile(r"[ \t]*(?:#(?![\[!])|//|/?\*|--[ ]|;;)")


@dataclass(frozen=True)
class Written:
    """A file's new side as far as the patch shows it, as one text with a line end after every line.

    `is_fresh` says of each line whether the candidate wrote it: added, and not just moved inside the file.
    """

    file: FilePatch
    lines: tuple[Line, ...]
    text: str
    starts: tuple[int, ...]
    is_fresh: tuple[bool, ...]

    @property
    def path(self) -> str:
        return self.file.path

    @cached_property
    def name(self) -> str:
        return PurePosixPath(self.path).name

    @cached_property
    def suffix(self) -> str:
        return PurePosixPath(self.path).suffix.lower()

    @cached_property
    def is_test(self) -> bool:
        return is_test(self.path)

    @cached_property
    def is_code(self) -> bool:
        return self.suffix in CODE and not is_doc(self.path)

    @property
    def is_product(self) -> bool:
        """Code that is no test: what the tests are about."""
        return self.is_code and not self.is_test

    def line(self, i: int) -> str:
        """Returns: the text of line i of the new side, its indentation kept."""
        return self.text[self.starts[i] : (self.starts[i + 1] if i + 1 < len(self.starts) else len(self.text)) - 1]

    def at(self, offset: int) -> int:
        """Returns: which line holds a character of `text`."""
        return bisect_right(self.starts, offset) - 1

    def holding(self, *words: str) -> list[int]:
        """Lines the candidate wrote that hold one of the words: a plain search, so that rules run on few lines.

        Args:
            words: looked for as they are, upper and lower case apart.
        Returns:
            Indices of lines in order, comments left out.
        """
        found: set[int] = set()
        for word in words:
            offset = self.text.find(word)
            while offset >= 0:
                i = self.at(offset)
                found.add(i)
                offset = self.text.find(word, self.starts[i + 1]) if i + 1 < len(self.starts) else -1
        tried = (i for i in sorted(found) if self.is_fresh[i] and not _COMMENT.match(self.line(i)))
        return list(islice(tried, LINES_TRIED))

    def find(self, pattern: re.Pattern[str], *words: str) -> Iterator[tuple[int, re.Match[str]]]:
        """Lines the candidate wrote that hold one of the words and fit the pattern: (index, match)."""
        return ((i, found) for i in self.holding(*words) if (found := pattern.search(self.line(i))))

    def around(self, i: int, before: int, after: int) -> str:
        """Returns: the lines about line i as one text."""
        first, last = max(0, i - before), min(len(self.starts), i + after + 1)
        return self.text[self.starts[first] : self.starts[last] if last < len(self.starts) else len(self.text)]

    @classmethod
    def of(cls, file: FilePatch, room: int = SCAN_LINES) -> "Written":
        """Read the new side of a file's patch, at most `room` lines and 2,000 bytes of each."""
        gone = {line.content.strip()[:LINE_BYTES] for line in file.lines if line.kind == "del"} - {b""}
        lines = tuple(line for line in file.lines if line.kind != "del")[:room]
        texts = [line_text(line.content[:LINE_BYTES]).replace("\n", " ") for line in lines]
        fresh = (line.kind == "add" and (not gone or line.content.strip()[:LINE_BYTES] not in gone) for line in lines)
        starts, offset = [], 0
        for text in texts:
            starts.append(offset)
            offset += len(text) + 1
        return cls(file, lines, "".join(f"{text}\n" for text in texts), tuple(starts), tuple(fresh))


@dataclass(frozen=True, slots=True)
class Command:
    """What an acting event runs: the event's number, the text of the command, the tools, whether a shell reads it."""

    index: int
    text: str
    tools: str
    is_shell: bool
    kind: str

    def holds(self, *words: str) -> bool:
        """Whether the text has one of the words: a plain search before the rules."""
        return any(word in self.text for word in words)

    @property
    def at(self) -> tuple[int, str]:
        return self.index, self.text


@dataclass(frozen=True)
class Rollout:
    """What a detector reads. `events` may be walked several times; `log` is the test log as it was stored."""

    candidate: str
    patch: Patch
    events: Events = ()
    log: bytes = b""

    @cached_property
    def written(self) -> tuple[Written, ...]:
        """The new sides of the files that are still there and have lines."""
        found, room = [], SCAN_LINES
        for file in self.patch.files:
            if file.status != "deleted" and file.hunks and room > 0:
                found.append(Written.of(file, room))
                room -= len(found[-1].lines)
        return tuple(found)

    @cached_property
    def product(self) -> tuple[Written, ...]:
        return tuple(written for written in self.written if written.is_product)

    @cached_property
    def told(self) -> tuple[Mapping[str, Any], ...]:
        return tuple(self.events)

    @cached_property
    def commands(self) -> tuple[Command, ...]:
        """What it ran and edited, in order; what it was shown is not among it."""
        found = []
        for index, event in enumerate(self.told):
            if is_acting(event) and (text := command_text(event)[:SCAN_CHARS]):
                tools = " ".join(tool_names(event))
                found.append(
                    Command(index, text, tools, not tools or bool(SHELLS.search(tools)), str(event.get("kind")))
                )
        return tuple(found)

    @cached_property
    def shell(self) -> tuple[Command, ...]:
        return tuple(command for command in self.commands if command.is_shell)

    @cached_property
    def said(self) -> tuple[tuple[int, str], ...]:
        """What the candidate says in its own words: (number of the event, text)."""
        found = ((index, prose_text(event)[:SCAN_CHARS]) for index, event in enumerate(self.told))
        return tuple((index, text) for index, text in found if text)

    def heard(self, after: int, before: int) -> Iterator[Mapping[str, Any]]:
        """Events that bring back what event `after` asked for: up to the next acting event, itself where it tells."""
        told = self.told
        return (told[i] for i in range(after, min(before, len(told))) if i == after or not is_acting(told[i]))

    def on_line(self, detector: str, strength: Strength, written: Written, i: int, words: str) -> Signal:
        """Returns: a signal with its place on line i of a file's new side."""
        place = line_place(self.candidate, written.file, written.lines[i]) if written.lines[i].is_changed else None
        return Signal(detector, strength, self.candidate, place, f"{written.path} {words}")

    def on_event(self, detector: str, strength: Strength, at: tuple[int, str], span: tuple[int, int], words: str):
        """Returns: a signal that quotes the words in `span` of an event's text; `at` is its number and that text."""
        index, text = at
        place = event_place(self.candidate, index, text, *span)
        return Signal(detector, strength, self.candidate, place, f"event {index} {words}")
