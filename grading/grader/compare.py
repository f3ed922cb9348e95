"""Two candidates' changes on one base, side by side: what both do, and what only one of them does. Core."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grading.grader.overview import file_words
from grading.grader.tool_texts import changed_line
from grading.review.diffs.patch import FilePatch, Hunk, Line, Patch
from grading.review.diffs.shares import line_key
from grading.review.diffs.text import line_text, texts_of, visible


@dataclass(frozen=True)
class Compared:
    """One of the two: its letter and its patch."""

    letter: str
    patch: Patch


def compared(one: Compared, other: Compared, path: str | None = None) -> Iterator[str]:
    """Compare two candidates.

    Args:
        one, other: whose patches apply to the same base.
        path: only this file, by its path on either side.
    Returns:
        Lines of text: per file who changes it, then per region of the base the changed lines of each with the side and
        number a citation needs. `=` marks a line that both change alike; it is shown once, with the first's number.
    """
    if one.patch == other.patch and not one.patch.problems:
        yield f"{one.letter} and {other.letter} make the same changes."
    of_one, of_other = _by_base(one.patch), _by_base(other.patch)
    for old in dict.fromkeys((*of_one, *of_other)):
        ours, theirs = of_one.get(old, []), of_other.get(old, [])
        if path is not None and not any(path in (f.new_path, f.old_path) for f in (*ours, *theirs)):
            continue
        if ours and theirs:
            yield f"file {visible(old)}: {_words(one, ours)}; {_words(other, theirs)}"
            yield from _both(one, ours, other, theirs)
        else:
            side, files = (one, ours) if ours else (other, theirs)
            yield f"file {visible(old)}: only {_words(side, files)}"
            for file in files:
                yield from _alone(side, file)


def _by_base(patch: Patch) -> dict[str, list[FilePatch]]:
    """Files by their path in the base; a new file goes by its new path."""
    found: dict[str, list[FilePatch]] = {}
    for file in patch.files:
        found.setdefault(file.old_path or file.path, []).append(file)
    return found


def _words(side: Compared, files: Sequence[FilePatch]) -> str:
    return f"{side.letter} {', '.join(file_words(file) for file in files)}"


def _alone(side: Compared, file: FilePatch) -> Iterator[str]:
    codecs = texts_of(file)
    for line in file.lines:
        if line.is_changed:
            yield f"  {side.letter} {changed_line(line, line_text(line.content, codecs[line.side]))}"


def _both(one: Compared, ours: Sequence[FilePatch], other: Compared, theirs: Sequence[FilePatch]) -> Iterator[str]:
    mine = [(hunk, file) for file in ours for hunk in file.hunks]
    yours = [(hunk, file) for file in theirs for hunk in file.hunks]
    keys = {side: _keys(hunks) for side, hunks in ((one.letter, mine), (other.letter, yours))}
    common = keys[one.letter] & keys[other.letter]
    for first, last, here, there in _regions(mine, yours):
        yield f"  around old lines {first}-{last}:"
        for hunk, file in here:
            yield from _changes(one.letter, hunk, file, common, once=False)
        for hunk, file in there:
            yield from _changes(other.letter, hunk, file, common, once=True)


Placed = tuple[Hunk, FilePatch]


def _keys(hunks: Sequence[Placed]) -> set:
    return {line_key("", line) for hunk, _ in hunks for line in hunk.lines if line.is_changed}


def _changes(letter: str, hunk: Hunk, file: FilePatch, common: set, *, once: bool) -> Iterator[str]:
    """A hunk's changed lines; those in common carry `=`, or are only counted where `once` says they were shown."""
    codecs, hidden = texts_of(file), []
    for line in hunk.lines:
        if not line.is_changed:
            continue
        if line_key("", line) not in common:
            yield f"  {letter}   {_line(line, codecs)}"
        elif once:
            hidden.append(line)
        else:
            yield f"  {letter} = {_line(line, codecs)}"
    if hidden:
        yield f"  {letter}   and {len(hidden)} lines as marked with = ({_numbers(hidden)})"


def _numbers(lines: Sequence[Line]) -> str:
    """Sides and numbers of lines, runs of them joined."""
    runs: list[list] = []
    for line in lines:
        if runs and (runs[-1][0], runs[-1][2]) == (line.side, (line.number or 0) - 1):
            runs[-1][2] = line.number
        else:
            runs.append([line.side, line.number or 0, line.number or 0])
    return ", ".join(f"{side} {first}" if first == last else f"{side} {first}-{last}" for side, first, last in runs)


def _line(line: Line, codecs) -> str:
    return changed_line(line, line_text(line.content, codecs[line.side]))


def _regions(mine: Sequence[Placed], yours: Sequence[Placed]) -> Iterator[tuple[int, int, list[Placed], list[Placed]]]:
    """Join hunks of both that touch or overlap on the base to regions, in the order of the base."""
    placed = [
        (h.old_start, h.old_start + max(h.old_count, 1) - 1, n, h, f)
        for n, side in enumerate((mine, yours))
        for h, f in side
    ]
    placed.sort(key=lambda at: (at[0], at[2], at[1]))
    region: tuple[int, int, list[Placed], list[Placed]] | None = None
    for first, last, who, hunk, file in placed:
        if region is None or first > region[1] + 1:
            if region is not None:
                yield region
            region = (first, last, [], [])
        region = (region[0], max(region[1], last), region[2], region[3])
        region[2 + who].append((hunk, file))
    if region is not None:
        yield region
