"""What differs between the results of two candidates, from their patches alone. Core.

A patch leaves every line outside its hunks as it was, so where either patch shows a base line, both results are
known there. Between the hunks nothing is known and nothing is shown: there both results equal the base.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grading.review.diffs.alike import equal_blocks
from grading.review.diffs.patch import FilePatch, Hunk, Line, Patch
from grading.review.diffs.text import line_text, visible

CONTEXT_LINES = 3
SHORTEST_BLOB = 7  # git's shortest name of a blob that it takes for one
Pair = tuple[int | None, int | None]
Content = tuple[bytes, str]  # a line and its line end


@dataclass(frozen=True, slots=True)
class Interdiff:
    """`file` has the left result as its old side and the right one as its new; without hunks nothing differs in lines.

    `words` say what else differs (name, mode, existence) as (left, right), `why_not` why lines cannot be compared;
    `same` counts the places that both change alike.
    """

    file: FilePatch
    words: tuple[tuple[str, str], ...] = ()
    why_not: str = ""
    same: int = 0

    @property
    def is_equal(self) -> bool:
        return not self.file.hunks and not self.words and not self.why_not


def base_path(file: FilePatch) -> str:
    """Returns: the path that names a file on the base: where a rename starts; a new or copied file has its own."""
    return file.path if file.status in ("added", "copied") else file.old_path or file.path


def paired_files(left: Patch, right: Patch) -> list[Pair]:
    """Align the files of two patches by their path on the base.

    Args:
        left: parsed.
        right: parsed, of the same base.
    Returns:
        (index in left, index in right) in left's order, then what only right has; None where a side has no such file.
        A path that one patch has twice is paired first with first.
    """
    waiting: dict[str, list[int]] = {}
    for n, file in enumerate(right.files):
        waiting.setdefault(base_path(file), []).append(n)
    pairs: list[Pair] = []
    for n, file in enumerate(left.files):
        others = waiting.get(base_path(file))
        pairs.append((n, others.pop(0) if others else None))
    rest = sorted(n for others in waiting.values() for n in others)
    return pairs + [(None, n) for n in rest]


def interdiff(left: FilePatch | None, right: FilePatch | None) -> Interdiff:
    """Compare what two patches make of one file.

    Args:
        left: its change by the left candidate; None leaves it as it is on the base.
        right: likewise; not both None.
    Returns:
        Interdiff; line numbers are those of the two results.
    """
    paths = (_result_path(left, right), _result_path(right, left))
    shell = FilePatch(paths[0], paths[1])
    words = _other_words(left, right)
    if why_not := _why_not(left, right):
        return Interdiff(shell, words, why_not)
    hunks, same = [], 0
    offsets = [0, 0]
    for places in _regions(left, right):
        base, clash = _base_lines(places)
        if clash:
            return Interdiff(shell, words, clash)
        lines = compared_lines(*(_result(places, side, base, offsets) for side in (0, 1)))
        if any(line.is_changed for line in lines):
            hunks += cut_hunks(lines, places[0].hunk.section)
        else:
            same += 1
    kind = "symlink" if "symlink" in {file.kind for file in (left, right) if file} else "text"
    return Interdiff(dataclasses.replace(shell, hunks=tuple(hunks), kind=kind), words, same=same)


@dataclass(frozen=True, slots=True)
class _Place:
    """A hunk of one side (0 left, 1 right) as a half-open range of base lines, from 0."""

    side: int
    start: int
    end: int
    hunk: Hunk


def _places(file: FilePatch | None, side: int) -> Iterator[_Place]:
    for hunk in file.hunks if file else ():
        count = sum(line.kind != "add" for line in hunk.lines)
        start = hunk.old_start - 1 if hunk.old_count else hunk.old_start  # `-5,0` stands after line 5
        yield _Place(side, start, start + count, hunk)


def _regions(left: FilePatch | None, right: FilePatch | None) -> Iterator[list[_Place]]:
    """Hunks of both sides that overlap or touch."""
    region: list[_Place] = []
    for place in sorted([*_places(left, 0), *_places(right, 1)], key=lambda p: (p.start, p.end)):
        if region and place.start > max(p.end for p in region):
            yield region
            region = []
        region.append(place)
    if region:
        yield region


def _base_lines(places: Sequence[_Place]) -> tuple[dict[int, Content], str]:
    """What stands on the base where the hunks are; and where the two patches say different things of it."""
    base: dict[int, Content] = {}
    for place in places:
        at = place.start
        for line in place.hunk.lines:
            if line.kind == "add":
                continue
            if base.setdefault(at, (line.content, line.eol)) != (line.content, line.eol):
                return base, (
                    f"the two patches are not of one base: line {at + 1} is {quoted(base[at])} in one and "
                    f"{quoted((line.content, line.eol))} in the other"
                )
            at += 1
    return base, ""


def quoted(line: Content) -> str:
    """Returns: a line for a message, its line end said."""
    text = visible(line_text(line[0][:60])) + {"\r\n": "⟨CR⟩", "": " without a line end", "\n": ""}[line[1]]
    return f"“{text}”"


def _result(
    places: Sequence[_Place], side: int, base: dict[int, Content], offsets: list[int]
) -> list[tuple[Content, int]]:
    """One side's lines of a region with their numbers; `offsets` carries each side's shift on to the next region."""
    start, end = min(p.start for p in places), max(p.end for p in places)
    lines: list[tuple[Content, int]] = []
    at = start
    for place in [p for p in places if p.side == side]:
        lines += [(base[n], n + 1 + offsets[side]) for n in range(at, place.start)]
        lines += [((line.content, line.eol), line.new_no) for line in place.hunk.lines if line.kind != "del"]
        added = sum(line.kind != "del" for line in place.hunk.lines)
        first = place.hunk.new_start - 1 if place.hunk.new_count else place.hunk.new_start
        at, offsets[side] = place.end, first + added - place.end
    return lines + [(base[n], n + 1 + offsets[side]) for n in range(at, end)]


def compared_lines(left: list[tuple[Content, int]], right: list[tuple[Content, int]]) -> list[Line]:
    """Returns: both sides' numbered lines as one: del where only left has it, add where only right has it."""
    lines, i, j = [], 0, 0
    blocks = equal_blocks([content for content, _ in left], [content for content, _ in right])
    for start_left, start_right, many in [*blocks, (len(left), len(right), 0)]:
        lines += [Line("del", no, None, *content) for content, no in left[i:start_left]]
        lines += [Line("add", None, no, *content) for content, no in right[j:start_right]]
        i, j = start_left + many, start_right + many
        pairs = zip(left[start_left:i], right[start_right:j], strict=True)
        lines += [Line("context", old, new, *content) for (content, old), (_, new) in pairs]
    return lines


def cut_hunks(lines: list[Line], section: bytes) -> Iterator[Hunk]:
    """Cut a region to its changes with three lines around them."""
    wanted: set[int] = set()
    for n, line in enumerate(lines):
        if line.is_changed:
            wanted.update(range(n - CONTEXT_LINES, n + CONTEXT_LINES + 1))
    part: list[Line] = []
    for n, line in enumerate([*lines, None]):
        if line is not None and n in wanted:
            part.append(line)
        elif part:
            yield _hunk(part, section)
            part = []


def _hunk(lines: list[Line], section: bytes) -> Hunk:
    olds = [line.old_no for line in lines if line.old_no is not None]
    news = [line.new_no for line in lines if line.new_no is not None]
    return Hunk(olds[0] if olds else 0, len(olds), news[0] if news else 0, len(news), section, tuple(lines))


def _result_path(file: FilePatch | None, other: FilePatch | None) -> str | None:
    if file is not None:
        return file.new_path
    return base_path(other) if other.old_path and other.status != "copied" else None


def _why_not(left: FilePatch | None, right: FilePatch | None) -> str:
    files = [file for file in (left, right) if file]
    if any(file.is_binary for file in files):
        if len(files) == 2 and _is_one_blob(left, right):
            return ""
        return "binary: its bytes are not compared"
    if any(file.is_combined for file in files):
        return "one side is a combined diff of a merge: its base is not one file"
    copied = {file.old_path for file in files if file.status == "copied"}
    if copied and (len(copied) > 1 or len(files) == 1 or left.status != right.status):
        return "copied from another file: the lines outside the hunks are not in the patch"
    renamed = [file for file in files if file.status == "renamed"]
    if renamed and any(file.status == "deleted" for file in files):
        return "renamed on one side, deleted on the other"
    if any(file.problems for file in files):
        return f"a patch is broken here: {next(file for file in files if file.problems).problems[0]}"
    return ""


def _other_words(left: FilePatch | None, right: FilePatch | None) -> tuple[tuple[str, str], ...]:
    """What differs beside the lines, as (left, right)."""
    there = [_is_there(left, right), _is_there(right, left)]
    if there != [True, True]:
        words = ["has the file" if one else "no such file" for one in there]
        return ((words[0], words[1]),) if there[0] != there[1] else ()
    names = [file.path if file else base_path(other) for file, other in ((left, right), (right, left))]
    found = [(f"named {names[0]}", f"named {names[1]}")] if names[0] != names[1] else []
    modes = [_mode(left, right), _mode(right, left)]
    if all(modes) and modes[0] != modes[1]:
        found.append((f"mode {modes[0]}", f"mode {modes[1]}"))
    return tuple(found)


def _is_there(file: FilePatch | None, other: FilePatch | None) -> bool:
    if file is None:
        return other.status not in ("added", "copied")
    return file.status != "deleted"


def _mode(file: FilePatch | None, other: FilePatch | None) -> str | None:
    return file.new_mode if file else other.old_mode


def _is_one_blob(left: FilePatch, right: FilePatch) -> bool:
    one, other = left.new_blob, right.new_blob
    length = min(len(one), len(other))
    return length >= SHORTEST_BLOB and one[:length] == other[:length]
