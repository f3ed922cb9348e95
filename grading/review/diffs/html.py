"""A file's patch as HTML rows, built with Python strings: a template loop is twice as slow (stack.md 2). Core.

Classes only: no style attribute, no script. Every byte of a patch goes through `escape`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from grading.review.diffs.facts import header_facts
from grading.review.diffs.hunk_text import HunkText, read_hunk
from grading.review.diffs.patch import FilePatch, Hunk, Line, Side
from grading.review.diffs.shares import Shares
from grading.review.diffs.spans import paint
from grading.review.diffs.text import texts_of, visible

Cited = Mapping[tuple[Side, int], Sequence[int | str]]

SIGNS = {"add": "+", "del": "−", "context": ""}
ROW_CLASSES = {"add": "is-add", "del": "is-del", "context": ""}
MAX_INDENT = 64  # the style sheet has i0..i64 and g0..g64
MIN_INDENT_NOTE = 4
MIN_FOLD_LINES = 2
LEAD = re.compile(r"[ \t]*")
TAB_COLUMNS = 4
TABLE = (
    '<table class="diff" dir="ltr"><caption class="visually-hidden">Changes, unified</caption>'
    '<colgroup><col class="c-ln"><col class="c-sign"><col><col class="c-share"></colgroup>'
)


@dataclass(frozen=True, slots=True)
class RowOptions:
    """How a file is drawn.

    `letter` and `index` (of the file in `Patch.files`) make the row ids; `evidence` begins the id of an evidence item.
    `first_row` and `max_rows` cut a window out of a long file; `fold` hides hunks that half of the candidates share;
    `is_late` (the edge owns the clock) stops colouring, without it only hunks of up to 4,000 characters are coloured.
    """

    letter: str
    index: int
    evidence: str = "evidence"
    shares: Shares = Shares()
    fold: bool = False
    word_marks: bool = True
    highlight: bool = True
    is_late: Callable[[], bool] | None = None
    first_row: int = 0
    max_rows: int = 4_000


def row_id(letter: str, index: int, side: Side, line: int) -> str:
    """Returns: the id of a line's row, the target of a citation's link: `C-f0-R12`, on the old side `C-f0-L12`."""
    return f"{letter}-f{index}-{'R' if side == 'new' else 'L'}{line}"


def file_head_html(file: FilePatch) -> str:
    """Returns: the header of a file: path, facts in words, added and removed lines."""
    path = escape(visible(file.path))
    facts = escape(visible(" · ".join((*header_facts(file), *file.problems))))
    note = f'<span class="second" title="{facts}">{facts}</span>' if facts else ""
    return (
        f'<header class="diff-file-head"><span class="path" title="{path}"><bdi>{path}</bdi></span>{note}'
        f'<span class="adds">+{file.added:,}</span><span class="dels">−{file.removed:,}</span></header>'
    )


def file_rows_html(file: FilePatch, *, cited: Cited, options: RowOptions) -> str:
    """The rows of a file as one table, a `tbody` a hunk.

    Args:
        file: parsed, with hunks.
        cited: (side, line) -> numbers of the evidence that cites it.
        options: see RowOptions.
    Returns:
        HTML of `<table class="diff">`; rows beyond the window are counted in a last row with `data-next`.
    """
    drawing = _Drawing(file, cited, options)
    parts = [TABLE]
    for hunk in _window(file.hunks, options.first_row, options.max_rows):
        parts.append(drawing.hunk(hunk))
    end = options.first_row + options.max_rows
    if end < file.line_count:
        more = f'<td colspan="4">⋯ {file.line_count - end:,} more lines</td>'
        parts.append(f'<tbody class="fold-row"><tr data-next="{end}">{more}</tr></tbody>')
    return "".join(parts) + "</table>"


def _window(hunks: Sequence[Hunk], first: int, count: int) -> Iterator[Hunk]:
    """The hunks cut to `count` lines from line `first` of the file's patch on."""
    at = 0
    for hunk in hunks:
        lines = hunk.lines[max(first - at, 0) : max(first + count - at, 0)]
        at += len(hunk.lines)
        if lines:
            yield Hunk(hunk.old_start, hunk.old_count, hunk.new_start, hunk.new_count, hunk.section, lines)


class _Drawing:
    """One file while it is drawn: what every row needs."""

    def __init__(self, file: FilePatch, cited: Cited, options: RowOptions):
        self.path = file.path
        self.codecs = texts_of(file)
        self.cited = cited
        self.options = options
        self.ids: set[str] = set()
        self.letter = escape(options.letter)
        self.evidence = escape(options.evidence)

    def hunk(self, hunk: Hunk) -> str:
        options = self.options
        text = read_hunk(
            self.path,
            hunk,
            self.codecs,
            highlight=options.highlight,
            word_marks=options.word_marks,
            is_late=options.is_late,
        )
        indents = [_columns(line) for line in text.texts if line.strip()]
        shared = min(indents, default=0)
        rows = "".join(self.row(line, text, n, shared) for n, line in enumerate(hunk.lines))
        common = self.fold_count(hunk)
        start = f'<tbody class="g{min(shared, MAX_INDENT)}"{" hidden" if common else ""}>'
        return f"{self.fold_row(hunk, common)}{start}{_hunk_head(hunk, shared)}{rows}</tbody>"

    def fold_row(self, hunk: Hunk, common: int) -> str:
        """The button that stands for a folded hunk; nothing for an open one."""
        if not common:
            return ""
        changed = sum(line.is_changed for line in hunk.lines)
        label = f"@@ {hunk.new_start} · {changed} changed lines · same in {common} of {self.options.shares.of}"
        inner = f'<span class="dots">⋯</span> {label}'
        button = f'<button type="button" class="fold-toggle" aria-expanded="false">{inner}</button>'
        return f'<tbody class="fold-row"><tr><td colspan="4">{button}</td></tr></tbody>'

    def fold_count(self, hunk: Hunk) -> int:
        """How many candidates share a hunk that folds; 0 where it stays open: it is unusual, short, or cited."""
        if not self.options.fold or any((line.side, line.number) in self.cited for line in hunk.lines):
            return 0
        common = self.options.shares.common(self.path, hunk.lines)
        changed = sum(line.is_changed for line in hunk.lines)
        # More than one: a lone candidate shares every change with itself.
        is_shared = common > 1 and 2 * common >= self.options.shares.of
        return common if is_shared and changed >= MIN_FOLD_LINES else 0

    def row(self, line: Line, text: HunkText, n: int, shared: int) -> str:
        number = line.number
        numbers = self.cited.get((line.side, number), ()) if number is not None else ()
        classes = f"{ROW_CLASSES[line.kind]} is-cited".strip() if numbers else ROW_CLASSES[line.kind]
        name = f"{self.letter}-f{self.options.index}-{'L' if line.kind == 'del' else 'R'}{number}"
        identity = f' id="{name}"' if number is not None and name not in self.ids else ""
        self.ids.add(name)
        marks = "".join(self.cite_mark(escape(str(mark))) for mark in numbers)
        sign = escape(line.marks.replace("-", "−")) if line.marks else SIGNS[line.kind]
        style = f' class="{classes}"' if classes else ""
        return (
            f'<tr{style}{identity}><td class="ln">{"" if number is None else number}</td><td class="sign">{sign}</td>'
            f"{_code_cell(text, n, shared, marks)}{self.share_cell(line)}</tr>"
        )

    def cite_mark(self, number: str) -> str:
        return f'<a class="cite-mark" href="#{self.evidence}-{number}" aria-label="evidence {number}">{number}</a>'

    def share_cell(self, line: Line) -> str:
        shares = self.options.shares
        if not line.is_changed or not shares.of:
            return '<td class="share"></td>'
        count = shares.count(self.path, line)
        title = f"{count} of {shares.of} candidates make this change"
        return f'<td class="share" title="{title}">{count if count > 1 else ""}</td>'


def _hunk_head(hunk: Hunk, shared: int) -> str:
    note = ""
    if shared >= MIN_INDENT_NOTE:
        title = f"{shared} columns of indentation that every line shares are hidden at this width"
        note = f'<span class="indent-note" title="{title}">⇤ {shared}</span>'
    section = escape(visible(hunk.section.decode("utf-8", errors="replace"))) or "top of file"
    at = f"@@ -{hunk.old_start},{hunk.old_count} +{hunk.new_start},{hunk.new_count} @@"
    return f'<tr class="hunk" title="{at}"><td class="ln">⋯</td><td></td><td colspan="2">{note}{section}</td></tr>'


def _columns(text: str) -> int:
    return len(LEAD.match(text).group().expandtabs(TAB_COLUMNS))


def _code_cell(text: HunkText, n: int, shared: int, marks: str) -> str:
    """Indentation is a class, so that wrapped lines hang; the real white space stays for copying."""
    line = text.texts[n]
    lead = LEAD.match(line).group() if line.strip() else ""
    indent = min(max(_columns(line) - shared, 0), MAX_INDENT) if lead or line.strip() else 0
    code = paint(text.tokens[n], text.ranges.get(n, ()), len(lead))
    return f'<td class="code i{indent}">{marks}<span class="lead">{lead}</span>{code}{text.tails[n]}</td>'
