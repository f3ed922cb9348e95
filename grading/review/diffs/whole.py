"""Two results over the whole file of the base, and where a line of their difference stands in a patch. Core."""

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

from grading.review.diffs.interdiff import Content, Interdiff, base_path, compared_lines, cut_hunks, interdiff, quoted
from grading.review.diffs.patch import FilePatch, Line, Side


class Own(NamedTuple):
    """A changed line of one candidate's patch; `of` is 0 for the left one, 1 for the right one."""

    of: int
    side: Side
    line: int


class Misfit(ValueError):
    """A patch says of a base line what does not stand there."""


def lines_of(data: bytes) -> list[Content]:
    """Returns: a file's lines as a patch has them: content and line end."""
    parts = data.split(b"\n")
    lines = [(part[:-1], "\r\n") if part.endswith(b"\r") else (part, "\n") for part in parts[:-1]]
    return [*lines, (parts[-1], "")] if parts[-1] else lines


def applied(base: list[Content], file: FilePatch) -> list[Content]:
    """What a file's patch makes of its base, exactly where it says.

    Raises:
        Misfit: a line of the base is not what the patch expects; names both.
    """
    result, at = [], 0
    for hunk in file.hunks:
        start = hunk.old_start - 1 if hunk.old_count else hunk.old_start
        result += base[at:start]
        at = start
        for line in hunk.lines:
            if line.kind != "add":
                found = base[at] if at < len(base) else None
                if found != (line.content, line.eol):
                    there = quoted(found) if found else "past its end"
                    raise Misfit(
                        f"line {at + 1} of the base is {there}, the patch has {quoted((line.content, line.eol))}"
                    )
                at += 1
            if line.kind != "del":
                result.append((line.content, line.eol))
    return result + base[at:]


def whole_interdiff(left: FilePatch | None, right: FilePatch | None, base: Mapping[str, bytes | None]) -> Interdiff:
    """`interdiff` with every line known: what either patch leaves out is read from the base.

    Args:
        left: its change by the left candidate; None leaves the file as it is on the base.
        right: likewise; not both None.
        base: path -> the file's bytes at the base commit, None where it does not exist there.
    Raises:
        Misfit: a patch does not fit the base.
    """
    found = interdiff(left, right)
    if any(file and (file.is_binary or file.is_combined or file.problems) for file in (left, right)):
        return found  # no lines to compare
    sides = [_result(file, other, base) for file, other in ((left, right), (right, left))]
    numbered = [[(line, n) for n, line in enumerate(lines, 1)] for lines in sides]
    hunks = tuple(cut_hunks(compared_lines(*numbered), b""))
    return dataclasses.replace(found, file=dataclasses.replace(found.file, hunks=hunks), why_not="")


def _result(file: FilePatch | None, other: FilePatch | None, base: Mapping[str, bytes | None]) -> list[Content]:
    start = _start(file) if file else base_path(other) if other.status not in ("added", "copied") else None
    lines = lines_of(base.get(start) or b"") if start else []
    return applied(lines, file) if file else lines


def _start(file: FilePatch) -> str | None:
    """The path whose content a file's patch starts from."""
    return None if file.status == "added" else file.old_path


def paths_needed(left: FilePatch | None, right: FilePatch | None) -> set[str]:
    """Returns: what of the base `whole_interdiff` reads."""
    found = {_start(file) for file in (left, right) if file}
    found |= {base_path(file) for file in (left, right) if file and file.status not in ("added", "copied")}
    return {path for path in found if path}


def own_line(left: FilePatch | None, right: FilePatch | None, line: Line) -> Own | None:
    """Where a changed line of the interdiff stands in a patch, so that it can be cited.

    A line that only one result has was added by its candidate, or taken away by the other one.
    """
    mine, number = (0, line.old_no) if line.kind == "del" else (1, line.new_no)
    files = (left, right)
    base_no = base_number(files[mine], number)
    if base_no is None:
        return Own(mine, "new", number)
    other = files[1 - mine]
    gone = {one.old_no for one in other.lines if one.kind == "del"} if other else set()
    return Own(1 - mine, "old", base_no) if base_no in gone else None


def base_number(file: FilePatch | None, number: int) -> int | None:
    """Returns: the number on the base of a line of the result; None for a line that the patch adds."""
    shift = 0
    for hunk in file.hunks if file else ():
        if number < hunk.new_start:
            break
        for line in hunk.lines:
            if line.new_no == number:
                return line.old_no if line.kind == "context" else None
        shift = _after(hunk.old_start, hunk.old_count) - _after(hunk.new_start, hunk.new_count)
    return number + shift


def _after(start: int, count: int) -> int:
    """The number of the line behind a hunk; `-5,0` stands after line 5."""
    return start + max(count, 1)
