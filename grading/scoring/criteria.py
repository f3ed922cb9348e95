"""The five criteria, the four flags, and the rubric version that weighs them. Eq. (5)."""

import re
import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

CRITERIA = ("approach", "precision", "minimality", "side_effects", "consistency")
FLAGS = ("unrequested_rewrite", "test_specific_workaround", "severe_process_issue", "unresolved_regression")
LOWEST, HIGHEST = 1, 5

# Short on purpose: "1e999999999" is a decimal string too, and its fraction does not fit in memory.
DECIMAL = re.compile(r"[0-9]{1,6}(\.[0-9]{1,12})?")
_SHORT = reprlib.Repr()
_SHORT.maxlevel, _SHORT.maxstring, _SHORT.maxlist, _SHORT.maxdict = 3, 60, 16, 8

CONSTANTS = {"runner": "f_runner", "min": "f_min", "max": "f_max", "low": "f_low"}
THRESHOLDS = ("t1_floor", "t3_approach", "t3_minimality", "t3_side_effects")


@dataclass(frozen=True)
class Candidate:
    """A passing rollout being ranked: five integer scores and the flags raised."""

    id: str
    scores: Mapping[str, int]
    flags: frozenset[str] = frozenset()

    def __post_init__(self):
        check_scores(self.id, self.scores)
        unknown = sorted(set(self.flags) - set(FLAGS))
        if unknown:
            raise ValueError(f"candidate {self.id!r} has flags {unknown}, expected some of {list(FLAGS)}")


@dataclass(frozen=True)
class Rubric:
    """One rubric version, exact. Building it applies the rules of publishing.

    Args:
        name: what messages call it.
        weights: one decimal per criterion, in the order of CRITERIA; no unit, sum 1.
        f_runner, f_min, f_max, f_low: the constants of Eq. (6), in (0, 1].
        lambda_max: the bound of Eq. (7), no unit; None is the exact form.
        t1_floor: T1 asks for this score on every criterion.
        t3_approach, t3_minimality, t3_side_effects: at or below is T3 (the last two only together).
    Raises:
        ValueError: a rule of publishing is broken; all broken rules are named.
    """

    name: str
    weights: tuple[Decimal, ...]
    f_runner: Decimal
    f_min: Decimal
    f_max: Decimal
    f_low: Decimal
    lambda_max: Decimal | None
    t1_floor: int = 4
    t3_approach: int = 1
    t3_minimality: int = 2
    t3_side_effects: int = 2

    def __post_init__(self):
        problems = list(self._broken_rules())
        if problems:
            raise ValueError(f"rubric {self.name!r} " + "; ".join(problems))

    def _broken_rules(self) -> Iterable[str]:
        if len(self.weights) != len(CRITERIA):
            yield f"has {len(self.weights)} weights, expected {len(CRITERIA)}"
        if min(self.weights, default=0) < 0:
            yield f"has the weight {min(self.weights)}, expected weights >= 0"
        if sum(map(Fraction, self.weights)) != 1:
            yield f"weights sum to {sum(self.weights)}, expected 1"
        if not 0 < self.f_low <= self.f_min <= self.f_max <= self.f_runner <= 1:
            got = f"low {self.f_low}, min {self.f_min}, max {self.f_max}, runner {self.f_runner}"
            yield f"has the constants {got}, expected 0 < low <= min <= max <= runner <= 1"
        if self.lambda_max is not None and self.lambda_max < 1:
            yield f"has lambda_max {self.lambda_max}, expected >= 1, or null for the exact form"
        for threshold in THRESHOLDS:
            value = getattr(self, threshold)
            if type(value) is not int or not 0 <= value <= HIGHEST:
                yield f"has {threshold} {value!r}, expected an integer from 0 to {HIGHEST}"

    @classmethod
    def from_json(cls, wire: object, *, name: str = "unnamed") -> "Rubric":
        """Read `{weights, constants {runner, min, max, low, lambda_max}, thresholds?}`.

        Args:
            wire: decimals as strings, thresholds as integers; missing thresholds are Flash's.
            name: what messages call it.
        Returns:
            The rubric, checked by the rules of publishing.
        Raises:
            ValueError: a field is missing, unknown or no decimal string, or a rule is broken.
        """
        where = f"rubric {name!r}"
        parts = checked_object(where, wire, ("weights", "constants"), ("thresholds",))
        weights = checked_object(f"{where} weights", parts["weights"], CRITERIA)
        constants = checked_object(f"{where} constants", parts["constants"], (*CONSTANTS, "lambda_max"))
        thresholds = checked_object(f"{where} thresholds", parts.get("thresholds", {}), (), THRESHOLDS)
        lambda_max = constants["lambda_max"]
        return cls(
            name=name,
            weights=tuple(as_decimal(f"{where} weight {c}", weights[c]) for c in CRITERIA),
            **{field: as_decimal(f"{where} constant {key}", constants[key]) for key, field in CONSTANTS.items()},
            lambda_max=None if lambda_max is None else as_decimal(f"{where} constant lambda_max", lambda_max),
            **thresholds,
        )

    def to_json(self) -> dict:
        """Return the shape `from_json` reads: decimals as strings, thresholds as integers."""
        constants = {key: str(getattr(self, field)) for key, field in CONSTANTS.items()}
        constants["lambda_max"] = None if self.lambda_max is None else str(self.lambda_max)
        return {
            "weights": {c: str(w) for c, w in zip(CRITERIA, self.weights, strict=True)},
            "constants": constants,
            "thresholds": {t: getattr(self, t) for t in THRESHOLDS},
        }


def weighted_score(scores: Mapping[str, int], rubric: Rubric) -> Fraction:
    """Weigh the five scores into W, exactly: candidates equal on paper are equal here. Eq. (5).

    Args:
        scores: criterion -> integer 1 to 5.
        rubric: whose weights count.
    Returns:
        W in points, 1 to 5, as a fraction.
    """
    return sum(Fraction(w) * scores[c] for c, w in zip(CRITERIA, rubric.weights, strict=True))


def check_scores(candidate: str, scores: object) -> None:
    """Refuse anything but one integer from 1 to 5 per criterion.

    Args:
        candidate: the id that messages name.
        scores: criterion -> score.
    Raises:
        ValueError: a criterion is missing or unknown, or a score is no such integer.
    """
    checked_object(f"candidate {candidate!r} scores", scores, CRITERIA)
    for criterion in CRITERIA:
        score = scores[criterion]
        if type(score) is not int or not LOWEST <= score <= HIGHEST:
            raise ValueError(
                f"candidate {candidate!r} scores {short(score)} on {criterion}, "
                f"expected an integer from {LOWEST} to {HIGHEST}"
            )


def as_decimal(what: str, text: object) -> Decimal:
    """Read a decimal literal. Floats are refused: 0.1 as a float is not a tenth, and ties would break.

    Args:
        what: the name that a message gives the value.
        text: digits, optionally a point and up to 12 more.
    Returns:
        The decimal, exact.
    Raises:
        ValueError: it is no such string.
    """
    if not isinstance(text, str) or not DECIMAL.fullmatch(text):
        raise ValueError(f'{what} is {short(text)}, expected a decimal string such as "0.25"')
    return Decimal(text)


def checked_object(what: str, got: object, required: Iterable[str], optional: Iterable[str] = ()) -> Mapping:
    """Return `got` if it is a mapping with all required keys and no unknown one.

    Raises:
        ValueError: it is not.
    """
    if not isinstance(got, Mapping):
        raise ValueError(f"{what} is {short(got)}, expected an object")
    missing = [key for key in required if key not in got]
    unknown = [key for key in got if key not in (*required, *optional)]
    if missing or unknown:
        found = [f"lacks {missing}"] * bool(missing) + [f"has the unknown {short(unknown)}"] * bool(unknown)
        raise ValueError(f"{what} {' and '.join(found)}, expected {[*required, *optional]}")
    return got


def short(value: object) -> str:
    """Show a value in a message: a line, whatever its size or depth."""
    try:
        return _SHORT.repr(value)
    except ValueError:  # Python writes out no integer above 4,300 digits
        return f"a {type(value).__name__} that is too long to show"


FLASH = Rubric(
    name="flash",
    weights=tuple(map(Decimal, ("0.30", "0.25", "0.20", "0.15", "0.10"))),
    f_runner=Decimal("0.9"),
    f_min=Decimal("0.4"),
    f_max=Decimal("0.85"),
    f_low=Decimal("0.2"),
    lambda_max=Decimal("1.5"),
)
