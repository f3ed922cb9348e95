"""Numbers of a rubric as a form writes them: read whole, or refused in words. Core."""

from collections.abc import Mapping
from dataclasses import dataclass

from grading.scoring.criteria import CONSTANTS, CRITERIA, THRESHOLDS, Rubric

WEIGHT = "weight-"
LAMBDA = "lambda_max"
FIELDS = (*(WEIGHT + c for c in CRITERIA), *CONSTANTS, LAMBDA, *THRESHOLDS)


@dataclass(frozen=True)
class Typed:
    """The form as it was typed, with the rubric it means, or why it means none."""

    fields: Mapping[str, str]
    rubric: Rubric | None
    error: str = ""

    @property
    def definition(self) -> dict | None:
        return self.rubric.to_json() if self.rubric else None


def typed_of(rubric: Rubric) -> dict[str, str]:
    """The fields that stand for a rubric. An empty lambda_max is the exact form."""
    wire = rubric.to_json()
    bound = wire["constants"][LAMBDA]
    return {
        **{WEIGHT + c: wire["weights"][c] for c in CRITERIA},
        **{name: wire["constants"][name] for name in CONSTANTS},
        LAMBDA: "" if bound is None else bound,
        **{name: str(wire["thresholds"][name]) for name in THRESHOLDS},
    }


def read_rubric(query: Mapping[str, str], base: Rubric) -> Typed:
    """Read the fields of a form; one that is not there keeps the number of `base`.

    Args:
        query: name -> text.
        base: the version that the form began from.
    Returns:
        The form. `error` names every rule of publishing that it breaks.
    """
    fields = typed_of(base) | {name: query[name].strip()[:20] for name in FIELDS if name in query}
    wire = {
        "weights": {c: fields[WEIGHT + c] for c in CRITERIA},
        "constants": {name: fields[name] for name in CONSTANTS} | {LAMBDA: fields[LAMBDA] or None},
        "thresholds": {name: _integer(fields[name]) for name in THRESHOLDS},
    }
    try:
        return Typed(fields, Rubric.from_json(wire, name="of the form"))
    except ValueError as wrong:
        return Typed(fields, None, str(wrong))


def same_numbers(one: Rubric, other: Rubric) -> bool:
    """Whether two rubrics are the same numbers, however they are written: 0.30 is 0.3."""
    numbers = [(r.weights, r.f_runner, r.f_min, r.f_max, r.f_low, r.lambda_max) for r in (one, other)]
    thresholds = [[getattr(r, name) for name in THRESHOLDS] for r in (one, other)]
    return numbers[0] == numbers[1] and thresholds[0] == thresholds[1]


def _integer(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 4 else text
