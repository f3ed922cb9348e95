"""The fields of a correction as a plain form posts them, read into scores, flags, places and citations. Core.

Names are neutral letters; `drafts` knows which rollout a letter stands for.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from grading.review.anchors import Citation
from grading.scoring.criteria import CRITERIA, FLAGS, HIGHEST, LOWEST
from grading.storable import storable

Fields = Mapping[str, Sequence[str]]
SIDES = {"new": "new", "old": "old"}
KINDS = ("new", "old", "event", "result")
ABOUT = (*CRITERIA, *FLAGS, "revision")
SCORE = re.compile(r"score-([A-Z]+)-([a-z_]+)")
PLACE = re.compile(r"place-([A-Z]+)")
DRAWN = re.compile(r"drawn-([A-Z]+)")  # and with a score's name: what the page drew there because a twin has it
SEAT = re.compile(r"([1-3])-(\d{1,9})")
CITED = re.compile(r"cite-(\d{1,3})-place")
LINES = re.compile(r"(.+):(\d{1,9})(?:-(\d{1,9}))?")
WHOLE = re.compile(r"\d{1,9}")


@dataclass(frozen=True)
class PostedCitation:
    """One row of the form as typed; `citation` names its candidate by letter and is None where `error` says why."""

    n: int
    letter: str
    about: str
    kind: str
    place: str
    quote: str
    citation: Citation | None = None
    error: str = ""


@dataclass(frozen=True)
class Posted:
    """A whole form. `scores` holds what was typed too, so that a page can show it again; `errors` are sentences.

    A score that a page drew because a twin has it is left out: it is typed nowhere and follows the twin.
    `drawn`: the tier and place that the page gave a card by itself. Only a place that differs from it was typed.
    """

    verdict: int | None
    reason: str
    scores: Mapping[str, Mapping[str, int | str]]
    flags: Mapping[str, frozenset[str]]
    places: Mapping[str, int]
    citations: tuple[PostedCitation, ...]
    errors: tuple[str, ...]
    drawn: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def is_unread(self) -> bool:
        """Whether a score was typed that is none."""
        return any(not isinstance(score, int) for typed in self.scores.values() for score in typed.values())


def read_form(fields: Fields) -> Posted:
    """Read all that a correction may say.

    Args:
        fields: name -> values, as `QueryDict.lists()` gives them.
    Returns:
        The form; what cannot be read is in `errors` and stands as it was typed.
    """
    errors: list[str] = []
    scores = _scores(fields, errors)
    citations = read_citations(fields)
    errors += [f"Citation {cited.n}: {cited.error}" for cited in citations if cited.error]
    return Posted(
        verdict=int(seen) if WHOLE.fullmatch(seen := _one(fields, "verdict")) else None,
        reason=_one(fields, "reason").strip(),
        scores=scores,
        flags={letter: _flags(fields, letter, errors) for letter in scores},
        places=_places(fields, errors),
        citations=citations,
        errors=tuple(errors),
        drawn=_drawn(fields),
    )


def _one(fields: Fields, name: str) -> str:
    values = fields.get(name) or ("",)
    return storable(values[-1])


def _scores(fields: Fields, errors: list[str]) -> dict[str, dict[str, int | str]]:
    scores: dict[str, dict[str, int | str]] = {}
    for name in fields:
        found = SCORE.fullmatch(name)
        if not found or found[2] not in CRITERIA:
            continue
        letter, criterion = found[1], found[2]
        typed = _one(fields, name).strip()
        mine = scores.setdefault(letter, {})
        if typed and typed == _one(fields, f"drawn-{letter}-{criterion}"):
            continue
        if WHOLE.fullmatch(typed) and LOWEST <= int(typed) <= HIGHEST:
            mine[criterion] = int(typed)
        else:
            mine[criterion] = typed[:20]
            said = f"got {typed[:20]!r}" if typed else "it is empty"
            errors.append(f"{letter} {criterion}: {said}, expected a whole number from {LOWEST} to {HIGHEST}")
    return scores


def _flags(fields: Fields, letter: str, errors: list[str]) -> frozenset[str]:
    said = fields.get(f"flag-{letter}", ())
    errors += [f"{letter} has the unknown flag {flag[:40]!r}" for flag in said if flag not in FLAGS]
    return frozenset(flag for flag in said if flag in FLAGS)


def _places(fields: Fields, errors: list[str]) -> dict[str, int]:
    places = {}
    for name in fields:
        if not (found := PLACE.fullmatch(name)):
            continue
        typed = _one(fields, name).strip()
        if WHOLE.fullmatch(typed) and int(typed) >= 1:
            places[found[1]] = int(typed)
        elif typed:
            errors.append(f"{found[1]} place: got {typed[:20]!r}, expected a whole number from 1 on")
    return places


def _drawn(fields: Fields) -> dict[str, tuple[int, int]]:
    seats = {found[1]: SEAT.fullmatch(_one(fields, name)) for name in fields if (found := DRAWN.fullmatch(name))}
    return {letter: (int(seat[1]), int(seat[2])) for letter, seat in seats.items() if seat}


def read_citations(fields: Fields) -> tuple[PostedCitation, ...]:
    """Read the citation rows of a form.

    Args:
        fields: with `cite-<n>-letter|about|kind|place|quote`; a row with an empty place is left out.
    Returns:
        The rows by their numbers, each with its citation or the error.
    """
    numbers = sorted(int(found[1]) for name in fields if (found := CITED.fullmatch(name)))
    rows = []
    for n in numbers:
        said = {
            part: _one(fields, f"cite-{n}-{part}").strip() for part in ("letter", "about", "kind", "place", "quote")
        }
        if said["place"]:
            rows.append(_cited(n, said))
    return tuple(rows)


def _cited(n: int, said: Mapping[str, str]) -> PostedCitation:
    if said["about"] and said["about"] not in ABOUT:
        return PostedCitation(
            n, **said, error=f"it is about {said['about'][:40]!r}, expected a criterion, flag or order"
        )
    try:
        return PostedCitation(n, **said, citation=read_place(**{k: v for k, v in said.items() if k != "about"}))
    except ValueError as e:
        return PostedCitation(n, **said, error=str(e))


def read_place(*, letter: str, kind: str, place: str, quote: str = "") -> Citation:
    """Read one place as people write it.

    Args:
        letter: of the candidate.
        kind: new or old (a line of that side), event, result.
        place: `src/app.py:41` or `src/app.py:41-43`, an event's number, a test's name.
        quote: the words that stand there; an event needs them.
    Returns:
        The citation, its candidate by letter.
    Raises:
        ValueError: says what is wrong with it.
    """
    if kind not in KINDS:
        raise ValueError(f"the kind of place is {kind[:40]!r}, expected one of {', '.join(KINDS)}")
    fields: dict[str, Any] = {"candidate": letter or None, "quote": quote or None}
    if kind in SIDES:
        if not (lines := LINES.fullmatch(place)):
            raise ValueError(f"the place is {place[:80]!r}, expected a path and lines such as src/app.py:41-43")
        fields |= {"kind": "patch_line", "path": lines[1], "side": kind, "line": int(lines[2])}
        fields |= {"line_end": int(lines[3])} if lines[3] else {}
    elif kind == "event":
        number = place.removeprefix("e")
        if not WHOLE.fullmatch(number):
            raise ValueError(f"the place is {place[:80]!r}, expected the number of an event")
        if not quote:
            raise ValueError("an event is cited with the words that stand there")
        fields |= {"kind": "event", "event": int(number)}
    else:
        fields = {"kind": "result", "candidate": letter or None, "result": place}
    return Citation.from_json(fields)
