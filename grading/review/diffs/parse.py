"""Read a patch from bytes into frozen dataclasses; what cannot be read is said, never raised. Core.

Own reader because unidiff works on text, drops a whole patch at its first fault, and knows neither
quoted paths nor merges; git's own reader (apply.c) is the model and, in the tests, the judge.
"""

import dataclasses
import re
from collections.abc import Sequence

from grading.review.diffs.binary import DIFFER, binary_note, skip_binary
from grading.review.diffs.headers import Header, listed_names, names, path_text, read_extended, unquote
from grading.review.diffs.hunks import is_next_header, open_hunk, starts_hunk
from grading.review.diffs.patch import FilePatch, Hunk, Patch
from grading.review.diffs.text import line_text, visible

MERGE = re.compile(rb"diff --(?:cc|combined) (.+)")
NORMAL = re.compile(rb"\d+(?:,\d+)?[acd]\d+(?:,\d+)?$")
ED = re.compile(rb"\d+(?:,\d+)?[acd]$")
ENCODED = re.compile(rb"=(?:[0-9A-F]{2}|$)")
EXCERPT_CHARS = 80
BOMS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


def parse_patch(data: bytes | None) -> Patch:
    """Read a patch.

    Args:
        data: the patch as it was stored; None or blank where there is none.
    Returns:
        Patch. Blank input: `is_empty`, neither parsed nor unparsed. Anything else without a readable diff: no files
        and a problem that says why. Numbers are those of `git apply` wherever git accepts the patch.
    """
    if data is None or not data.strip():
        return Patch(is_empty=True, size_bytes=len(data or b""))
    text, notes = _plain(data)
    lines = text.split(b"\n")  # never splitlines: a CR, a form feed or U+2028 is content
    if lines[-1] == b"":
        lines.pop()
    else:
        notes.append("the patch ends without a line end; its last line was read as if it had one")
    reader = _Reader(lines, notes)
    reader.read()
    return Patch(
        files=tuple(reader.files),
        problems=tuple(reader.problems),
        notes=tuple(reader.notes),
        preamble=b"\n".join(lines[: reader.first_file]),
        prose_lines=reader.prose_lines,
        size_bytes=len(data),
    )


def _plain(data: bytes) -> tuple[bytes, list[str]]:
    if codec := BOMS.get(data[:2]):
        words = "the whole patch is UTF-16; it was read as UTF-8, git refuses it as it is"
        return data[2:].decode(codec, errors="replace").encode(), [words]
    if data.startswith(b"\xef\xbb\xbf"):
        return data[3:], ["the patch begins with a byte order mark"]
    return data, []


def excerpt(line: bytes) -> str:
    """Returns: a line for a message: visible, quoted, clipped."""
    text = visible(line_text(line))
    return repr(text if len(text) <= EXCERPT_CHARS else text[:EXCERPT_CHARS] + "…")


class _Reader:
    """Walks the lines once; `at` is the index of the next unread one."""

    def __init__(self, lines: Sequence[bytes], notes: list[str]):
        self.lines = list(lines)
        self.at = 0
        self.notes = notes
        self.files: list[FilePatch] = []
        self.problems: list[str] = []
        self.first_file = len(self.lines)
        self.prose_lines = 0

    def line(self, ahead: int = 0) -> bytes:
        """A line ahead without the CR a converted patch may carry; b"" past the end."""
        at = self.at + ahead
        return self.lines[at].rstrip(b"\r") if at < len(self.lines) else b""

    def read(self) -> None:
        while self.at < len(self.lines):
            start = self.at
            if header := self.header():
                self.first_file = min(self.first_file, start)
                self.body(header)
            else:
                self.prose()
        if not self.files and not self.problems:
            self.problems.append(self.why_no_diff())

    def header(self) -> Header | None:
        """Read a file header that starts here and step over it; None if none does."""
        line, header = self.line(), Header(start=self.at)
        if line.startswith(b"diff --git "):
            header.is_git, header.listed = True, listed_names(line[11:])
        elif found := MERGE.match(line):
            header.is_git, header.parents = True, 2
            header.listed = (unquote(found[1]), unquote(found[1]))
        elif not self.is_plain_header():
            return None
        if header.is_git:
            self.at += 1
            while self.at < len(self.lines) and read_extended(header, self.line()):
                self.at += 1
        else:
            header.old_label, header.new_label = self.line()[4:], self.line(1)[4:]
            self.at += 2
        if header.parents > 1:
            header.parents = max(2, len(self.line()) - len(self.line().lstrip(b"@")) - 1)
        header.lines = self.at - header.start
        return header

    def is_plain_header(self) -> bool:
        return self.line().startswith(b"--- ") and self.line(1).startswith(b"+++ ") and self.line(2).startswith(b"@@ ")

    def body(self, header: Header) -> None:
        """Read what a header announces: hunks, a binary block, or nothing but the header's own facts."""
        raw_old, raw_new = names(header)
        old, new = (path_text(name) if name else None for name in (raw_old, raw_new))
        if old is None and new is None:
            where = f"line {header.start + 1}: {excerpt(self.lines[header.start])}"
            self.problems.append(f"{where} names no file")
            return
        path, problems, notes = new or old, [], []
        is_binary = self.binary(path, problems, notes)
        hunks = [] if is_binary else self.hunks(header.parents, path, problems, notes)
        if not hunks and not is_binary and not problems and not header.says_change:
            problems.append(f"line {header.start + 1}: nothing follows the header of {path}")
            if header.lines == 1:  # git does not count such a header as a file
                self.problems += problems
                return
        if not hunks and not is_binary and header.hides_content:
            notes.append("its content is not in the patch")
        if header.parents > 1:
            notes.append(
                f"combined diff of a merge with {header.parents} parents; old numbers are the first parent's; "
                "git cannot apply it"
            )
        self.problems += problems
        file = FilePatch(old, new, hunks=tuple(hunks), notes=tuple(notes), problems=tuple(problems))
        self.files.append(_classified(file, header, is_binary))

    def binary(self, path: str, problems: list[str], notes: list[str]) -> bool:
        line = self.line()
        if line == b"GIT binary patch":
            self.at, sizes, broken = skip_binary(self.lines, self.at + 1)
            if broken:
                problems.append(f"binary data of {path} is broken: {broken}")
            notes.append(binary_note(sizes))
            return True
        if DIFFER.match(line):
            self.at += 1
            notes.append("binary; its content is not in the patch")
            return True
        return False

    def hunks(self, parents: int, path: str, problems: list[str], notes: list[str]) -> list[Hunk]:
        hunks = []
        while self.at < len(self.lines):
            if self.line().startswith(b"@@ ") or starts_hunk(self.line(), parents):
                if hunk := self.hunk(parents, path, problems, notes):
                    hunks.append(hunk)
            elif not hunks or not self.skip_surplus(parents, path, hunks[-1], problems, notes):
                break
        return hunks

    def hunk(self, parents: int, path: str, problems: list[str], notes: list[str]) -> Hunk | None:
        start, opened = self.at, open_hunk(self.line(), parents)
        self.at += 1
        if not opened:
            expected = "@@ -start,count +start,count @@"
            problems.append(
                f"line {start + 1}: {excerpt(self.lines[start])} of {path} is no hunk header, expected {expected}"
            )
            return None
        reader, hunk = opened
        while True:
            self.at = reader.take_run(self.lines, self.at)
            if self.at >= len(self.lines) or is_next_header(self.lines, self.at, reader):
                break
            raw = self.lines[self.at]
            if raw.startswith(b"\\ "):
                reader.end_without_newline()
            elif reader.is_full or not reader.take(raw):
                break
            elif raw == b"\r":
                note = "an empty context line has lost its blank before a CR; git refuses such a patch"
                notes += [] if note in notes else [note]
            self.at += 1
        if not reader.is_full:
            problems.append(self.why_short(start, hunk, path, reader.lines))
        elif not any(line.is_changed for line in reader.lines):
            notes.append(f"the hunk in line {start + 1} of the patch changes nothing")
        return dataclasses.replace(hunk, lines=tuple(reader.lines), header_line=start + 1)

    def why_short(self, start: int, hunk: Hunk, path: str, lines: list) -> str:
        old, new = sum(line.kind != "add" for line in lines), sum(line.kind != "del" for line in lines)
        if self.at >= len(self.lines):
            end = "then the patch ends"
        else:
            end = f"then line {self.at + 1} is {excerpt(self.lines[self.at])}"
            if ENCODED.search(self.lines[self.at]):
                end += " (quoted-printable mail text: decode it first)"
        return (
            f"line {start + 1}: the hunk @@ -{hunk.old_start},{hunk.old_count} +{hunk.new_start},{hunk.new_count} @@ "
            f"of {path} promises {hunk.old_count} old and {hunk.new_count} new lines, it has {old} and {new}, {end}"
        )

    def skip_surplus(self, parents: int, path: str, hunk: Hunk, problems: list[str], notes: list[str]) -> bool:
        """Lines after a full hunk that look like diff: outside its counts, so no part of the change.

        Returns: whether another hunk of this file follows them.
        """
        end = self.at
        while end < len(self.lines) and self.lines[end][:1] in (b"+", b"-", b" ", b"\\") and self._is_surplus(end):
            end += 1
        if end == self.at:
            return False
        more = end < len(self.lines) and starts_hunk(self.lines[end], parents)
        if not more and self.lines[self.at][:1] == b" ":
            return False
        count = f"{end - self.at} line{'s' * (end - self.at > 1)} after the hunk in line {hunk.header_line} of {path}"
        (problems if more else notes).append(f"line {self.at + 1}: {count} outside its counts; not shown as changes")
        self.prose_lines += end - self.at
        self.at = end
        return more

    def _is_surplus(self, at: int) -> bool:
        line = self.lines[at].rstrip()
        is_header = line.startswith(b"--- ") and at + 1 < len(self.lines) and self.lines[at + 1].startswith(b"+++ ")
        return line not in (b"--", b"---", b"-") and not is_header

    def prose(self) -> None:
        """Step over one line that belongs to no file; say so where it is a diff of a kind that is not read."""
        line = self.line()
        if starts_hunk(line) and open_hunk(line, 1):
            self.unread("a hunk without a file header")
        elif line.startswith(b"*** ") and self.line(1).startswith(b"--- "):
            self.unread("a context diff; only unified diffs are read")
        elif NORMAL.match(line) and self.line(1)[:2] in (b"< ", b"> ", b"<", b">"):
            self.unread("a diff without context ('normal'); only unified diffs are read")
        elif DIFFER.match(line):
            self.notes.append(f"line {self.at + 1} says: {excerpt(line)}")
        self.prose_lines += 1
        self.at += 1

    def unread(self, what: str) -> None:
        """A problem of this kind is said once, where it first stands."""
        if not any(known.endswith(what) for known in self.problems):
            self.problems.append(f"line {self.at + 1}: {what}")

    def why_no_diff(self) -> str:
        first = next((line for line in self.lines if line.strip()), b"")
        if any(ED.match(line) for line in self.lines) and b"." in self.lines:
            return "an ed script; only unified diffs are read"
        return f"no diff in {len(self.lines)} lines of text, which begin with {excerpt(first)}"


def _classified(file: FilePatch, header: Header, is_binary: bool) -> FilePatch:
    """Say what happened to the file and of what kind it is."""
    status = header.status
    hunks, modes = file.hunks, (header.old_mode, header.new_mode)
    if status is None and file.old_path is None:
        status = "added"
    elif status is None and file.new_path is None:
        status = "deleted"
    elif status is None and not header.is_git and len(hunks) == 1:
        lone = hunks[0]
        if (lone.old_start, lone.old_count) == (0, 0):
            status = "added"
        elif (lone.new_start, lone.new_count) == (0, 0):
            status = "deleted"
    if status is None:
        status = "mode" if not hunks and not is_binary and modes[0] != modes[1] else "modified"
    kind = "binary" if is_binary else "submodule" if "160000" in modes else "symlink" if "120000" in modes else "text"
    old = None if status == "added" else file.old_path or file.new_path
    new = None if status == "deleted" else file.new_path or file.old_path
    return dataclasses.replace(
        file,
        old_path=old,
        new_path=new,
        status=status,
        kind=kind,
        old_mode=header.old_mode,
        new_mode=header.new_mode,
        similarity=header.similarity,
        is_combined=header.parents > 1,
        new_blob=(header.new_id or b"").decode("ascii"),
    )
