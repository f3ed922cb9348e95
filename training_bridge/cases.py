"""`manage.py redistribute`: one case as JSON wrote it, turned into what training gets. Pure."""

import math
from collections.abc import Mapping

from grading.scoring.cases import is_set
from grading.scoring.criteria import short
from grading.scoring.rows import FAILED, HACK, INFRA_INVALID, OK, PASSED, Row
from training_bridge.payload import Numbers, numbers
from training_bridge.redistribution.regimes import CONTROLS, METHODS, REDISTRIBUTE


def redistribute_case(case: object) -> dict:
    """Redistribute one case.

    Args:
        case: `{method, lambda_max, broken_evaluation?, trajectories [{id, passed, valid = true,
            hack = false, reward?, factor?}]}`; other keys are not read.
    Returns:
        `{status}`; with status `ok` also `{lambda, capped, regime, advantages, equivalent_rewards,
        positive_sum, negative_sum}`, the two by id without the masked rows.
    Raises:
        ValueError: the case has another shape, some factors are missing or outside (0, 1], or an
            id is there twice.
    """
    if not isinstance(case, Mapping):
        raise ValueError(f"the case is {short(case)}, expected an object")
    method, wires = case.get("method"), case.get("trajectories")
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"method is {short(method)}, expected one of {list(METHODS)}")
    if not isinstance(wires, list):
        raise ValueError(f"trajectories is {short(wires)}, expected a list")
    rows = [read_row(wire) for wire in wires]
    made = numbers(
        rows,
        {row.id: read_factor(wire) for row, wire in zip(rows, wires, strict=True) if counts_as_pass(row)},
        method=method,
        lambda_max=read_lambda_max(case, method),
        eligible=True,
        broken_evaluation=is_set(case, "broken_evaluation"),
        mask_truncated=False,
        allow_negative_discount=True,
    )
    return {"status": made.status} | (_as_json(made) if made.status == OK else {})


def _as_json(made: Numbers) -> dict:
    credit, counted = made.credit, [row for row in made.rows if row.outcome != INFRA_INVALID]
    return {
        "lambda": credit.lambda_,
        "capped": credit.capped,
        "regime": credit.regime,
        "advantages": {row.trajectory: row.advantage for row in counted},
        "equivalent_rewards": {row.trajectory: row.equivalent_reward for row in counted},
        "positive_sum": credit.positive_sum,
        "negative_sum": credit.negative_sum,
    }


def read_row(wire: object) -> Row:
    """Read `{id, passed, valid = true, hack = false, reward?}`.

    Raises:
        ValueError: a field is missing or has another type.
    """
    if not isinstance(wire, Mapping) or not isinstance(wire.get("id"), str):
        raise ValueError(f"a trajectory is {short(wire)}, expected an object with an id that is a string")
    valid = wire.get("valid", True)
    if not isinstance(valid, bool) or not isinstance(wire.get("passed"), bool):
        got = f"valid {short(valid)} and passed {short(wire.get('passed'))}"
        raise ValueError(f"trajectory {wire['id']!r} has {got}, expected true or false for both")
    outcome = INFRA_INVALID if not valid else PASSED if wire["passed"] else FAILED
    reward = wire.get("reward")
    return Row(
        id=wire["id"],
        outcome=outcome,
        reward=None if reward is None else as_float(f"trajectory {wire['id']!r} reward", reward),
        integrity=HACK if is_set(wire, "hack") else None,
    )


def read_factor(wire: Mapping) -> float | None:
    """Read the factor of a pass; null or missing is none.

    Raises:
        ValueError: it is no number.
    """
    factor = wire.get("factor")
    return None if factor is None else as_float(f"trajectory {wire['id']!r} factor", factor)


def read_lambda_max(case: Mapping, method: str) -> float | None:
    """Read the bound. It has no default where it counts: leaving it out must not mean "no bound".

    Raises:
        ValueError: it is missing for `redistribute` or a control, or neither null nor a finite number >= 1.
    """
    if method in (REDISTRIBUTE, *CONTROLS) and "lambda_max" not in case:
        raise ValueError("lambda_max is missing, expected a number >= 1, or null for the exact form")
    lambda_max = case.get("lambda_max")
    if lambda_max is None:
        return None
    bound = as_float("lambda_max", lambda_max)
    if not 1 <= bound < math.inf:
        raise ValueError(f"lambda_max is {bound}, expected a finite number >= 1, or null for the exact form")
    return bound


def counts_as_pass(row: Row) -> bool:
    """Whether anybody reads this row's factor: it passed and no finding is confirmed."""
    return row.outcome == PASSED and row.integrity is None


def as_float(what: str, value: object) -> float:
    """Return a JSON number as a float; one beyond the range of a double is infinite.

    Raises:
        ValueError: it is no number.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{what} is {short(value)}, expected a number")
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
