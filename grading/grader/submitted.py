"""The one way to give a verdict: what `submit` takes, reasons before scores, and how it is read. Core."""

import re
from collections.abc import Mapping
from typing import Any

from grading.errors import BadInput
from grading.grader.parse import CLAIMS
from grading.grader.shape import FINDING_KINDS, TIER_NAMES, GraderReply, Problem
from grading.grader.wire import read
from grading.review.diffs.text import CONTROLS, DELETE
from grading.scoring.criteria import CRITERIA, FLAGS, HIGHEST, LOWEST
from grading.storable import parse_json

SUBMIT = "submit"
MAX_CHARS = 1_000_000  # of one submission
_PLACE = {
    "kind": {"type": "string", "enum": ["patch_line", "event", "result"]},
    "path": {"type": "string", "description": "patch_line: as in read_patch"},
    "side": {"type": "string", "enum": ["new", "old"], "description": "patch_line: as in read_patch"},
    "line": {"type": "integer", "description": "patch_line: a changed line's number on that side"},
    "line_end": {"type": "integer", "description": "patch_line: last line, for a range"},
    "event": {"type": "integer", "description": "event: its index"},
    "quote": {"type": "string", "description": "event: words of it, literally; patch_line: optional"},
    "result": {"type": "string", "description": "result: a test's or check's name, or outcome"},
}
STAND_IN = re.compile(r"⟨(?:U\+([0-9A-F]{4,6})|([A-Z0-9]{2,3}))⟩")


def submit_schema() -> dict[str, Any]:
    """Returns: the JSON schema of a submission. Within a candidate the reasons stand first and the scores last."""
    about = {"type": "string", "enum": [c for c in CLAIMS if c not in FINDING_KINDS and c != "revision"]}
    letter = {"type": "string", "description": "a candidate's letter"}
    owned = _object(_PLACE, ["kind"])
    candidate = _object(
        {
            "id": letter,
            "reasons": _object({c: {"type": "string"} for c in CRITERIA}, list(CRITERIA)),
            "citations": _list(_object({"about": about, **_PLACE}, ["about", "kind"])),
            "flags": _object({flag: {"type": "boolean"} for flag in FLAGS}, list(FLAGS)),
            "scores": _object(
                {c: {"type": "integer", "minimum": LOWEST, "maximum": HIGHEST} for c in CRITERIA}, list(CRITERIA)
            ),
        },
        ["id", "reasons", "citations", "flags", "scores"],
    )
    finding = {
        "id": letter,
        "kind": {"type": "string", "enum": list(FINDING_KINDS)},
        "reason": {"type": "string"},
        "citations": _list(owned),
    }
    revision = {
        "candidates": _list(letter),
        "reason": {"type": "string"},
        "citations": _list(_object({"candidate": letter, **_PLACE}, ["candidate", "kind"])),
    }
    tiers = {tier: _list(_list(letter)) for tier in TIER_NAMES}
    fields = {
        "findings": _list(_object(finding, list(finding))),
        "candidates": _list(candidate),
        "revisions": _list(_object(revision, list(revision))),
        "order": {
            **_object(tiers, []),
            "description": "only with revisions: tier -> tied groups of letters, best first",
        },
        "notes": {"type": "string"},
    }
    return _object(fields, ["findings", "candidates"])


def _object(properties: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": required, "additionalProperties": False}


def _list(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": dict(items)}


def read_submission(arguments: str | Mapping[str, Any] | None) -> tuple[GraderReply, list[Problem]]:
    """Read the arguments of a submit call.

    Args:
        arguments: as the model sent them: JSON text, or values.
    Returns:
        The readable part by letters, and all that could not be read. A citation's field that is left blank is not
        given; our stand-ins of invisible characters (⟨U+202E⟩) in a quote become the characters again.
    """
    if isinstance(arguments, str):
        if len(arguments) > MAX_CHARS:
            return GraderReply(()), [Problem("", "the submission is too long", str(len(arguments)), f"<= {MAX_CHARS}")]
        try:
            arguments = parse_json(arguments, where="the submission")
        except BadInput as e:
            return GraderReply(()), [Problem("", e.what, e.got, e.expected)]
    return read(_unblanked(arguments) if isinstance(arguments, Mapping) else arguments)


def _unblanked(document: Mapping[str, Any]) -> dict[str, Any]:
    """The same document, blank fields of citations taken out, invisible characters of quotes put back."""
    found = dict(document)
    for key in ("candidates", "findings", "revisions"):
        if isinstance(items := found.get(key), list):
            found[key] = [_with_citations(item) if isinstance(item, Mapping) else item for item in items]
    return found


def _with_citations(item: Mapping[str, Any]) -> dict[str, Any]:
    cited = item.get("citations")
    if not isinstance(cited, list):
        return dict(item)
    return {**item, "citations": [_citation(one) if isinstance(one, Mapping) else one for one in cited]}


def _citation(one: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in one.items() if value is not None and value != ""}
    if isinstance(quote := kept.get("quote"), str):
        kept["quote"] = STAND_IN.sub(_character, quote)
    return kept


def _character(found: re.Match[str]) -> str:
    code, name = found.groups()
    if code and int(code, 16) <= 0x10FFFF:
        return chr(int(code, 16))
    if name in CONTROLS:
        return chr(CONTROLS.index(name))
    return chr(DELETE) if name == "DEL" else found.group()
