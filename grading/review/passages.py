"""Where quoted words stand: in a patch's lines of one side, and in a text as a page shows it. Core."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from grading.review.diffs.patch import Patch, Side
from grading.review.diffs.text import line_text, utf16_of, visible
from grading.review.pages.ansi import plain

ODD = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")  # in ASCII: what a page does not show as it is
CitationKind = Literal["patch_line", "event", "result"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a citation stands now. `file` is the index in `Patch.files`, `event` counts from 0."""

    kind: CitationKind
    path: str | None = None
    side: Side | None = None
    line: int | None = None
    line_end: int | None = None
    file: int | None = None
    event: int | None = None
    result: str | None = None


def words(text: str) -> str:
    """Returns: the text with every run of white space as one blank, so that wrapping does not matter."""
    return " ".join(text.split())


def as_shown(text: str) -> Iterator[str]:
    """The text, and what a reader sees of it where that differs."""
    yield text
    if not text.isascii() or ODD.search(text):
        seen = plain(text)
        yield seen
        yield "\n".join("\t".join(map(visible, line.split("\t"))) for line in seen.split("\n"))


def said(quote: str) -> str:
    """The quote without white space around it and with line ends as we store them; a form posts others."""
    return quote.replace("\r\n", "\n").strip()


@dataclass(frozen=True, slots=True)
class Passage:
    """One hunk's lines of one side as one string of words, with where each line begins in it."""

    file: int
    path: str
    side: Side
    text: str
    starts: tuple[int, ...]
    lines: tuple[tuple[int, bool], ...]  # (number on the side, is changed)
    numbers: tuple[int, ...]  # of all lines, blank ones too
    texts: tuple[str, ...]  # as they stand

    def places(self, quote: str) -> Iterator[Place]:
        """Places where the quote stands and touches a changed line; the place is its first changed line."""
        at = self.text.find(quote)
        while at >= 0:
            first = bisect_right(self.starts, at) - 1
            last = bisect_right(self.starts, at + len(quote) - 1) - 1
            changed = [number for number, is_changed in self.lines[first : last + 1] if is_changed]
            if changed:
                end = changed[-1] if changed[-1] != changed[0] else None
                yield Place("patch_line", self.path, self.side, changed[0], end, self.file)
            if first + 1 == len(self.starts):
                return
            # the same line once: the next hit must reach past the end of this one
            at = self.text.find(quote, max(at + 1, self.starts[first + 1] - len(quote)))

    def has_verbatim(self, quote: str, first: int, last: int) -> bool:
        """Whether the quote stands here to the letter, in lines that touch first..last."""
        many = quote.count("\n")
        for n in range(len(self.texts) - many):
            if self.numbers[n] <= last and self.numbers[n + many] >= first:
                lines = "\n".join(self.texts[n : n + many + 1])
                if quote in lines or quote in "\n".join(map(visible, self.texts[n : n + many + 1])):
                    return True
        return False


def passages(patch: Patch, side: Side, only: int | None = None) -> Iterator[Passage]:
    """Give a patch hunk by hunk, or only one file of it by its index."""
    for n, file in enumerate(patch.files):
        if only not in (None, n):
            continue
        codec = utf16_of(file, side)
        for hunk in file.hunks:
            pieces, starts, lines, length, whole = [], [], [], 0, []
            for line in hunk.lines:
                number = line.number_on(side)
                if number is None:
                    continue
                whole.append((number, line_text(line.content, codec).rstrip("\r")))
                piece = words(whole[-1][1])
                if not piece:
                    continue
                starts.append(length)
                pieces.append(piece)
                lines.append((number, line.is_changed))
                length += len(piece) + 1
            numbers, texts = tuple(number for number, _ in whole), tuple(text for _, text in whole)
            path = file.path_on(side) or file.path
            yield Passage(n, path, side, " ".join(pieces), tuple(starts), tuple(lines), numbers, texts)
