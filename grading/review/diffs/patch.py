"""What a patch says, as frozen dataclasses over bytes. No Django, no I/O.

Content stays bytes (a patch may hold any encoding); paths and words for people are text.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Literal, NamedTuple

LineKind = Literal["context", "add", "del"]
Side = Literal["new", "old"]
Status = Literal["added", "deleted", "modified", "renamed", "copied", "mode"]
FileKind = Literal["text", "binary", "submodule", "symlink"]


class Line(NamedTuple):
    """One line of a hunk. `eol` is its line end in the file: LF, CRLF, or "" where the file ends without one.

    `marks` holds the sign columns of a combined diff (one per parent), else "". A tuple, because patches have many
    lines and a frozen dataclass takes four times as long to make.
    """

    kind: LineKind
    old_no: int | None
    new_no: int | None
    content: bytes
    eol: Literal["\n", "\r\n", ""] = "\n"
    marks: str = ""

    @property
    def is_changed(self) -> bool:
        return self.kind != "context"

    @property
    def side(self) -> Side:
        """The side whose number a reader sees: a deletion has only an old one."""
        return "old" if self.kind == "del" else "new"

    @property
    def number(self) -> int | None:
        return self.old_no if self.kind == "del" else self.new_no

    def number_on(self, side: Side) -> int | None:
        """Args: side. Returns: the line's number there, None if the line is not part of that side."""
        return self.old_no if side == "old" else self.new_no


@dataclass(frozen=True, slots=True)
class Hunk:
    """One hunk; the four numbers are those of its `@@` header, in lines."""

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    section: bytes
    lines: tuple[Line, ...]
    header_line: int = 0  # where the header stands in the patch, from 1


@dataclass(frozen=True)
class FilePatch:
    """One file of a patch. `status` says what happened to it, `kind` what sort of file it is.

    `notes` are facts in plain words for the file's header; `problems` say what could not be read. Lines are counted
    once: a parsed patch is kept, and every look at it asks for its counts.
    """

    old_path: str | None
    new_path: str | None
    status: Status = "modified"
    kind: FileKind = "text"
    old_mode: str | None = None
    new_mode: str | None = None
    similarity: int | None = None
    hunks: tuple[Hunk, ...] = ()
    is_combined: bool = False
    new_blob: str = ""  # git's name of the content after, as far as the header says it
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        return self.new_path or self.old_path or ""

    @property
    def is_binary(self) -> bool:
        return self.kind == "binary"

    @property
    def is_new(self) -> bool:
        return self.status == "added"

    @property
    def lines(self) -> Iterator[Line]:
        return chain.from_iterable(hunk.lines for hunk in self.hunks)

    @cached_property
    def added(self) -> int:
        return sum(line.kind == "add" for line in self.lines)

    @cached_property
    def removed(self) -> int:
        return sum(line.kind == "del" for line in self.lines)

    @cached_property
    def line_count(self) -> int:
        return sum(len(hunk.lines) for hunk in self.hunks)

    @cached_property
    def size_bytes(self) -> int:
        return sum(len(line.content) + len(line.eol) for line in self.lines)

    def path_on(self, side: Side) -> str | None:
        return self.old_path if side == "old" else self.new_path


@dataclass(frozen=True, slots=True)
class Patch:
    """A whole patch. `problems` say exactly what could not be read; `notes` are facts about the whole.

    `prose_lines` counts the lines around and between the files (mail headers, fences, an answer's text);
    `preamble` is what stands before the first file.
    """

    files: tuple[FilePatch, ...] = ()
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    preamble: bytes = b""
    prose_lines: int = 0
    size_bytes: int = 0
    is_empty: bool = False

    @property
    def parsed(self) -> bool:
        """Everything that is a patch in it was read. An empty one is neither parsed nor unparsed."""
        return bool(self.files) and not self.problems

    @property
    def unparsed(self) -> bool:
        return not self.is_empty and not self.parsed

    @property
    def added(self) -> int:
        return sum(file.added for file in self.files)

    @property
    def removed(self) -> int:
        return sum(file.removed for file in self.files)

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(file.path for file in self.files)

    def files_at(self, path: str, side: Side) -> Iterator[tuple[int, FilePatch]]:
        """Files that carry a path on a side (a mail of several patches can hold one path twice).

        Args:
            path: as in the tree, without `a/` or `b/`.
            side: "new" or "old".
        Returns:
            (index in `files`, file) pairs in order.
        """
        return ((n, file) for n, file in enumerate(self.files) if file.path_on(side) == path)
