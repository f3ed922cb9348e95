"""A file's patch as HTML, built with Python strings: a template loop is twice as slow (stack.md 2). Core.

Classes only: no style attribute, no script. Every byte of a patch goes through `escape`.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from html import escape

from grading.review.diffs.facts import header_facts
from grading.review.diffs.hunk_text import read_hunk
from grading.review.diffs.patch import FilePatch, Hunk
from grading.review.diffs.rows import MAX_INDENT, Cited, RowOptions, Rows, columns_of
from grading.review.diffs.text import texts_of, visible

MIN_INDENT_NOTE = 4
HALF = '<col class="c-ln"><col class="c-sign"><col><col class="c-share">'


def file_head_html(file: FilePatch, *, touched_by: str = "") -> str:
    """Draw the header of a file.

    Args:
        file: parsed.
        touched_by: who else touches it, in words such as "only C"; "" says nothing.
    Returns:
        Path, facts in words, added and removed lines.
    """
    path = escape(visible(file.path))
    facts = escape(visible(" · ".join((*header_facts(file), *file.problems))))
    note = f'<span class="second" title="{facts}">{facts}</span>' if facts else ""
    only = f'<span class="touched-by">{escape(touched_by)}</span>' if touched_by else ""
    return (
        f'<header class="diff-file-head"><h3 class="path" title="{path}"><bdi>{path}</bdi></h3>{only}{note}'
        f'<span class="adds">+{file.added:,}</span><span class="dels">−{file.removed:,}</span></header>'
    )


def file_rows_html(file: FilePatch, *, cited: Cited, options: RowOptions) -> str:
    """The rows of a file as one table, a `tbody` a hunk.

    Args:
        file: parsed, with hunks.
        cited: (side, line) -> numbers of the evidence that cites it.
        options: see RowOptions.
    Returns:
        HTML of `<table class="diff">`; rows beyond the window are counted in a last row with `data-next`. With `fold`
        the hunks that stay open come first.
    """
    drawing, columns = _Drawing(file, cited, options), 8 if options.view == "split" else 4
    how = "before and after side by side" if options.view == "split" else "unified"
    parts = [
        f'<table class="diff{" is-split" if options.view == "split" else ""}" dir="ltr">'
        f'<caption class="visually-hidden">{escape(options.caption)}, {how}</caption>'
        f"<colgroup>{HALF * (columns // 4)}</colgroup>"
    ]
    hunks = list(_window(file.hunks, options.first_row, options.max_rows))
    if options.fold:
        hunks.sort(key=lambda hunk: drawing.fold_count(hunk) > 0)  # the unusual first, each kind in its order
    parts += [drawing.hunk(hunk, columns) for hunk in hunks]
    end = options.first_row + options.max_rows
    if end < file.line_count:
        more = f'<td colspan="{columns}">⋯ {file.line_count - end:,} more lines</td>'
        parts.append(f'<tbody class="fold-row"><tr data-next="{end}">{more}</tr></tbody>')
    return "".join(parts) + "</table>"


def _window(hunks: Sequence[Hunk], first: int, count: int) -> Iterator[Hunk]:
    """The hunks cut to `count` lines from line `first` of the file's patch on."""
    at = 0
    for hunk in hunks:
        lines = hunk.lines[max(first - at, 0) : max(first + count - at, 0)]
        at += len(hunk.lines)
        if lines:
            yield dataclasses.replace(hunk, lines=lines)


class _Drawing:
    """One file while it is drawn: what every hunk needs."""

    def __init__(self, file: FilePatch, cited: Cited, options: RowOptions):
        self.path, self.codecs, self.cited, self.options = file.path, texts_of(file), cited, options
        self.rows = Rows(file.path, cited, options)

    def hunk(self, hunk: Hunk, columns: int) -> str:
        options = self.options
        text = read_hunk(
            self.path,
            hunk,
            self.codecs,
            highlight=options.highlight,
            word_marks=options.word_marks,
            is_late=options.is_late,
        )
        shared = min((columns_of(line) for line in text.texts if line.strip()), default=0)
        common = self.fold_count(hunk)
        start = f'<tbody class="g{min(shared, MAX_INDENT)}"{" hidden" if common else ""}>'
        head, rows = _hunk_head(hunk, shared, columns), self.rows.draw(hunk, text, shared)
        return f"{self.fold_row(hunk, common, columns)}{start}{head}{rows}</tbody>"

    def fold_row(self, hunk: Hunk, common: int, columns: int) -> str:
        """The button that stands for a folded hunk; nothing for an open one."""
        if not common:
            return ""
        changed = sum(line.is_changed for line in hunk.lines)
        label = f"@@ {hunk.new_start} · {changed} changed lines · same in {common} of {self.options.shares.of}"
        inner = f'<span class="dots">⋯</span> {label}'
        button = f'<button type="button" class="fold-toggle" aria-expanded="false">{inner}</button>'
        return f'<tbody class="fold-row"><tr><td colspan="{columns}">{button}</td></tr></tbody>'

    def fold_count(self, hunk: Hunk) -> int:
        """How many candidates share a hunk that folds; 0 where it stays open: it is unusual, short, or cited."""
        if not self.options.fold or any((line.side, line.number) in self.cited for line in hunk.lines):
            return 0
        return self.options.shares.folds(self.path, hunk.lines)


def _hunk_head(hunk: Hunk, shared: int, columns: int) -> str:
    note = ""
    if shared >= MIN_INDENT_NOTE:
        title = f"{shared} columns of indentation that every line shares are hidden at this width"
        note = f'<span class="indent-note" title="{title}">⇤ {shared}</span>'
    section = escape(visible(hunk.section.decode("utf-8", errors="replace"))) or _place_words(hunk)
    at = f"@@ -{hunk.old_start},{hunk.old_count} +{hunk.new_start},{hunk.new_count} @@"
    rest = f'<td colspan="{columns - 2}">{note}{section}</td>'
    return f'<tr class="hunk" title="{at}"><td class="ln">⋯</td><td></td>{rest}</tr>'


def _place_words(hunk: Hunk) -> str:
    """Where a hunk stands that has no section: its own lines say it, since a window may begin inside it."""
    numbers = [line.number for line in hunk.lines if line.number is not None]
    return f"from line {numbers[0]}" if numbers and numbers[0] > 1 else "top of file"
