"""What a grader's tools show of patches, events and files: numbered as citations need it, cut with the way on. Core."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from grading.grader.overview import file_words
from grading.integrity.events import event_text
from grading.review.diffs.facts import header_facts
from grading.review.diffs.patch import FilePatch, Line, Patch
from grading.review.diffs.text import line_text, texts_of, visible
from grading.review.pages.event_words import exit_code_of, kind_of

ROOM_CHARS = 12_000  # of one answer
WIDE_CHARS = 400  # of one line
EVENT_CHARS = 3_000  # of one event among several
FILES_LISTED = 40
NOT_KEPT = {"kind": "system", "text": "(this event was not kept)"}
COUNTED_LINES = 50_000  # behind a cut, to say how much is missing


@dataclass(frozen=True)
class Piece:
    """A text for the model: `body` is of a candidate or the repository, `cut` is our word on what is missing."""

    body: str
    cut: str = ""


def listed(lines: Iterable[str], *, start: int = 1, room: int = ROOM_CHARS) -> Piece:
    """Show a listing from one of its lines on, up to a size.

    Args:
        lines: all of the listing.
        start: the first line to show, counted from 1.
        room: characters at most.
    Returns:
        The lines that fit, at least one, and what was left out; an empty body if there is no such line.
    """
    kept, size, rest = [], 0, iter(lines)
    for line in islice(rest, start - 1, None):
        if kept and size + len(line) + 1 > room:
            more = 1 + sum(1 for _ in islice(rest, COUNTED_LINES))
            of = f"{start + len(kept) + more - 1}{' or more' if more > COUNTED_LINES else ''}"
            cut = f"Lines {start}-{start + len(kept) - 1} of {of} are shown; go on with start={start + len(kept)}."
            return Piece("\n".join(kept), cut)
        kept.append(line)
        size += len(line) + 1
    return Piece("\n".join(kept))


def cut_line(text: str, offset: int = 0, wide: int = WIDE_CHARS) -> str:
    """Returns: a line made visible, from a character on, with how many characters follow."""
    left = len(text) - offset - wide
    return visible(text[offset : offset + wide]) + (f" …(+{left} characters)" if left > 0 else "")


# ---- patches ----


def patch_lines(files: Sequence[FilePatch], offset: int = 0) -> Iterator[str]:
    """Give a patch line by line, each changed line with its side and number as a citation names them.

    Args:
        files: of a parsed patch.
        offset: characters to skip in each line.
    Returns:
        Lines of text: per file a head with its paths, per hunk a head, then `new 12 | + text`.
    """
    for file in files:
        yield f"file {file_words(file)}"
        if file.old_path and file.new_path and file.old_path != file.new_path:
            yield f"  path on side new: {visible(file.new_path)}; path on side old: {visible(file.old_path)}"
        if said := "; ".join(header_facts(file)):
            yield f"  ({visible(said)})"
        codecs = texts_of(file)
        for hunk in file.hunks:
            yield f"  @@ old {hunk.old_start}+{hunk.old_count}, new {hunk.new_start}+{hunk.new_count} @@"
            for line in hunk.lines:
                yield changed_line(line, line_text(line.content, codecs[line.side]), offset)


def changed_line(line: Line, text: str, offset: int = 0) -> str:
    """Returns: one line of a hunk with what cites it; a context line has its number and no side, so nobody cites it."""
    shown = cut_line(text, offset)
    if line.kind == "context":
        return f"    {line.new_no:>6} |   {shown}"
    return f"{line.side} {line.number or 0:>6} | {'-' if line.kind == 'del' else '+'} {shown}"


def picked_files(patch: Patch, path: str) -> list[FilePatch]:
    """Returns: files of a patch with this path on either side, or else with a path that ends in it."""
    exact = [file for file in patch.files if path in (file.new_path, file.old_path)]
    return exact or [file for file in patch.files if file.path.endswith("/" + path.lstrip("/"))]


def paths_words(paths: Sequence[str]) -> str:
    """Returns: paths in words, at most 40 of them."""
    more = f" and {len(paths) - FILES_LISTED} more" if len(paths) > FILES_LISTED else ""
    return (", ".join(visible(path[:200]) for path in paths[:FILES_LISTED]) or "none") + more


# ---- events ----


def events_shown(
    event: Callable[[int], Mapping[str, Any] | None],
    start: int,
    stop: int,
    count: int,
    *,
    offset: int = 0,
    room: int = ROOM_CHARS,
) -> Piece:
    """Show events from `start` up to `stop`, each under a head with its index: the words below it are what one quotes.

    Args:
        event: index -> the event, scrubbed.
        start, stop: indexes from 0, `stop` excluded.
        count: how many events there are.
        offset: characters to skip in each.
        room: characters at most, all together.
    Returns:
        The events that fit, at least one, and what was left out.
    """
    stop, pieces, size, long_ones = min(stop, count), [], 0, []
    each = room if stop - start == 1 else min(room, EVENT_CHARS)
    for index in range(start, stop):
        here = event(index) or NOT_KEPT
        text = event_text(here)
        piece = f"[event {index}] {_head(here)}\n{_visible_lines(text[offset : offset + each])}"
        if pieces and size + len(piece) > room:
            return Piece("\n".join(pieces), _cut_words(start, index, stop, count, long_ones))
        if len(text) > offset + each:
            long_ones.append((index, offset + each, len(text)))
        pieces.append(piece)
        size += len(piece) + 1
    return Piece("\n".join(pieces), _cut_words(start, stop, stop, count, long_ones))


def _head(event: Mapping[str, Any]) -> str:
    code = exit_code_of(event)
    return kind_of(event) + (f", exit {code}" if code is not None else "")


def _visible_lines(text: str) -> str:
    return "\n".join(visible(line) for line in text.split("\n"))


def _cut_words(start: int, shown_to: int, stop: int, count: int, long_ones: Sequence[tuple[int, int, int]]) -> str:
    words = []
    if shown_to < stop:
        words.append(f"Events {start}-{shown_to - 1} of those asked for are shown; go on with start={shown_to}.")
    elif stop < count:
        words.append(f"The rollout has {count} events; go on with start={stop}.")
    for index, at, size in long_ones[:5]:
        words.append(
            f"Event {index} is cut at {at} of {size} characters: start={index}, stop={index + 1}, offset={at}."
        )
    if len(long_ones) > 5:
        words.append(f"{len(long_ones) - 5} more events are cut likewise.")
    return " ".join(words)


def bytes_lines(data: bytes) -> list[str]:
    """Returns: the lines of a file or log as text; a last line without its end counts."""
    lines = data.split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    return [line_text(line.removesuffix(b"\r")) for line in lines]
