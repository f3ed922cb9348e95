"""Tools that look at the rollouts themselves: who there is, events, patches, comparison, tests, logs."""

from itertools import islice

from pydantic import Field

from grading.grader.compare import Compared, compared
from grading.grader.overview import facts
from grading.grader.search import hits_words, search_events
from grading.grader.tool_texts import (
    ROOM_CHARS,
    Piece,
    bytes_lines,
    cut_line,
    events_shown,
    listed,
    patch_lines,
    paths_words,
    picked_files,
)
from grading.grader.tools.desk import Arguments, Desk, Refused, Tool, at_least, page

EVENTS_AT_ONCE = 50
WORDS_AT_ONCE = 10
PLAIN = ("passed", "skipped", "xfailed")
LETTER = Field(description="a candidate's letter")


class Nothing(Arguments):
    pass


def list_candidates(desk: Desk, asked: Nothing) -> str:
    pieces, room = [], max(300, 2 * ROOM_CHARS // len(desk.letters))
    for letter in desk.letters:
        shown = desk.shown(letter)
        pieces.append(
            desk.answer(
                f"facts of candidate {letter} ({desk.ws.standing(shown)})",
                listed(cut_line(line, wide=room // 4) for line in facts(shown)),
            )
        )
    return "\n".join(pieces)


class ReadEvents(Arguments):
    candidate: str = LETTER
    start: int = Field(0, description="index of the first event, from 0")
    stop: int | None = Field(None, description=f"index after the last one; at most {EVENTS_AT_ONCE} after start")
    offset: int = Field(0, description="characters to skip in each event, to read on in a long one")


def read_events(desk: Desk, asked: ReadEvents) -> str:
    shown = desk.shown(asked.candidate)
    start = at_least("start", asked.start, 0)
    stop = at_least("stop", start + 10 if asked.stop is None else asked.stop, start + 1)
    if not shown.event_count:
        raise Refused(f"No events of candidate {shown.letter} were kept.")
    if start >= shown.event_count:
        raise Refused(f"Candidate {shown.letter} has the events 0 to {shown.event_count - 1}; {start} is none.")
    stop = min(stop, start + EVENTS_AT_ONCE)
    offset = at_least("offset", asked.offset, 0)
    piece = events_shown(shown.event, start, stop, shown.event_count, offset=offset)
    return desk.answer(f"events of candidate {shown.letter}", piece)


class SearchEvents(Arguments):
    words: list[str] = Field(description="literal words or phrases, any of them, case does not matter; no patterns")
    candidate: str = Field("all", description="a candidate's letter, or all")
    start: int = Field(0, description="index of the first event to look at")


def search_trajectories(desk: Desk, asked: SearchEvents) -> str:
    words = [word for word in asked.words if word.strip()]
    if not words or len(words) > WORDS_AT_ONCE or any(len(word) > 200 for word in words):
        raise Refused(f"words is {len(words)} texts, expected 1 to {WORDS_AT_ONCE} of at most 200 characters.")
    letters = desk.letters if asked.candidate.strip().lower() == "all" else [desk.shown(asked.candidate).letter]
    rollouts = [desk.shown(letter) for letter in letters]
    asking = [(one.letter, one.event_count, one.event_text) for one in rollouts]
    found = search_events(asking, words, start=at_least("start", asked.start, 0))
    body, cut = hits_words(found, {one.letter: one.event_count for one in rollouts})
    return desk.answer(f"lines found in events of candidate {', '.join(letters)}", Piece(body, " ".join(cut)))


class ReadPatch(Arguments):
    candidate: str = LETTER
    file: str | None = Field(None, description="only this file, by its path")
    start: int = Field(1, description="first line of this listing, from 1, to read on")
    offset: int = Field(0, description="characters to skip in each line, to read on in a long one")


def read_patch(desk: Desk, asked: ReadPatch) -> str:
    shown = desk.shown(asked.candidate)
    patch = shown.parsed
    if patch.is_empty:
        return f"The patch of candidate {shown.letter} is empty."
    files = patch.files if asked.file is None else picked_files(patch, asked.file)
    if not files and asked.file is not None:
        raise Refused(
            f"No file {asked.file[:200]!r} in the patch of {shown.letter}; it has: {paths_words(patch.paths)}."
        )
    start, offset = at_least("start", asked.start, 1), at_least("offset", asked.offset, 0)
    lines = patch_lines(files, offset) if files else (cut_line(line, offset) for line in bytes_lines(shown.patch))
    piece = page(lines, start)
    unread = " Parts of this patch could not be read: " + "; ".join(patch.problems[:3]) if patch.problems else ""
    return desk.answer(f"patch of candidate {shown.letter}", Piece(piece.body, piece.cut + unread))


class Compare(Arguments):
    candidate: str = LETTER
    other: str = Field(description="the letter of the candidate to compare with")
    file: str | None = Field(None, description="only this file, by its path")
    start: int = Field(1, description="first line of this listing, from 1, to read on")


def compare(desk: Desk, asked: Compare) -> str:
    one, other = desk.shown(asked.candidate), desk.shown(asked.other)
    if one.letter == other.letter:
        raise Refused("Both are the same candidate; compare two.")
    paths = dict.fromkeys(path for each in (one, other) for f in each.parsed.files for path in (f.new_path, f.old_path))
    if not paths or asked.file is not None and asked.file not in paths:
        known = paths_words([path for path in paths if path])
        raise Refused(f"Neither changes {(asked.file or 'anything')[:200]}; they change: {known}.")
    lines = compared(Compared(one.letter, one.parsed), Compared(other.letter, other.parsed), asked.file)
    piece = page(lines, asked.start)
    return desk.answer(f"changes of candidate {one.letter} beside those of {other.letter}", piece)


class ReadTests(Arguments):
    candidate: str = LETTER
    words: str = Field("", description="only tests whose name or message holds these words")
    start: int = Field(1, description="first line of this listing, from 1, to read on")


def read_tests(desk: Desk, asked: ReadTests) -> str:
    shown, wanted = desk.shown(asked.candidate), asked.words.lower()
    if not shown.tests:
        return f"No single test results of candidate {shown.letter} were kept; read_log may show them."
    tests = sorted(shown.tests, key=lambda test: test.get("status") in PLAIN)  # stable: what did not pass comes first
    lines = [f"{test.get('status', '')}: {test.get('name', '')}" + _message(test) for test in tests]
    lines = [cut_line(line, wide=1_000) for line in lines if wanted in line.lower()]
    if not lines:
        return f"None of the {len(tests)} tests of candidate {shown.letter} has these words."
    return desk.answer(f"tests of candidate {shown.letter}", page(lines, asked.start))


def _message(test: dict) -> str:
    message = str(test.get("message") or "").strip()
    return f" -- {' '.join(message.split())}" if message else ""


class ReadLog(Arguments):
    candidate: str = LETTER
    start: int | None = Field(None, description="first line, from 1; without it the last lines are shown")
    words: str = Field("", description="only lines that hold these words")


def read_log(desk: Desk, asked: ReadLog) -> str:
    shown, wanted = desk.shown(asked.candidate), asked.words.lower()
    if not shown.log:
        return f"No test log of candidate {shown.letter} was kept."
    lines = bytes_lines(shown.log)
    picked = [(n, line) for n, line in enumerate(lines, 1) if wanted in line.lower()]
    first = picked[max(0, len(picked) - 80)][0] if asked.start is None and picked else asked.start or 1
    rest = [f"{n:>6} | {cut_line(line)}" for n, line in islice((p for p in picked if p[0] >= first), 2_000)]
    shown_lines = listed(rest)
    count = shown_lines.body.count("\n") + 1 if shown_lines.body else 0
    cut = f"The log has {len(lines)} lines, {len(picked)} of them {'with these words' if wanted else 'in all'}."
    before = sum(n < first for n, _ in picked)
    cut += f" {before} before line {first} are not shown: start=1." if before else ""
    behind = [p for p in picked if p[0] >= first][count:]
    cut += f" Go on with start={behind[0][0]}." if behind else ""
    return desk.answer(f"test log of candidate {shown.letter}", Piece(shown_lines.body, cut))


TOOLS = (
    Tool(
        "list_candidates", "All candidates with their facts: outcome, tests, patch, counts.", Nothing, list_candidates
    ),
    Tool(
        "read_events", "Events of one trajectory, each with the index that a citation names.", ReadEvents, read_events
    ),
    Tool("search_events", "Lines of trajectories that hold given words.", SearchEvents, search_trajectories),
    Tool(
        "read_patch",
        "A candidate's patch. `new 12 | + …` is line 12 on side new: cite that path, side and line.",
        ReadPatch,
        read_patch,
    ),
    Tool(
        "compare",
        "Two candidates' changes to the same base side by side. A line marked = is made by both.",
        Compare,
        compare,
    ),
    Tool(
        "read_tests",
        "Test results of a candidate, those that did not pass first. Cite a name exactly.",
        ReadTests,
        read_tests,
    ),
    Tool("read_log", "The log of a candidate's test run.", ReadLog, read_log),
)
