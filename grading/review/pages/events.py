"""A body of events as a reader meets it, of a rollout or a grading: lines, an opened event, a bounded search."""

import json
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from django.utils.safestring import mark_safe

from grading import bodies
from grading.integrity.events import event_text
from grading.review.diffs.text import visible
from grading.review.pages import outline
from grading.review.pages.ansi import plain, to_html
from grading.review.pages.event_words import Part, exit_code_of, line_of, parts_of, seen_kind, time_of
from grading.review.pages.images import IMAGES_AT_ONCE, Image, cut

EVENTS_AT_ONCE = 100
CHARS_AT_ONCE = 4_000_000
BEFORE = 10  # events shown above the one asked for
SHOWN_CHARS = 64_000
PRINTED_CHARS = 5_000_000
HITS = 200
SEARCHED_CHARS = 60_000_000
SEARCH_S = 4.0
Marks = Mapping[int, Collection]


@dataclass(frozen=True)
class Book:
    """One body and where its pages are. `url` ends in "/"; `cite_url` is "" where this person cannot cite."""

    body: str
    count: int
    url: str
    letter: str = ""
    cite_url: str = ""

    def read(self, start: int, stop: int) -> Iterable[dict]:
        return bodies.iter_events(self.body, start, stop) if self.body else iter(())

    def find(self, index: int) -> dict | None:
        return next(iter(self.read(index, index + 1)), None)

    def event_url(self, index: int) -> str:
        return f"{self.url}events/{index}"

    def place_url(self, index: int) -> str:
        return f"{self.url}?at={index}#e{index}"


def event_page(book: Book, query: Mapping[str, str], *, cited: Marks, signals: Marks) -> dict:
    """Events from where the reader is; reading stops at 100 or 4 million characters."""
    at, after = number(query.get("at")), number(query.get("after"))
    side = query.get("side", "") if query.get("side") in ("L", "R") else ""
    start = max(0, at - BEFORE) if at is not None else 0 if after is None else after + 1
    events, chars = [], 0
    for index, event in enumerate(book.read(start, start + EVENTS_AT_ONCE), start):
        text = event_text(event)
        chars += len(text)
        marks = {"cited": cited.get(index, ()), "signals": signals.get(index, ()), "size": len(text)}
        events.append(_row(book, index, event) | marks | {"body": body_of(book, index, event) if index == at else None})
        if chars > CHARS_AT_ONCE and (at is None or index >= at):
            break
    last = start + len(events)
    more = {"side": side} if side else {}
    before = {"after": max(start - EVENTS_AT_ONCE, 0) - 1, **more}
    return {
        "events": events,
        "letter": book.letter,
        "side": side,
        "before_url": f"{book.url}?{urlencode(before)}" if start and start <= book.count else "",
        "after_url": f"{book.url}?{urlencode({'after': last - 1, **more})}" if events and last < book.count else "",
    }


def number(text: str | None) -> int | None:
    """A number of the address; -1 is before the first event."""
    digits = (text or "").removeprefix("-")
    return max(int(text), -1) if digits.isdecimal() and len(digits) < 10 else None


def _row(book: Book, index: int, event: dict) -> dict:
    return {
        "index": index,
        "at": time_of(event),
        "kind": seen_kind(event),
        "url": book.event_url(index),
        "line": line_of(event),
        "exit_code": exit_code_of(event),
    }


def body_of(book: Book, index: int, event: dict, *, limit: int = SHOWN_CHARS) -> dict:
    """One opened event, at most so many characters of its text and 8 of its images."""
    parts = parts_of(event) or [Part("it says nothing; as stored", json.dumps(event, ensure_ascii=False, indent=2))]
    size, text_size, left, room, shown = 0, 0, limit, IMAGES_AT_ONCE, []
    for part in parts:
        size += len(part.text)
        pieces = []
        for piece in cut(part.text, max(room, 0)):
            if isinstance(piece, Image):
                room -= bool(piece.url)
                pieces.append({"image": piece})
                continue
            text_size += len(piece)
            if left > 0:
                pieces.append({"html": mark_safe(to_html(piece[:left]))})  # noqa: S308  (ansi escapes)
                left -= len(piece)
        if pieces:
            shown.append({"title": part.title, "pieces": pieces})
    code, url = exit_code_of(event), book.event_url(index)
    cite = {"right": book.letter, "cite_letter": book.letter, "cite_kind": "event", "cite_place": index}
    return {
        "index": index,
        "words": seen_kind(event) + (f" · exit {code}" if code is not None else ""),
        "size": size,
        "cut": text_size > limit,
        "shown": min(text_size, limit),
        "whole_url": f"{url}?part=whole",
        "stored_url": f"{url}?part=stored",
        "url": book.place_url(index),
        "cite_url": f"{book.cite_url}?{urlencode(cite)}" if book.cite_url else "",
        "parts": shown,
    }


def search(books: Iterable[Book], words: str) -> dict:
    """Events that hold these words, upper and lower case alike. It ends at 200 hits, 60 million characters or 4 s."""
    wanted, hits, chars, until = words.casefold(), [], 0, time.monotonic() + SEARCH_S
    for book in books:
        for index, event in enumerate(book.read(0, book.count)):
            text = event_text(event)
            chars += len(text)
            if found := _with(text, wanted):
                here = {"letter": book.letter, "url": book.place_url(index)}
                hits.append(_row(book, index, event) | here | _around(found, wanted))
            why = "200 events have these words" if len(hits) >= HITS else ""
            why = why or (f"{chars:,} characters were read" if chars > SEARCHED_CHARS else "")
            why = why or (f"{SEARCH_S:.0f} s were over" if time.monotonic() > until else "")
            if why:
                where = f"{book.letter} e{index}" if book.letter else f"e{index}"
                return {"hits": hits, "hits_cut": f"{why}: nothing after {where} was read"}
    return {"hits": hits, "hits_cut": ""}


def _with(text: str, wanted: str) -> str:
    """The text that holds the words, as it was written or as a reader sees it."""
    seen = plain(text) if "\x1b" in text or "\r" in text else text
    return next((one for one in (seen, text) if wanted in one.casefold()), "")


def _around(text: str, wanted: str) -> dict:
    """The line with the first hit, cut in three."""
    line = next((line for line in text.split("\n") if wanted in line.casefold()), text)
    at = max(line.casefold().find(wanted), 0)
    start = max(at - 60, 0)
    cuts = line[start:at], line[at : at + len(wanted)], line[at + len(wanted) : at + 200]
    before, hit, after = (visible(part) for part in cuts)
    return {"before": ("…" if start else "") + before, "hit": hit, "after": after}


def overview(book: Book, query: Mapping[str, str], *, cited: Marks, signals: Marks) -> dict:
    """Map and jumps: at once for a small body, else when the page that stands asks for them."""
    if not book.body or not book.count:
        return {"map": None, "jumps": []}
    if query.get("map") != "1" and query.get("part") != "map" and not outline.is_small(book.body):
        return {"map": None, "jumps": [], "map_url": f"{book.url}?part=map", "map_page_url": f"{book.url}?map=1"}
    drawn = outline.map_of(book.body, cited=frozenset(cited), signals=frozenset(signals))
    return {"map": drawn, "jumps": outline.jumps(book.body)}


def walks(query: Mapping[str, str], *, cited: Marks, signals: Marks) -> list[dict]:
    """The next and the previous marked event, from the one that is open."""
    at = number(query.get("at"))
    at = -1 if at is None else at
    found = []
    for name, key, marks in (("citation", "e", sorted(cited)), ("signal", "s", sorted(signals))):
        if marks:
            following = next((n for n in marks if n > at), marks[0])
            earlier = next((n for n in reversed(marks) if n < at), marks[-1])
            row = {"name": name, "key": key, "count": len(marks), "next": following, "previous": earlier}
            found.append(row | {"previous_key": key.upper(), "marks": " ".join(map(str, marks))})
    return found


def printed(book: Book) -> dict:
    """All events open, for paper; it ends at 5 million characters and says so."""
    events, chars = [], 0
    for index, event in enumerate(book.read(0, book.count)):
        body = body_of(book, index, event, limit=PRINTED_CHARS)
        events.append(_row(book, index, event) | {"body": body, "size": body["size"]})
        chars += body["size"]
        if chars > PRINTED_CHARS:
            break
    return {"events": events, "letter": book.letter, "left_out": book.count - len(events)}
