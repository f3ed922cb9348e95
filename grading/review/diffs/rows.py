"""One hunk's lines as table rows: unified, or the two sides beside each other. Core.

Classes only: no style attribute, no script. Every byte of a patch goes through `escape`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from grading.review.diffs.hunk_text import HunkText
from grading.review.diffs.patch import Hunk, Line, Side
from grading.review.diffs.shares import Shares
from grading.review.diffs.spans import paint

Cited = Mapping[tuple[Side, int], Sequence[int | str]]
View = Literal["unified", "split"]

SIGNS = {"add": "+", "del": "−", "context": ""}
ROW_CLASSES = {"add": "is-add", "del": "is-del", "context": ""}
MAX_INDENT = 64  # the style sheet has i0..i64 and g0..g64
LEAD = re.compile(r"[ \t]*")
TAB_COLUMNS = 4
NOTHING = '<td class="nothing" colspan="4"></td>'


@dataclass(frozen=True, slots=True)
class RowOptions:
    """How a file is drawn.

    `letter` and `index` (of the file in `Patch.files`) make the row ids; `evidence` begins the id of an evidence item.
    `first_row` and `max_rows` cut a window out of a long file; `fold` hides hunks that half of the candidates share,
    and puts the others first; `is_late` (the edge owns the clock) stops colouring, without it only hunks of up to
    4,000 characters are coloured; `caption` says what the changes are from and to; `cites` names the line of a patch
    that a changed line comes from, where that is not plain (an interdiff).
    """

    letter: str
    index: int
    evidence: str = "evidence"
    shares: Shares = Shares()
    fold: bool = False
    view: View = "unified"
    caption: str = "Changes"
    word_marks: bool = True
    highlight: bool = True
    is_late: Callable[[], bool] | None = None
    first_row: int = 0
    max_rows: int = 4_000
    cites: Callable[[Line], str] | None = None


def row_id(letter: str, index: int, side: Side, line: int) -> str:
    """Returns: the id of a line's row, the target of a citation's link: `C-f0-R12`, on the old side `C-f0-L12`."""
    return f"{letter}-f{index}-{'R' if side == 'new' else 'L'}{line}"


class Rows:
    """Draws the lines of one file. An id is given once: a patch may hold one line of a file twice."""

    def __init__(self, path: str, cited: Cited, options: RowOptions):
        self.path, self.cited, self.options = path, cited, options
        self.ids: set[str] = set()
        self.letter = escape(options.letter)
        self.evidence = escape(options.evidence)

    def draw(self, hunk: Hunk, text: HunkText, shared: int) -> str:
        """Args: a hunk, its text, the columns of indentation all its lines share. Returns: its rows."""
        if self.options.view == "split" and not any(line.marks for line in hunk.lines):
            return "".join(self._split(hunk.lines, text, shared))
        return "".join([self._unified(line, text, n, shared) for n, line in enumerate(hunk.lines)])

    def _unified(self, line: Line, text: HunkText, n: int, shared: int) -> str:
        numbers = self._numbers(line)
        classes = self._classes(line, numbers)
        number = line.number
        sign = escape(line.marks.replace("-", "−")) if line.marks else SIGNS[line.kind]
        style = f' class="{classes}"' if classes else ""
        return (
            f'<tr{style}{self._id(line)}><td class="ln">{"" if number is None else number}</td>'
            f'<td class="sign">{sign}</td>{self._code(text, n, shared, numbers)}{self._share(line)}</tr>'
        )

    def _split(self, lines: Sequence[Line], text: HunkText, shared: int) -> Iterator[str]:
        for old, new in side_by_side(lines, text.pairs):
            left = NOTHING if old is None else self._half(lines[old], text, old, shared, side="old")
            right = NOTHING if new is None else self._half(lines[new], text, new, shared, side="new")
            yield f"<tr>{left}{right}</tr>"

    def _half(self, line: Line, text: HunkText, n: int, shared: int, *, side: Side) -> str:
        is_own = side == line.side  # a context line has its id, and what cites it, on the new side
        numbers = self._numbers(line) if is_own else ()
        more = self._classes(line, numbers)
        more = f" {more}" if more else ""
        number = line.number_on(side)
        code = self._code(text, n, shared, numbers, more=f"{more} {side}", attributes=self._id(line) if is_own else "")
        return (
            f'<td class="ln{more} {side}">{"" if number is None else number}</td>'
            f'<td class="sign{more} {side}">{SIGNS[line.kind]}</td>{code}{self._share(line, more=f"{more} {side}")}'
        )

    def _numbers(self, line: Line) -> Sequence[int | str]:
        return self.cited.get((line.side, line.number), ()) if line.number is not None and self.cited else ()

    def _classes(self, line: Line, numbers: Sequence[int | str]) -> str:
        return f"{ROW_CLASSES[line.kind]} is-cited".strip() if numbers else ROW_CLASSES[line.kind]

    def _id(self, line: Line) -> str:
        cited = self.options.cites(line) if self.options.cites and line.is_changed else ""
        more = f' data-cites="{escape(cited)}"' if cited else ""
        name = f"{self.letter}-f{self.options.index}-{'L' if line.kind == 'del' else 'R'}{line.number}"
        if line.number is None or name in self.ids:
            return more
        self.ids.add(name)
        return f' id="{name}"{more}'

    def _share(self, line: Line, more: str = "") -> str:
        shares = self.options.shares
        if not line.is_changed or not shares.of:
            return f'<td class="share{more}"></td>'
        count = shares.count(self.path, line)
        title = f"{count} of {shares.of} candidates make this change"
        return f'<td class="share{more}" title="{title}">{count if count > 1 else ""}</td>'

    def _code(self, text: HunkText, n: int, shared: int, numbers, *, more: str = "", attributes: str = "") -> str:
        """Indentation is a class, so that wrapped lines hang; the real white space stays for copying."""
        line = text.texts[n]
        lead = LEAD.match(line).group() if line.strip() else ""
        indent = min(max(columns_of(line) - shared, 0), MAX_INDENT) if lead or line.strip() else 0
        code = paint(text.tokens[n], text.ranges.get(n, ()), len(lead))
        marks = "".join([self._mark(escape(str(number))) for number in numbers])
        inner = f'{marks}<span class="lead">{lead}</span>{code}{text.tails[n]}'
        return f'<td class="code i{indent}{more}"{attributes}>{inner}</td>'

    def _mark(self, number: str) -> str:
        return f'<a class="cite-mark" href="#{self.evidence}-{number}" aria-label="evidence {number}">{number}</a>'


def columns_of(text: str) -> int:
    """Returns: how many columns a line is indented."""
    return len(LEAD.match(text).group().expandtabs(TAB_COLUMNS))


def side_by_side(lines: Sequence[Line], pairs: Sequence[tuple[int, int]]) -> Iterator[tuple[int | None, int | None]]:
    """Put deletions beside the additions they became, and what is left between them beside each other as it comes.

    Args:
        lines: of one hunk.
        pairs: (index of a deletion, index of the addition it became), rising.
    Returns:
        (index of the line on the old side, on the new side); a context line has one index on both.
    """
    partner, n = dict(pairs), 0
    while n < len(lines):
        if lines[n].kind == "context":
            yield n, n
            n += 1
            continue
        end = n
        while end < len(lines) and lines[end].is_changed:
            end += 1
        olds = [i for i in range(n, end) if lines[i].kind == "del"]
        news = [i for i in range(n, end) if lines[i].kind == "add"]
        for old, new in [*((i, partner[i]) for i in list(olds) if i in partner), (end, end)]:
            yield from _beside([i for i in olds if i < old], [i for i in news if i < new])
            olds, news = [i for i in olds if i > old], [i for i in news if i > new]
            if old < end:
                yield old, new
        n = end


def _beside(olds: list[int], news: list[int]) -> Iterator[tuple[int | None, int | None]]:
    for k in range(max(len(olds), len(news))):
        yield olds[k] if k < len(olds) else None, news[k] if k < len(news) else None
