"""The form of a new audit and that of a person's verdict, read from plain posts."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from grading.audit import citing
from grading.audit.judged import Said
from grading.audit.pooling import MOST_ARMS, Arm, Window
from grading.errors import BadInput
from grading.models import Run
from grading.review.correction_form import PostedCitation, read_citations
from grading.scoring.criteria import CRITERIA, FLAGS, HIGHEST, LOWEST

ROWS = range(4)  # arms that the page offers; the command takes more
SPAN = re.compile(r"(\d{1,7})\s*-\s*(\d{1,7})")
MOST_PLACES = 99
Fields = Mapping[str, str]


def read_arms(fields: Fields, runs: Mapping[str, Run]) -> list[Arm]:
    """The arms of a form: run-0, name-0, first-0, last-0, …; rows without a run are left out."""
    found = []
    for n in ROWS:
        run = runs.get(fields.get(f"run-{n}", ""))
        if run:
            first, last = (_step(fields.get(f"{end}-{n}", "")) for end in ("first", "last"))
            found.append(Arm(run, fields.get(f"name-{n}", "").strip()[:120], first, last))
    if len(found) > MOST_ARMS:
        raise BadInput("too many arms", got=len(found), expected=f"at most {MOST_ARMS}")
    return found


def read_windows(text: str) -> list[Window]:
    """`0-9, 10-19`: checkpoints as steps, first and last. Nothing: all steps as one."""
    parts = [part for part in re.split(r"[,;\s]+(?=\d)", text.strip()) if part]
    found = [SPAN.fullmatch(part.strip()) for part in parts]
    if wrong := [part for part, span in zip(parts, found, strict=True) if span is None]:
        raise BadInput("checkpoints", got=", ".join(wrong)[:80], expected="first-last, such as 0-9, 10-19")
    return [(int(span[1]), int(span[2])) for span in found]


def read_count(text: str, what: str) -> int | None:
    text = text.strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 8 and int(text) > 0):
        raise BadInput(what, got=text[:40], expected="a whole number above 0, or nothing")
    return int(text)


def _step(text: str) -> int | None:
    text = text.strip()
    if text and not (text.isascii() and text.isdigit() and len(text) < 8):
        raise BadInput("a step", got=text[:40], expected="a whole number from 0, or nothing")
    return int(text) if text else None


@dataclass(frozen=True)
class Posted:
    """A verdict's form: what was typed by field, what it says, and what is wrong with it, in sentences."""

    typed: Mapping[str, str] = field(default_factory=dict)
    raised: frozenset[str] = frozenset()  # "A-unrequested_rewrite"
    said: tuple[Said, ...] = ()
    notes: str = ""
    cited: tuple[PostedCitation, ...] = ()
    errors: tuple[str, ...] = ()


def read_verdict(fields: Mapping[str, Sequence[str]], letters: Sequence[str]) -> Posted:
    """Read scores (`A-approach`), flags (`flag-A`), places (`place-A`), reasons (`reason-A`), citations and notes.

    Args:
        fields: name -> values, as `QueryDict.lists()` gives them.
        letters: the candidates.
    Returns:
        The form; a score that is missing or no integer from 1 to 5 is an error that names it.
    """
    typed = {name: values[-1].strip()[:2000] for name, values in fields.items() if values}
    raised = {letter: frozenset(set(fields.get(f"flag-{letter}", ())) & set(FLAGS)) for letter in letters}
    errors, said, cited = [], [], read_citations(fields)
    for letter in letters:
        scores = {c: _score(typed.get(f"{letter}-{c}", "")) for c in CRITERIA}
        if missing := [c.replace("_", " ") for c, score in scores.items() if score is None]:
            errors.append(f"{letter} has no score from {LOWEST} to {HIGHEST} on {', '.join(missing)}.")
        place = typed.get(f"place-{letter}", "")
        if place and not _is_place(place):
            errors.append(f"{letter}: {place[:20]!r} is no place; a whole number from 1 to {MOST_PLACES}, or nothing.")
            place = ""
        reason = typed.get(f"reason-{letter}", "")
        shown = citing.of_letter(cited, letter)
        said.append(Said(letter, scores, raised[letter], reason, int(place) if place else None, shown))
    flags = frozenset(f"{letter}-{flag}" for letter, some in raised.items() for flag in some)
    notes = typed.get("notes", "")
    return Posted(typed, flags, () if errors else tuple(said), notes, cited, tuple(errors))


def without_errors(posted: Posted) -> Posted:
    """What was typed, for somebody who only looks at other candidates and has not handed in yet."""
    return replace(posted, errors=())


def _score(text: str) -> int | None:
    return int(text) if len(text) == 1 and text in "12345" else None


def _is_place(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 3 and 1 <= int(text) <= MOST_PLACES
