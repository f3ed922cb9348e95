"""Tokens and changed words as escaped spans; hidden characters made visible. Core."""

from collections.abc import Sequence
from html import escape

from grading.review.diffs.text import HIDDEN, named, shown
from grading.review.diffs.words import Ranges


def paint(tokens: Sequence[tuple[str, str]], ranges: Ranges, start: int = 0) -> str:
    """Merge syntax classes with changed words into spans.

    Args:
        tokens: (class or "", text) in order.
        ranges: (start, end) of changed words in characters of the whole line, rising.
        start: characters at the line's start that are drawn elsewhere.
    Returns:
        Escaped HTML; hidden characters shown by their code.
    """
    hides = HIDDEN.search("".join([text for _, text in tokens]))
    show = show_hidden if hides else _escaped
    out, at, edges = [], 0, [edge for pair in ranges for edge in pair]
    for name, text in tokens:
        end = at + len(text)
        if not edges and at >= start:  # most lines
            out.append(f'<span class="{name}">{show(text)}</span>' if name else show(text))
            at = end
            continue
        cuts = [at, *(edge for edge in edges if at < edge < end), end]
        for cut, right in zip(cuts, cuts[1:], strict=False):
            left = max(cut, start)
            if left >= right:
                continue
            is_word = any(first <= left < last for first, last in ranges)
            classes = f"{name} word".strip() if is_word else name
            piece = show(text[left - at : right - at])
            out.append(f'<span class="{classes}">{piece}</span>' if classes else piece)
        at = end
    return "".join(out)


def _escaped(text: str) -> str:
    return escape(text, quote=False)


def show_hidden(text: str) -> str:
    """Returns: escaped text; each hidden character as a marked span that names it."""
    if not HIDDEN.search(text):
        return escape(text, quote=False)
    out, at = [], 0
    for found in HIDDEN.finditer(text):
        sign = found.group()
        out.append(escape(text[at : found.start()], quote=False))
        out.append(f'<span class="hidden-char" title="{escape(named(sign))}">{shown(sign)}</span>')
        at = found.end()
    return "".join(out) + escape(text[at:], quote=False)
