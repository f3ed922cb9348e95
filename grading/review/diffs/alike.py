"""Which lines two texts have in common, in order: exact where that is cheap, by unique lines where it is not. Core."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence

from rapidfuzz.distance import Indel

Block = tuple[int, int, int]  # start in old, start in new, length

MAX_CELLS = 50_000_000  # lines x lines of an exact comparison: a tenth of a second


def equal_blocks(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[Block]:
    """Find a long common subsequence.

    Args:
        old: lines, or keys that stand for them; compared by equality only.
        new: likewise.
    Returns:
        (start in old, start in new, length), both starts rising, no block empty. The longest one for texts of up to
        7,000 x 7,000 differing lines; for longer ones the lines that occur once on both sides lead.
    """
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    blocks = [(0, 0, head)]
    olds, news = old[head : len(old) - tail], new[head : len(new) - tail]
    blocks += [(i + head, j + head, n) for i, j, n in _middle(olds, news)]
    return _joined([*blocks, (len(old) - tail, len(new) - tail, tail)])


def _middle(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[Block]:
    if not old or not new:
        return []
    if len(old) * len(new) <= MAX_CELLS:
        numbers: dict[Hashable, int] = {}  # rapidfuzz compares hashes; two lines may not become one by chance
        ours, theirs = ([numbers.setdefault(line, len(numbers)) for line in side] for side in (old, new))
        same = [edit for edit in Indel.opcodes(ours, theirs) if edit.tag == "equal"]
        return [(edit.src_start, edit.dest_start, edit.src_end - edit.src_start) for edit in same]
    blocks, at_old, at_new = [], 0, 0
    for i, j in [*_anchors(old, new), (len(old), len(new))]:
        if (i - at_old) * (j - at_new) <= MAX_CELLS:
            blocks += [(at_old + a, at_new + b, n) for a, b, n in equal_blocks(old[at_old:i], new[at_new:j])]
        if i < len(old):
            blocks.append((i, j, 1))
        at_old, at_new = i + 1, j + 1
    return blocks


def _anchors(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Lines that occur once on each side, as many of them as keep their order."""
    counts_old, counts_new = Counter(old), Counter(new)
    where = {line: j for j, line in enumerate(new) if counts_new[line] == 1}
    pairs = [(i, where[line]) for i, line in enumerate(old) if counts_old[line] == 1 and line in where]
    ends: list[int] = []  # for each length, the smallest end of a rising row of that length
    at: list[int] = []
    before: list[int] = []
    for n, (_, j) in enumerate(pairs):
        place = bisect_left(ends, j)
        before.append(at[place - 1] if place else -1)
        ends[place : place + 1], at[place : place + 1] = [j], [n]
    row, n = [], at[-1] if at else -1
    while n >= 0:
        row.append(pairs[n])
        n = before[n]
    return row[::-1]


def _joined(blocks: list[Block]) -> list[Block]:
    joined: list[Block] = []
    for i, j, n in blocks:
        if not n:
            continue
        if joined and (joined[-1][0] + joined[-1][2], joined[-1][1] + joined[-1][2]) == (i, j):
            joined[-1] = (joined[-1][0], joined[-1][1], joined[-1][2] + n)
        else:
            joined.append((i, j, n))
    return joined
