"""Which words changed between two lines, and which deleted line became which added one. Core."""

import re
from collections.abc import Sequence

from rapidfuzz.distance import Indel

Ranges = tuple[tuple[int, int], ...]

WORD = re.compile(r"\w+|\s+|[^\w\s]")
MAX_CHARS = 500  # longer lines get no word marks
MIN_RATIO = 0.5  # below it the line is another line, and marks would be confetti
PAIR_RATIO = 0.55
MAX_PAIRINGS = 1_600  # a block of more deletions x additions is paired by position


def word_changes(old: str, new: str) -> tuple[Ranges, Ranges]:
    """Find the words that differ.

    Args:
        old: a line before, without its line end.
        new: the line after.
    Returns:
        (ranges in old, ranges in new) as (start, end) in characters. Both empty for equal lines, for a line over
        500 characters, and for lines that share less than half of their words.
    """
    if old == new or len(old) > MAX_CHARS or len(new) > MAX_CHARS:
        return (), ()
    olds, news = WORD.findall(old), WORD.findall(new)
    edits = Indel.opcodes(olds, news)
    kept = sum(_ink(olds[edit.src_start : edit.src_end]) for edit in edits if edit.tag == "equal")
    if 2 * kept < MIN_RATIO * (_ink(olds) + _ink(news)):
        return (), ()
    changed = [edit for edit in edits if edit.tag != "equal"]
    return (
        _ranges(olds, [(edit.src_start, edit.src_end) for edit in changed]),
        _ranges(news, [(edit.dest_start, edit.dest_end) for edit in changed]),
    )


def _ink(tokens: Sequence[str]) -> int:
    """Characters that are not white space: a change of white space only must not make a line foreign."""
    return sum(len(token) for token in tokens if not token.isspace())


def _ranges(tokens: Sequence[str], spans: Sequence[tuple[int, int]]) -> Ranges:
    """Token spans as character ranges; neighbours with only white space between them become one."""
    at = [0]
    for token in tokens:
        at.append(at[-1] + len(token))
    joined: list[list[int]] = []
    for start, end in spans:
        if start == end:
            continue
        if joined and not "".join(tokens[joined[-1][1] : start]).strip():
            joined[-1][1] = end
        else:
            joined.append([start, end])
    return tuple((at[start], at[end]) for start, end in joined)


def pair_lines(olds: Sequence[str], news: Sequence[str]) -> list[tuple[int, int]]:
    """Pair the deletions of a block with the additions that follow them, in order, most alike first seen.

    Args:
        olds: texts of consecutive deleted lines.
        news: texts of the added lines after them.
    Returns:
        (index in olds, index in news) pairs, both rising. Large blocks are paired by position.
    """
    if len(olds) * len(news) > MAX_PAIRINGS:
        return list(zip(range(len(olds)), range(len(news)), strict=False))
    pairs, free = [], 0
    for n, old in enumerate(olds):
        best = (0.0, 0, -1)
        for m in range(free, len(news)):
            ratio = _alike(old, news[m])
            best = max(best, (ratio, -abs(n - m), m))
        if best[0] >= PAIR_RATIO:
            pairs.append((n, best[2]))
            free = best[2] + 1
    return pairs


def _alike(old: str, new: str) -> float:
    if old == new:
        return 1.0
    if len(old) > MAX_CHARS or len(new) > MAX_CHARS:
        return 0.0
    return Indel.normalized_similarity(old.strip(), new.strip(), score_cutoff=PAIR_RATIO)
