"""Replies from JSON: a POSTed verdict, a model's answer, a person's correction. Core.

`read` keeps what is readable and lists the rest, so that a finding survives a broken reply; `from_json` refuses.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from grading.errors import BadInput
from grading.grader.shape import (
    FINDING_KINDS,
    TIER_NAMES,
    BadReply,
    CandidateReply,
    Cited,
    Finding,
    GraderReply,
    Order,
    Problem,
    Revision,
)
from grading.review.anchors import Citation
from grading.storable import check_depth, parse_json, storable

SAID_CHARS = 80  # how much of a wrong value an error repeats
Json = Mapping[str, Any]


def from_json(document: Any) -> GraderReply:
    """Read a reply that must be whole.

    Args:
        document: JSON values as `json.loads` gives them.
    Returns:
        The reply.
    Raises:
        BadReply: anything is missing, doubled or of another type; all of it is listed.
    """
    reply, problems = read(document)
    if problems:
        raise BadReply(problems)
    return reply


def read_text(text: str | bytes) -> tuple[GraderReply, list[Problem]]:
    """Read a reply from JSON text; cut or unreadable text is a problem and an empty reply.

    Args:
        text: one JSON object, each key once: of two scores nobody knows which was meant.
    Returns:
        The readable part and all problems.
    """
    try:
        document = parse_json(text, where="the reply")
    except BadInput as e:
        return GraderReply(()), [Problem("", e.what, e.got, e.expected)]
    return read(document)


def read(document: Any) -> tuple[GraderReply, list[Problem]]:
    """Read what can be read of a reply and list what cannot.

    Args:
        document: JSON values. Unknown fields are ignored, as everywhere on the wire; text is kept by `storable`'s rule.
    Returns:
        The readable part, and the problems in reading order; no problem means nothing was left out.
    """
    try:
        check_depth(document, where="the reply")
    except BadInput as e:
        return GraderReply(()), [Problem("", e.what, e.got, e.expected)]
    problems: list[Problem] = []
    document = storable(document)
    if not isinstance(document, dict):
        return GraderReply(()), [_wrong("", document, "a JSON object")]
    reply = GraderReply(
        candidates=tuple(_each(document, "candidates", "", problems, _candidate, required=True)),
        order=_order(document.get("order"), problems),
        revisions=tuple(_each(document, "revisions", "", problems, _revision)),
        findings=tuple(_each(document, "findings", "", problems, _finding)),
        notes=_text(document, "notes", "", problems),
    )
    return reply, problems


def _candidate(document: Json, where: str, problems: list[Problem]) -> CandidateReply | None:
    name = _name(document, "id", where, problems)
    if name is None:
        return None
    return CandidateReply(
        id=name,
        scores=_mapping(document, "scores", where, problems, fits=_is_scalar, expected="a whole number"),
        reasons=_mapping(document, "reasons", where, problems, fits=_is_text, expected="text"),
        flags=_mapping(document, "flags", where, problems, fits=_is_bool, expected="true or false"),
        citations=tuple(_each(document, "citations", where, problems, _cited, owner=name)),
    )


def _cited(document: Json, where: str, problems: list[Problem]) -> Cited | None:
    about = _name(document, "about", where, problems)
    citation = _citation({key: value for key, value in document.items() if key != "about"}, where, problems)
    return Cited(about, citation) if about is not None and citation is not None else None


def _revision(document: Json, where: str, problems: list[Problem]) -> Revision:
    return Revision(
        candidates=_names(document.get("candidates"), f"{where}.candidates", problems),
        reason=_text(document, "reason", where, problems),
        citations=tuple(_each(document, "citations", where, problems, _citation)),
    )


def _finding(document: Json, where: str, problems: list[Problem]) -> Finding | None:
    name, kind = _name(document, "id", where, problems), document.get("kind")
    if kind not in FINDING_KINDS:
        problems.append(_wrong(f"{where}.kind", kind, " or ".join(FINDING_KINDS)))
        return None
    reason = _text(document, "reason", where, problems)
    citations = tuple(_each(document, "citations", where, problems, _citation, owner=name))
    return None if name is None else Finding(name, kind, reason, citations)


def _citation(document: Json, where: str, problems: list[Problem]) -> Citation | None:
    try:
        return Citation.from_json(document)
    except ValueError as e:
        problems.append(Problem(where, "this is no citation", said(dict(document)), str(e)))
        return None


def _order(value: Any, problems: list[Problem]) -> Order | None:
    if value is None:
        return None
    if not isinstance(value, dict) or not set(value) <= set(TIER_NAMES):
        problems.append(_wrong("order", value, f"an object with the keys {', '.join(TIER_NAMES)}"))
        return None
    order: dict[str, tuple[tuple[str, ...], ...]] = {}
    for tier in TIER_NAMES:
        groups = value.get(tier, [])
        if not isinstance(groups, list):
            problems.append(_wrong(f"order.{tier}", groups, "a list of tied groups, best first"))
            return None
        order[tier] = tuple(_names(tied, f"order.{tier}[{i}]", problems) for i, tied in enumerate(groups))
    return order


def _each(
    document: Json,
    key: str,
    where: str,
    problems: list[Problem],
    one: Callable[[Json, str, list[Problem]], Any],
    *,
    required: bool = False,
    owner: str | None = None,
) -> list[Any]:
    """Read the list under a key item by item with `one`; an unreadable item is left out and listed.

    `owner` is the candidate that citations inside it are about where they name none.
    """
    place = f"{where}.{key}" if where else key
    items = document.get(key, None if required else [])
    if not isinstance(items, list):
        problems.append(_wrong(place, items, "a list"))
        return []
    found = []
    for i, item in enumerate(items):
        here = f"{place}[{i}]"
        if not isinstance(item, dict):
            problems.append(_wrong(here, item, "an object"))
        elif (value := one({"candidate": owner, **item} if owner else item, here, problems)) is not None:
            found.append(value)
    return found


def _mapping(
    document: Json, key: str, where: str, problems: list[Problem], *, fits: Callable[[Any], bool], expected: str
) -> dict[str, Any]:
    items = document.get(key, {})
    if not isinstance(items, dict):
        problems.append(_wrong(f"{where}.{key}", items, "an object"))
        return {}
    for name, value in items.items():
        if not fits(value):
            problems.append(_wrong(f"{where}.{key}.{name}", value, expected))
    return {name: value for name, value in items.items() if fits(value)}


def _names(value: Any, where: str, problems: list[Problem]) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(_is_text(name) and name for name in value):
        problems.append(_wrong(where, value, "a list of candidate ids, at least one"))
        return ()
    return tuple(value)


def _name(document: Json, key: str, where: str, problems: list[Problem]) -> str | None:
    value = document.get(key)
    if not _is_text(value) or not value:
        problems.append(_wrong(f"{where}.{key}", value, "text that is not empty"))
        return None
    return value


def _text(document: Json, key: str, where: str, problems: list[Problem]) -> str:
    value = document.get(key, "")
    if not _is_text(value):
        problems.append(_wrong(f"{where}.{key}" if where else key, value, "text"))
        return ""
    return value


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


def said(value: Any) -> str:
    """Give a wrong value as short JSON for a message."""
    text = json.dumps(value, default=str)
    return text if len(text) <= SAID_CHARS else f"{text[:SAID_CHARS]}… ({len(text)} characters)"


def _wrong(where: str, value: Any, expected: str) -> Problem:
    what = "this is missing" if value is None else "this has another type or value"
    return Problem(where, what, None if value is None else said(value), expected)
