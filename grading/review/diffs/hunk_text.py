"""A hunk as text ready to draw: decoded, clipped, coloured, changed words found. Core."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from grading.review.diffs.highlight import Tokens, highlight, plain
from grading.review.diffs.patch import Hunk, Line, Side
from grading.review.diffs.text import Utf16, text_of
from grading.review.diffs.words import Ranges, pair_lines, word_changes

CLIP_CHARS = 2_000
NO_NEWLINE = '<span class="eol" title="the file ends without a line end">no newline</span>'


@dataclass(frozen=True, slots=True)
class HunkText:
    """Per line of a hunk: `texts` (clipped), their `tokens`, `tails` (HTML after the code), `ranges` by line index.

    `pairs` are the indices of deleted lines and of the added ones they became, both rising.
    """

    texts: list[str]
    tokens: list[Tokens]
    tails: list[str]
    ranges: Mapping[int, Ranges]
    pairs: list[tuple[int, int]]


def read_hunk(
    path: str,
    hunk: Hunk,
    codecs: Mapping[Side, Utf16 | None],
    *,
    highlight: bool = True,
    word_marks: bool = True,
    is_late: Callable[[], bool] | None = None,
) -> HunkText:
    """Make a hunk ready to draw.

    Args:
        path: chooses the language.
        hunk: parsed.
        codecs: from `texts_of` of the whole file.
        highlight: whether to colour.
        word_marks: whether to look for changed words.
        is_late: says when colouring has taken too long.
    Returns:
        HunkText; lists as long as the hunk.
    """
    full = [text_of(line, codecs) for line in hunk.lines]
    texts = [text[:CLIP_CHARS] for text in full]
    pairs = _pairs(hunk.lines, texts) if word_marks else []
    ranges: dict[int, Ranges] = {}
    ends_differ: set[int] = set()
    for old, new in pairs:
        ranges[old], ranges[new] = word_changes(texts[old], texts[new])
        if hunk.lines[old].eol != hunk.lines[new].eol:
            ends_differ |= {old, new}
    tails = [_tail(line, len(full[n]), n in ends_differ) for n, line in enumerate(hunk.lines)]
    tokens = _tokens(path, hunk.lines, texts, is_late) if highlight else plain(texts)
    return HunkText(texts, tokens, tails, ranges, pairs)


def _tail(line: Line, length: int, is_word: bool) -> str:
    """What stands after the code: how much was clipped, and a line end that is not LF."""
    tail = ""
    if length > CLIP_CHARS:
        more = f"… {length - CLIP_CHARS:,} more characters"
        tail = f'<span class="clip" title="the line has {length:,} characters">{more}</span>'
    if line.eol == "\r\n":
        tail += f'<span class="eol{" word" if is_word else ""}" title="the line ends with CR LF">CRLF</span>'
    return tail + (NO_NEWLINE if line.eol == "" else "")


def _tokens(path: str, lines: tuple[Line, ...], texts: list[str], is_late: Callable[[], bool] | None) -> list[Tokens]:
    """Each side is coloured as a whole, so that a string over lines keeps its colour; context is the new one's."""
    tokens: list[Tokens] = [[] for _ in lines]
    sides = [("add", "context")]
    if any(line.kind == "del" for line in lines):
        sides.insert(0, ("del", "context"))
    for kinds in sides:
        at = [n for n, line in enumerate(lines) if line.kind in kinds]
        for n, coloured in zip(at, highlight(path, [texts[n] for n in at], is_late), strict=True):
            tokens[n] = coloured
    return tokens


def _pairs(lines: tuple[Line, ...], texts: list[str]) -> list[tuple[int, int]]:
    """Indices of deletions and the additions they became, block by block."""
    pairs, n = [], 0
    while n < len(lines):
        dels = _run(lines, n, "del")
        adds = _run(lines, n + dels, "add")
        if dels and adds:
            middle, end = n + dels, n + dels + adds
            pairs += [(n + old, middle + new) for old, new in pair_lines(texts[n:middle], texts[middle:end])]
        n += max(dels + adds, 1)
    return pairs


def _run(lines: tuple[Line, ...], start: int, kind: str) -> int:
    end = start
    while end < len(lines) and lines[end].kind == kind:
        end += 1
    return end - start
