"""A turn-by-turn summary of all rollouts, made by us without a model: where a grader begins to look. Core."""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from grading.integrity.events import command_text, event_text, is_acting, tool_names
from grading.review.diffs.facts import size_words
from grading.review.diffs.patch import FilePatch, Patch
from grading.review.diffs.text import visible
from grading.review.pages.event_words import exit_code_of, kind_of, line_of

OVERVIEW_CHARS = 60_000
LEAST_CHARS = 600  # of one candidate, however many there are
LINE_CHARS = 150
SAID_CHARS = 70
HINT_CHARS = 90
EVENTS_READ = 4_000  # of one candidate
READ_S = 30.0  # of all candidates together
BLOCK = 32  # events read at once: a body's frames hold some dozens
FILES_NAMED = 12
TESTS_NAMED = 6
TELLING = re.compile(  # of a run, not of code that is read: there an error's name stands behind other words
    r"^\w[\w.]*(?:Error|Exception)(?::|$)|\b\d+ (?:passed|failed|errors?)\b|^(?:OK|FAILED|FAIL|BUILD \w+)\b"
    r"|^[\w./-]+: .*(?:No such file|not found)|(?i:^.{0,40}syntax error)"
)
HINT_TAIL = 4_000  # characters at the end of what came back, where a result stands
IDLE_TESTS = ("passed", "skipped", "xfailed")


class Seen(Protocol):
    """One rollout as it may be shown: neutral letter, scrubbed text."""

    letter: str
    passed: bool
    parsed: Patch
    patch: bytes
    event_count: int
    tests: Sequence[Mapping[str, Any]]
    counts: Mapping[str, Any]
    twins: Sequence[str]

    def event(self, index: int) -> Mapping[str, Any] | None: ...


@dataclass(frozen=True)
class Turn:
    """One thing a candidate did with what came back: the events from `first` to `last`, `times` alike in a row."""

    first: int
    last: int
    kind: str
    line: str
    said: str = ""
    came_back: str = ""
    times: int = 1

    def __str__(self) -> str:
        events = f"[{self.first}]" if self.first == self.last else f"[{self.first}-{self.last}]"
        again = f" (the same {self.times} times)" if self.times > 1 else ""
        back = f" -> {self.came_back}" if self.came_back else ""
        said = f' | "{self.said}"' if self.said else ""
        return f"{events} {self.kind}: {self.line}{said}{back}{again}"


def summaries(
    rollouts: Sequence[Seen], *, chars: int = OVERVIEW_CHARS, clock: Callable[[], float] = time.monotonic
) -> dict[str, str]:
    """Summarise every rollout: outcome, tests, patch, counts, then its turns one line each.

    Args:
        rollouts: in the order of presentation.
        chars: for all of them; shared so that none gets less because it comes late or because another is long.
        clock: seconds; so is the time to read them, half a minute for all.
    Returns:
        letter -> text, in the given order. What was left out is said in it.
    """
    heads, turns, unread = {}, {}, {}
    for one in rollouts:
        heads[one.letter] = "\n".join(facts(one))
        events = _read(one, clock, clock() + READ_S / len(rollouts))
        turns[one.letter], unread[one.letter] = turns_of(events), one.event_count - len(events)
    needs = [len(heads[k]) + sum(len(str(turn)) + 1 for turn in turns[k]) for k in heads]
    shares = fair_shares(needs, max(chars, LEAST_CHARS * len(needs)))
    found = {}
    for letter, share in zip(heads, shares, strict=True):
        lines = _thinned(turns[letter], share - len(heads[letter]), unread[letter])
        found[letter] = "\n".join([heads[letter], *lines])
    return found


def fair_shares(needs: Sequence[int], budget: int) -> list[int]:
    """Share a budget: nobody gets more than it needs, and what is left over goes to the others in equal parts.

    Args:
        needs: what each would take.
        budget: for all.
    Returns:
        Shares in the same order; equal needs get equal shares.
    """
    shares, left, open_ = [0] * len(needs), budget, sorted(range(len(needs)), key=lambda n: needs[n])
    while open_:
        n = open_.pop(0)
        shares[n] = min(needs[n], left // (len(open_) + 1))
        left -= shares[n]
    level = min((share for share, need in zip(shares, needs, strict=True) if share < need), default=None)
    return shares if level is None else [min(need, level) for need in needs]


def facts(one: Seen) -> list[str]:
    """Returns: what is known of a rollout beside its turns, one line each."""
    lines = [_tests_line(one.tests), _patch_line(one)]
    if one.twins:
        lines.append(f"the same patch, byte for byte: {', '.join(one.twins)}")
    counts = [f"{name} {count}" for name, count in one.counts.items() if isinstance(count, int | float)]
    return [*lines, "; ".join([f"events: {one.event_count or 'none were kept'}", *counts[:8]])]


def _tests_line(tests: Sequence[Mapping[str, Any]]) -> str:
    if not tests:
        return "tests: no single results were kept"
    count = Counter(str(test.get("status", ""))[:20] for test in tests)
    said = ", ".join(f"{n} {status}" for status, n in sorted(count.items()))
    bad = [str(test.get("name", "")) for test in tests if test.get("status") not in IDLE_TESTS]
    named = ", ".join(visible(name[:120]) for name in bad[:TESTS_NAMED])
    more = f" and {len(bad) - TESTS_NAMED} more" if len(bad) > TESTS_NAMED else ""
    return f"tests: {said}" + (f"; not passed: {named}{more}" if bad else "")


def _patch_line(one: Seen) -> str:
    patch = one.parsed
    if patch.is_empty:
        return "patch: empty"
    files = ", ".join(file_words(file) for file in patch.files[:FILES_NAMED])
    more = f" and {len(patch.files) - FILES_NAMED} more" if len(patch.files) > FILES_NAMED else ""
    unread = "; parts of it could not be read" if patch.problems else ""
    size = f"{counted(len(patch.files), 'file')}, +{patch.added} -{patch.removed}, {size_words(len(one.patch))}"
    return f"patch: {size}: {files}{more}{unread}"


def file_words(file: FilePatch) -> str:
    """Returns: a file's path, how many lines come and go, and what else happened to it."""
    also = "" if file.status == "modified" else f" ({file.status})"
    return f"{visible(file.path[:200])} +{file.added} -{file.removed}{also}"


def turns_of(events: Iterable[tuple[int, Mapping[str, Any]]]) -> list[Turn]:
    """Condense events to turns.

    Args:
        events: (index, event) in order; indexes may have gaps.
    Returns:
        Turns in order; what came back is joined to what caused it, and the same turn several times in a row is one.
    """
    turns: list[Turn] = []
    is_open = False  # the last turn still waits for what comes back
    for index, event in events:
        kind = kind_of(event)
        if kind == "observation" and is_open and turns[-1].last == index - 1:
            turn = turns.pop()
            back = turn.came_back or _hint(event_text(event), exit_code_of(event))
            turn = replace(turn, last=index, came_back=back)
        else:
            turn, is_open = _begun(index, kind, event), is_acting(event)
        _fold(turns, turn)
    return turns


def _fold(turns: list[Turn], turn: Turn) -> None:
    """Add a turn, or count it with the one before that did the same to the same end."""
    if turns and (turns[-1].kind, turns[-1].line, turns[-1].came_back) == (turn.kind, turn.line, turn.came_back):
        before = turns.pop()
        turn = replace(before, last=turn.last, times=before.times + turn.times)
    turns.append(turn)


def _begun(index: int, kind: str, event: Mapping[str, Any]) -> Turn:
    if not is_acting(event):
        return Turn(index, index, kind, _short(line_of(event), LINE_CHARS))
    line = _joined(command_text(event), LINE_CHARS) or _short(line_of(event), LINE_CHARS)
    tool = visible(", ".join(tool_names(event))[:40])
    line = f"{tool} | {line}" if tool and not line.startswith(tool) else line
    said = event.get("text", event.get("message"))
    said = _joined(said, SAID_CHARS) if isinstance(said, str) else ""
    came_back = _hint(_observed(event), exit_code_of(event)) if event.get("observation") else ""
    return Turn(index, index, kind, line, "" if said[:30] in line else said, came_back)


def _joined(text: str, chars: int) -> str:
    """The first lines of a text as one."""
    lines = [" ".join(line.split()) for line in text[: 8 * chars].split("\n")]
    return visible(_short(" / ".join(line for line in lines if line), chars))


def _observed(event: Mapping[str, Any]) -> str:
    return event_text({"kind": "observation", "observation": event.get("observation")})


def _hint(text: str, code: int | None) -> str:
    """How it ended: an exit code, and the last line that tells a result, else how much came back."""
    tail = [line.strip() for line in text[-HINT_TAIL:].split("\n")]
    telling = next((line for line in reversed(tail) if TELLING.search(line[:300])), "")
    words = [f"exit {code}"] if code else []
    if telling:
        words.append(visible(_short(telling, HINT_CHARS)))
    elif not code:
        words.append(counted(text.strip("\n").count("\n") + 1, "line") if text.strip() else "nothing")
    return ", ".join(words)


def _read(one: Seen, clock: Callable[[], float], until: float) -> list[tuple[int, Mapping[str, Any]]]:
    """Events of a rollout in order: all of them, or of one too long to read in time blocks evenly spread over it."""
    read: list[tuple[int, Mapping[str, Any]]] = []
    for block in _evenly(-(-one.event_count // BLOCK)):
        if read and (len(read) >= EVENTS_READ or clock() >= until):
            break
        for n in range(block * BLOCK, min((block + 1) * BLOCK, one.event_count)):
            if (event := one.event(n)) is not None:
                read.append((n, event))
    return sorted(read, key=lambda at: at[0])


def _evenly(count: int) -> list[int]:
    """Numbers below `count`, so ordered that each beginning of the list is spread over all of them."""
    bits = max(1, count - 1).bit_length()
    return sorted(range(count), key=lambda n: int(f"{n:0{bits}b}"[::-1], 2))


def _thinned(turns: Sequence[Turn], room: int, unread: int) -> list[str]:
    """The turns' lines that fit, evenly spread; the first line says what is missing."""
    lines = [str(turn) for turn in turns]
    note = f"{unread} events, in blocks evenly spread, were not read for this list" if unread else ""
    if sum(len(line) + 1 for line in lines) <= room:
        return [f"({note}; read_events shows them)", *lines] if note else lines
    missing = "({} of {} turns are shown, evenly thinned; read_events shows the others{})"
    room -= len(missing) + len(note) + 12
    kept = _even(lines, room)
    return [missing.format(len(kept), len(lines), f"; {note}" if note else ""), *(lines[n] for n in kept)]


def _even(lines: Sequence[str], room: int) -> list[int]:
    """Indexes of as many evenly spread lines as fit, the first and the last among them where two fit."""
    low, high = 0, len(lines)
    while low < high:
        middle = (low + high + 1) // 2
        fits = sum(len(lines[n]) + 1 for n in _spread(middle, len(lines))) <= room
        low, high = (middle, high) if fits else (low, middle - 1)
    return _spread(low, len(lines))


def _spread(count: int, of: int) -> list[int]:
    if count < 2:
        return [of - 1][:count]
    return [round(n * (of - 1) / (count - 1)) for n in range(count)]


def counted(count: int, what: str) -> str:
    """Returns: "1 line", "2 lines"."""
    return f"{count} {what}" + ("" if count == 1 else "s")


def _short(text: str, chars: int) -> str:
    return text if len(text) <= chars else f"{text[: chars - 1]}…"
