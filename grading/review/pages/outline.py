"""The outline of all events of a body: a byte each. From it come the map above a trajectory and the jumps beside it."""

from collections.abc import Collection
from functools import lru_cache

from grading import bodies
from grading.review.pages.event_words import KINDS, exit_code_of, seen_kind

AT_ONCE_BYTES = 4_000_000  # of events; the outline of more is made after the page is there
CELLS = 240
FEWEST = 60  # places of a map: one of few events does not stretch
BAD, TROUBLE = 0x20, 0x40
TROUBLES = {"retry": "retry", "error": "error"}  # roles of events in a grading's transcript
WEIGHT = {kind: n for n, kind in enumerate(("message", "system", "observation", "action", "test", "edit", "submit"))}
SHAPES = {  # in a box of 1 x 30
    "message": "M{0} 24H{2}V30H{0}Z",
    "system": "M{0} 24H{2}V30H{0}Z",
    "observation": "M{0} 20H{2}V30H{0}Z",
    "action": "M{0} 13H{2}V30H{0}Z",
    "edit": "M{0} 30L{1} 5L{2} 30Z",
    "test": "M{1} 5L{2} 17.5L{1} 30L{0} 17.5Z",
    "submit": "M{0} 3H{2}V30H{0}Z",
}
LEGEND = ("message", "observation", "action", "edit", "test", "submit")
JUMPED = 12  # retries and errors that have a jump of their own


def is_small(event_body: str) -> bool:
    """Whether its outline is made while a reader waits."""
    return bodies.plain_size(event_body) <= AT_ONCE_BYTES


@lru_cache(maxsize=128)
def outline(event_body: str) -> bytes:
    """For each event the number of its kind, with BAD where it ended badly and TROUBLE for retries and errors."""
    return bytes(_code(event) for event in bodies.iter_events(event_body))


def _code(event: dict) -> int:
    trouble = TROUBLE if event.get("role") in TROUBLES and event.get("kind") == "system" else 0
    return KINDS.index(seen_kind(event)) | (BAD if exit_code_of(event) else 0) | trouble


def jumps(event_body: str) -> list[dict]:
    """First edit, first test run, first bad end, last test run, submit; retries and errors of a grading."""
    codes = outline(event_body)
    edits, tests, submits = (_of_kind(codes, kind) for kind in ("edit", "test", "submit"))
    bad = [n for n, code in enumerate(codes) if code & BAD]
    found = [("first edit", edits[:1]), ("first test run", tests[:1]), ("first bad exit", bad[:1])]
    found += [("last test run", tests[-1:] if len(tests) > 1 else []), ("submit", submits[-1:])]
    trouble = [n for n, code in enumerate(codes) if code & TROUBLE]
    found += [("retry or error", [n]) for n in trouble[:JUMPED]]
    return [{"words": words, "index": where[0]} for words, where in found if where]


def _of_kind(codes: bytes, kind: str) -> list[int]:
    wanted = KINDS.index(kind)
    return [n for n, code in enumerate(codes) if code & 0x1F == wanted]


def map_of(event_body: str, *, cited: Collection[int] = (), signals: Collection[int] = ()) -> dict:
    """What the map draws: at most 240 cells, each the weightiest of its events, bad ends and marks never left out."""
    codes = outline(event_body)
    wide = max(1, -(-len(codes) // CELLS))
    cells = [_cell(codes, n, wide, cited, signals) for n in range(-(-len(codes) // wide))]
    counts = [(kind, len(_of_kind(codes, kind))) for kind in LEGEND]
    return {
        "cells": cells,
        "width": max(len(cells), FEWEST),
        "per_cell": wide,
        "legend": [{"kind": kind, "count": count, "shape": _shape(kind, 0)} for kind, count in counts if count],
        "bad": sum(bool(code & BAD) for code in codes),
        "trouble": sum(bool(code & TROUBLE) for code in codes),
        "has_cited": bool(cited),
        "has_signals": bool(signals),
        "events": len(codes),
    }


def _shape(kind: str, x: int) -> str:
    return SHAPES[kind].format(x, x + 0.5, x + 1)


def _cell(codes: bytes, n: int, wide: int, cited: Collection[int], signals: Collection[int]) -> dict:
    first, last = n * wide, min((n + 1) * wide, len(codes)) - 1
    here = codes[first : last + 1]
    best = max(range(len(here)), key=lambda at: WEIGHT[KINDS[here[at] & 0x1F]])
    kind, is_bad, is_trouble = KINDS[here[best] & 0x1F], any(c & BAD for c in here), any(c & TROUBLE for c in here)
    marks = {name: [n for n in range(first, last + 1) if n in found] for name, found in
             (("cited", cited), ("signal", signals))}  # fmt: skip
    where = next(iter(marks["signal"] or marks["cited"]), first + best)
    words = f"e{first}" if first == last else f"e{first} to e{last}"
    words += (
        f", {kind}"
        + ", bad exit" * is_bad
        + ", retry or error" * is_trouble
        + "".join(f", {name}" for name, at in marks.items() if at)
    )
    return {
        "x": n, "at": where, "kind": kind, "shape": _shape(kind, n), "is_bad": is_bad or is_trouble, "words": words,
        "is_cited": bool(marks["cited"]), "is_signal": bool(marks["signal"]),
    }  # fmt: skip
