"""Citations: what they point at, and whether it is still there (method.md 2). Core."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from grading.review.diffs.patch import Patch, Side
from grading.review.passages import CitationKind, Place, as_shown, passages, said, words

State = Literal["exact", "moved", "ambiguous", "lost"]

FIELDS: dict[str, tuple[frozenset[str], frozenset[str]]] = {  # kind -> (required, optional)
    "patch_line": (frozenset({"path", "side", "line"}), frozenset({"line_end", "quote"})),
    "event": (frozenset({"event", "quote"}), frozenset()),
    "result": (frozenset({"result"}), frozenset()),
}
DIFF_SIGN = re.compile(r"^[+-]", re.MULTILINE)  # a quote copied from the raw patch brings its signs along
TEXTS = frozenset({"path", "side", "quote", "result"})


@dataclass(frozen=True, slots=True)
class Citation:
    """One pointer into a candidate: a changed patch line, an event with the quoted words, or an execution result.

    `line` counts from 1 on `side`, `line_end` is included; `event` counts from 0.
    """

    kind: CitationKind
    candidate: str
    path: str | None = None
    side: Side | None = None
    line: int | None = None
    line_end: int | None = None
    quote: str | None = None
    event: int | None = None
    result: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns: a JSON-able mapping with the fields of this kind that are set; `from_json` reads it back."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in fields.items() if value is not None}

    @classmethod
    def from_json(cls, raw: Any) -> "Citation":
        """Read a citation strictly: unknown fields and wrong types are refused, never guessed.

        Args:
            raw: a decoded JSON object; null means a field is not given.
        Returns:
            Citation.
        Raises:
            ValueError: names the field, what was got and what was expected.
        """
        if not isinstance(raw, Mapping):
            raise ValueError(f"a citation is {type(raw).__name__}, expected a JSON object")
        given = {name: value for name, value in raw.items() if value is not None}
        kind = given.pop("kind", None)
        if not isinstance(kind, str) or kind not in FIELDS:
            raise ValueError(f"citation kind is {kind!r}, expected one of {', '.join(get_args(CitationKind))}")
        required, optional = FIELDS[kind]
        required = required | {"candidate"}
        if missing := required - given.keys():
            raise ValueError(f"citation of kind {kind} lacks {', '.join(sorted(missing))}")
        if foreign := given.keys() - required - optional:
            allowed = ", ".join(sorted(required | optional))
            raise ValueError(f"citation of kind {kind} has {', '.join(sorted(map(str, foreign)))}, expected {allowed}")
        check_values(given)
        return cls(kind=kind, **given)


def check_values(given: Mapping[str, Any]) -> None:
    """Refuse a citation's field of a wrong type or outside its range.

    Args:
        given: field name -> value, nulls already left out.
    Raises:
        ValueError: names the field, what was got and what was expected.
    """
    for name, value in given.items():
        if name in TEXTS or name == "candidate":
            if not isinstance(value, str) or not value.strip():
                raise ValueError(f"citation {name} is {value!r}, expected text that is not blank")
        elif isinstance(value, bool) or not isinstance(value, int) or value < (0 if name == "event" else 1):
            raise ValueError(f"citation {name} is {value!r}, expected a whole number from {int(name != 'event')} on")
    if "side" in given and given["side"] not in get_args(Side):
        raise ValueError(f"citation side is {given['side']!r}, expected new or old")
    if given.get("line_end", given.get("line", 0)) < given.get("line", 0):
        raise ValueError(f"citation line_end is {given['line_end']}, expected at least its line {given['line']}")


@dataclass(frozen=True, slots=True)
class Resolution:
    """What became of a citation: `place` is set when it resolves, `places` are all that match, `why` is a sentence."""

    state: State
    why: str
    place: Place | None = None
    places: tuple[Place, ...] = ()

    @property
    def resolves(self) -> bool:
        return self.state in ("exact", "moved")


def resolve(
    citation: Citation,
    *,
    patch: Patch,
    event_text: Callable[[int], str | None],
    event_count: int,
    results: Collection[str],
) -> Resolution:
    """Say whether a citation points at something real of its candidate, and where it stands now.

    Args:
        citation: read by `Citation.from_json`.
        patch: the candidate's patch.
        event_text: index from 0 -> the event's text, None if its body is not kept. Called for the cited event,
            and for the others only when the words are not there. Words stand there as they were written or as a
            page shows them: without what a terminal obeys, hidden characters named.
        event_count: how many events the candidate has.
        results: names of the candidate's tests and checks.
    Returns:
        Resolution; `resolves` is true for exact and moved. A quote that needs other white space is never exact.
    """
    if citation.kind == "result":
        return _resolve_result(citation, results)
    if citation.kind == "event":
        return _resolve_event(citation, event_text, event_count)
    return _resolve_line(citation, patch)


def _resolve_result(citation: Citation, results: Collection[str]) -> Resolution:
    if citation.result in results:
        place = Place(kind="result", result=citation.result)
        return Resolution("exact", f"result {citation.result} is there", place, (place,))
    return Resolution("lost", f"no execution result of this candidate is named {citation.result!r}")


def _resolve_event(citation: Citation, event_text: Callable[[int], str | None], event_count: int) -> Resolution:
    verbatim = {said(citation.quote), citation.quote.strip()}
    quote, cited = words(citation.quote), citation.event

    def holds(index: int) -> bool:
        text = event_text(index)
        return text is not None and any(quote in words(seen) for seen in as_shown(text))

    if cited < event_count and holds(cited):
        place = Place(kind="event", event=cited)
        if any(one in seen for seen in as_shown(event_text(cited)) for one in verbatim):
            return Resolution("exact", f"event {cited} has the quoted words", place, (place,))
        return Resolution("moved", f"event {cited} has the quoted words with other white space", place, (place,))
    places = tuple(Place(kind="event", event=n) for n in range(event_count) if n != cited and holds(n))
    here = f"event {cited} does not have the quoted words" if cited < event_count else f"there is no event {cited}"
    if len(places) == 1:
        return Resolution("moved", f"{here}; event {places[0].event} has them", places[0], places)
    if places:
        return Resolution("ambiguous", f"{here}; {len(places)} others have them", None, places)
    return Resolution("lost", f"{here} and no other of the {event_count} has them")


def _resolve_line(citation: Citation, patch: Patch) -> Resolution:
    at = f"{citation.side} line {citation.line} of {citation.path}"
    cited = _cited_places(citation, patch)
    if citation.quote is None:
        if len(cited) == 1:
            return Resolution("exact", f"{at} is a changed line", cited[0], cited)
        if cited:
            return Resolution("ambiguous", f"{at} is changed {len(cited)} times in this patch", None, cited)
        return Resolution("lost", f"{at} is {_instead(citation, patch)}")
    quotes = dict.fromkeys([words(citation.quote), words(DIFF_SIGN.sub("", citation.quote))])
    other: Side = "old" if citation.side == "new" else "new"
    for side in (citation.side, other):
        for quote in filter(None, quotes):
            places = _distinct(place for passage in passages(patch, side) for place in passage.places(quote))
            if places:
                return _with_quote(citation, places, cited, patch)
    return Resolution("lost", f"no changed line of this candidate has the quoted words (cited at {at})")


def _with_quote(citation: Citation, places: tuple[Place, ...], cited: tuple[Place, ...], patch: Patch) -> Resolution:
    at = f"{citation.side} line {citation.line} of {citation.path}"
    last = citation.line_end or citation.line
    here = tuple(
        place
        for place in places
        if cited
        and (place.path, place.side) == (citation.path, citation.side)
        and place.line <= last
        and (place.line_end or place.line) >= citation.line
    )
    if here:
        if len({place.file for place in here}) > 1:
            return Resolution("ambiguous", f"the quoted words stand at {at} in {len(here)} patches of it", None, here)
        found = Place("patch_line", citation.path, citation.side, citation.line, citation.line_end, here[0].file)
        if _is_verbatim(citation, here[0].file, patch):
            return Resolution("exact", f"{at} has the quoted words", found, (found,))
        return Resolution("moved", f"{at} has the quoted words with other white space", found, (found,))
    if len(places) == 1:
        found = places[0]
        why = f"the quoted words are not at {at}; they stand at {found.side} line {found.line} of {found.path}"
        return Resolution("moved", why, found, places)
    return Resolution("ambiguous", f"the quoted words are not at {at}; {len(places)} places have them", None, places)


def _is_verbatim(citation: Citation, file: int, patch: Patch) -> bool:
    quotes = {said(citation.quote), DIFF_SIGN.sub("", said(citation.quote)).strip()}
    last = citation.line_end or citation.line
    here = passages(patch, citation.side, file)
    return any(passage.has_verbatim(quote, citation.line, last) for passage in here for quote in quotes)


def _cited_places(citation: Citation, patch: Patch) -> tuple[Place, ...]:
    """The cited line, where it is a changed line and the range ends in its hunk; several if a path is there twice."""
    found = []
    for n, file in patch.files_at(citation.path, citation.side):
        for hunk in file.hunks:
            shown = {line.number_on(citation.side): line.is_changed for line in hunk.lines}
            if shown.get(citation.line) and (citation.line_end is None or citation.line_end in shown):
                found.append(Place("patch_line", citation.path, citation.side, citation.line, citation.line_end, n))
    return tuple(found)


def _instead(citation: Citation, patch: Patch) -> str:
    """What the cited line is, when it is no changed line."""
    files = [file for _, file in patch.files_at(citation.path, citation.side)]
    if not files:
        return "in no file of this patch"
    shown = {line.number_on(citation.side): line.is_changed for file in files for line in file.lines}
    if shown.get(citation.line):
        return f"a changed line, but its hunk does not reach to line {citation.line_end}"
    return "shown, but unchanged" if citation.line in shown else "not in this patch"


def _distinct(places: Iterable[Place]) -> tuple[Place, ...]:
    return tuple(dict.fromkeys(places))
