"""A file's changes without those that change white space only. Core."""

import dataclasses
from collections.abc import Collection, Sequence

from grading.review.diffs.alike import equal_blocks
from grading.review.diffs.patch import FilePatch, Line, Side
from grading.review.diffs.text import Utf16, text_of, texts_of

BLANKS = b" \t\r\v\f"  # git's; a no-break space is a character that one should see
NO_BLANKS = str.maketrans("", "", BLANKS.decode())


def without_blank_changes(file: FilePatch, *, keep: Collection[tuple[Side, int]] = ()) -> tuple[FilePatch, int]:
    """Take lines that differ in white space only for equal, as `git diff -w` does.

    Args:
        file: parsed; of a merge nothing is hidden.
        keep: (side, line) that stay a change: they are cited.
    Returns:
        (the file, how many pairs of lines are hidden). Such a pair becomes a context line with the new side's text; a
        hunk without another change is gone. Added and removed blank lines stay.
    """
    if file.is_combined or not file.hunks:
        return file, 0
    codecs, hidden, hunks = texts_of(file), 0, []
    for hunk in file.hunks:
        lines, many = _quiet(hunk.lines, codecs, keep)
        hidden += many
        if any(line.is_changed for line in lines):
            hunks.append(dataclasses.replace(hunk, lines=tuple(lines)))
    return (dataclasses.replace(file, hunks=tuple(hunks)), hidden) if hidden else (file, 0)


def _quiet(lines: Sequence[Line], codecs: dict[Side, Utf16 | None], keep) -> tuple[list[Line], int]:
    quiet, hidden, at = [], 0, 0
    while at < len(lines):
        end = at
        while end < len(lines) and lines[end].is_changed:
            end += 1
        if end == at:
            quiet.append(lines[at])
            at += 1
            continue
        olds = [line for line in lines[at:end] if line.kind == "del"]
        news = [line for line in lines[at:end] if line.kind == "add"]
        keys = [[_key(line, codecs, keep) for line in side] for side in (olds, news)]
        done_old = done_new = 0
        for i, j, many in [*equal_blocks(*keys), (len(olds), len(news), 0)]:
            quiet += [*olds[done_old:i], *news[done_new:j]]
            pairs = zip(olds[i : i + many], news[j : j + many], strict=True)
            quiet += [Line("context", old.old_no, new.new_no, new.content, new.eol) for old, new in pairs]
            done_old, done_new = i + many, j + many
            hidden += many
        at = end
    return quiet, hidden


def _key(line: Line, codecs: dict[Side, Utf16 | None], keep) -> object:
    if (line.side, line.number) in keep:
        return line.kind, line.number  # equal to nothing
    if codecs[line.side]:
        return text_of(line, codecs).translate(NO_BLANKS).encode()
    return line.content.translate(None, BLANKS)
