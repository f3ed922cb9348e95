"""Hunks of a patch, counted as git counts them; a combined diff of a merge too. Core."""

import re
from dataclasses import dataclass, field
from functools import partial

from grading.review.diffs.patch import Hunk, Line

HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)", re.DOTALL)
MERGE_HUNK = re.compile(rb"(@@@+)((?: -\d+(?:,\d+)?)+) \+(\d+)(?:,(\d+))? \1(.*)", re.DOTALL)
RANGE = re.compile(rb"-(\d+)(?:,(\d+))?")
KINDS = {b"+": "add", b"-": "del", b" ": "context"}


@dataclass
class HunkReader:
    """One hunk while it is read: where each parent and the result stand, and how many lines they still expect."""

    parents: int
    old_at: list[int]
    old_left: list[int]
    new_at: int
    new_left: int
    lines: list[Line] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        return self.new_left <= 0 and max(self.old_left) <= 0

    def take_run(self, lines: list[bytes], at: int) -> int:
        """Take lines of an ordinary hunk from `at` on. Almost all lines of almost all patches are taken here, in one
        loop without calls; the first one that is anything else is left to `take`.

        Returns: index of the first line that was not taken.
        """
        if self.parents > 1:
            return at
        (old_at,), (old_left,), new_at, new_left = self.old_at, self.old_left, self.new_at, self.new_left
        add, end, line = self.lines.append, len(lines), partial(tuple.__new__, Line)
        while at < end and (old_left > 0 or new_left > 0):
            raw = lines[at]
            mark, has_cr = raw[:1], raw[-1:] == b"\r"
            content, eol = (raw[1:-1], "\r\n") if has_cr else (raw[1:], "\n")
            if mark == b"+" and new_left > 0:
                add(line(("add", None, new_at, content, eol, "")))
                new_at, new_left = new_at + 1, new_left - 1
            elif mark == b"-" and old_left > 0 and raw[:4] != b"--- ":  # that may be the next file's header
                add(line(("del", old_at, None, content, eol, "")))
                old_at, old_left = old_at + 1, old_left - 1
            elif mark == b" " and old_left > 0 and new_left > 0:
                add(line(("context", old_at, new_at, content, eol, "")))
                old_at, old_left, new_at, new_left = old_at + 1, old_left - 1, new_at + 1, new_left - 1
            else:
                break
            at += 1
        self.old_at[0], self.old_left[0], self.new_at, self.new_left = old_at, old_left, new_at, new_left
        return at

    def take(self, raw: bytes) -> bool:
        """Take one line in. Returns: False if the counts have no room for it or it is no diff line."""
        return self._take_plain(raw) if self.parents == 1 else self._take_merged(raw)

    def _take_plain(self, raw: bytes) -> bool:
        """A line of a diff with one parent."""
        kind = KINDS.get(raw[:1])
        if not raw.strip(b"\r"):  # some tools strip the blank from an empty context line; git reads it so too
            kind, raw = "context", b" " + raw
        is_old, is_new = kind != "add", kind != "del"
        if kind is None or (is_old and self.old_left[0] <= 0) or (is_new and self.new_left <= 0):
            return False
        old_no, new_no = self.old_at[0] if is_old else None, self.new_at if is_new else None
        if raw.endswith(b"\r"):
            self.lines.append(Line(kind, old_no, new_no, raw[1:-1], "\r\n"))
        else:
            self.lines.append(Line(kind, old_no, new_no, raw[1:]))
        self.old_at[0] += is_old
        self.old_left[0] -= is_old
        self.new_at += is_new
        self.new_left -= is_new
        return True

    def _take_merged(self, raw: bytes) -> bool:
        marks = raw[: self.parents]
        if not raw.strip(b"\r"):
            marks, raw = b" " * self.parents, b" " * self.parents + raw
        if len(marks) < self.parents or marks.strip(b" +-") or (b"+" in marks and b"-" in marks):
            return False
        is_del = b"-" in marks
        within = [n for n, mark in enumerate(marks) if mark == (ord("-") if is_del else ord(" "))]
        if any(self.old_left[n] <= 0 for n in within) or (not is_del and self.new_left <= 0):
            return False
        kind = "del" if is_del else "add" if b"+" in marks else "context"
        # the old number is the first parent's, for a deletion that of the first parent that has the line
        old_no = None if kind == "add" else self.old_at[within[0]]
        content = raw[self.parents :]
        eol = "\r\n" if content.endswith(b"\r") else "\n"
        self.lines.append(
            Line(
                kind,
                old_no,
                None if is_del else self.new_at,
                content[:-1] if eol == "\r\n" else content,
                eol,
                marks.decode("ascii"),
            )
        )
        for n in within:
            self.old_at[n] += 1
            self.old_left[n] -= 1
        if not is_del:
            self.new_at += 1
            self.new_left -= 1
        return True

    def end_without_newline(self) -> None:
        """The line before `\\ No newline at end of file`: a CR at its end belongs to its content."""
        if self.lines:
            last = self.lines[-1]
            content = last.content + b"\r" if last.eol == "\r\n" else last.content
            self.lines[-1] = Line(last.kind, last.old_no, last.new_no, content, "", last.marks)


def open_hunk(line: bytes, parents: int) -> tuple[HunkReader, Hunk] | None:
    """Read a hunk's header.

    Args:
        line: without its line end.
        parents: 1, or the number of parents of a combined diff.
    Returns:
        (reader at the hunk's start, the hunk without lines); None if the header is not readable.
    """
    found = HUNK.match(line) if parents == 1 else MERGE_HUNK.match(line)
    if not found:
        return None
    if parents == 1:
        olds, (new_start, new_count, section) = [(found[1], found[2])], found.groups()[2:]
    else:
        olds, (new_start, new_count, section) = RANGE.findall(found[2]), found.groups()[2:]
        if len(olds) != parents:
            return None
    starts = [int(start) for start, _ in olds]
    counts = [int(count) if count else 1 for _, count in olds]
    new_count = int(new_count) if new_count else 1
    reader = HunkReader(parents, list(starts), list(counts), int(new_start), new_count)
    return reader, Hunk(starts[0], counts[0], int(new_start), new_count, section.strip(), ())


def starts_hunk(line: bytes, parents: int = 1) -> bool:
    return line.startswith(b"@" * (parents + 1) + b" -")


def is_next_header(lines: list[bytes], at: int, reader: HunkReader) -> bool:
    """A `---`, `+++`, `@@` triple inside a hunk is the next file, unless it is exactly what the hunk still expects."""
    return (
        lines[at].startswith(b"--- ")
        and at + 2 < len(lines)
        and lines[at + 1].startswith(b"+++ ")
        and starts_hunk(lines[at + 2])
        and (reader.old_left, reader.new_left) != ([1], 1)
    )
