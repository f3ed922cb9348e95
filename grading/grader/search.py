"""Search of words in trajectories: literal words, so that no pattern of a candidate or a model can hang us. Core."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from grading.review.diffs.text import visible

AROUND_CHARS = 120
HITS_SHOWN = 60
COUNTED = 2_000  # hits of one candidate, at most
SEARCH_S = 5.0
SEARCH_CHARS = 60_000_000  # read in one call


@dataclass(frozen=True)
class Hit:
    """One line that holds the words: the event's index and the words with what stands around them."""

    event: int
    text: str


@dataclass
class Hits:
    """What one rollout gave; `searched_to` is the index after the last event that was read."""

    letter: str
    found: list[Hit] = field(default_factory=list)
    searched_to: int = 0


def search_events(
    rollouts: Sequence[tuple[str, int, Callable[[int], str | None]]],
    words: Sequence[str],
    *,
    start: int = 0,
    clock: Callable[[], float] = time.monotonic,
) -> list[Hits]:
    """Find lines that hold any of the words, upper and lower case alike.

    Args:
        rollouts: (letter, event count, index -> text) of each.
        words: literal; any of them is enough.
        start: index of the first event to look at.
        clock: seconds; the search stops after 5 of them, and after 60 million characters.
    Returns:
        Hits of each rollout in the given order; a rollout that was not read to its end says how far it was.
    """
    wanted = [word.lower() for word in words if word.strip()]
    began, left, found = clock(), SEARCH_CHARS, []
    for letter, count, text_of in rollouts:
        hits = Hits(letter, searched_to=min(start, count))
        found.append(hits)
        for index in range(start, count):
            if left <= 0 or len(hits.found) >= COUNTED or clock() - began > SEARCH_S:
                break
            text = text_of(index) or ""
            left -= len(text)
            hits.found += [Hit(index, line) for line in _matching(text, wanted)]
            hits.searched_to = index + 1
    return found


def _matching(text: str, wanted: Sequence[str]) -> Iterator[str]:
    if not any(word in text.lower() for word in wanted):
        return
    for line in text.split("\n"):
        lower = line.lower()
        at = min((place for word in wanted if (place := lower.find(word)) >= 0), default=-1)
        if at >= 0:
            first = max(0, at - AROUND_CHARS // 3)
            yield visible(line[first : first + AROUND_CHARS].strip())


def hits_words(found: Sequence[Hits], counts: dict[str, int]) -> tuple[str, list[str]]:
    """Put hits into lines, the same number for each rollout at most.

    Args:
        found: from `search_events`.
        counts: letter -> how many events it has.
    Returns:
        (lines of candidates' text, our words on what was cut).
    """
    each = max(3, HITS_SHOWN // max(1, sum(bool(hits.found) for hits in found)))
    lines, cut, none = [], [], []
    for hits in found:
        lines += [f"{hits.letter} [event {hit.event}] {hit.text}" for hit in hits.found[:each]]
        if len(hits.found) > each:
            after = hits.found[each].event
            cut.append(f"{hits.letter}: {each} of {len(hits.found)} lines are shown; go on with start={after}.")
        if hits.searched_to < counts[hits.letter]:
            at = f"{hits.searched_to} of {counts[hits.letter]}"
            cut.append(f"{hits.letter} was searched up to event {at}; go on with start={hits.searched_to}.")
        elif not hits.found:
            none.append(hits.letter)
    return "\n".join(lines), [*cut, *([f"No line in {', '.join(none)}."] if none else [])]
