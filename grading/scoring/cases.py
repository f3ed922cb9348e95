"""`manage.py rank`: one case as JSON wrote it, its scores and flags turned into W, tiers, ranking, factors."""

from collections.abc import Mapping

from grading.scoring.criteria import FLAGS, FLASH, Candidate, Rubric, short
from grading.scoring.grades import grade
from grading.scoring.ranks import check_ids
from grading.scoring.tiers import TIER_NAMES


def rank_case(case: object) -> dict:
    """Grade one case.

    Args:
        case: `{candidates [{id, scores, flags..., leak_confirmed?}], order?, rubric?}`; other keys
            are not read. No rubric: Flash.
    Returns:
        `{weighted_score, tier, ranking {T1, T2, T3}, factor}` by id, floats; a candidate with a
        confirmed leak is not ranked.
    Raises:
        ValueError: the case has another shape, or breaks a rule of scores, order or rubric.
    """
    if not isinstance(case, Mapping):
        raise ValueError(f"the case is {short(case)}, expected an object")
    wires = case.get("candidates")
    if not isinstance(wires, list):
        raise ValueError(f"candidates is {short(wires)}, expected a list")
    rubric = FLASH if case.get("rubric") is None else Rubric.from_json(case["rubric"], name="of the case")
    for wire in wires:
        if not isinstance(wire, Mapping) or not isinstance(wire.get("id"), str):
            raise ValueError(f"a candidate is {short(wire)}, expected an object with an id that is a string")
    check_ids((wire["id"] for wire in wires), "candidates")
    ranked = [read_candidate(wire) for wire in wires if not is_set(wire, "leak_confirmed")]
    grades = grade(ranked, rubric, case.get("order"))
    return {
        "weighted_score": {id: float(score) for id, score in grades.weighted_score.items()},
        "tier": dict(grades.tier),
        "ranking": {name: [list(tied) for tied in grades.ranking[here]] for here, name in TIER_NAMES.items()},
        "factor": {id: float(factor) for id, factor in grades.factor.items()},
    }


def read_candidate(wire: Mapping) -> Candidate:
    """Read `{id, scores, flags...}`, each flag a boolean of its own that may be missing.

    Raises:
        ValueError: a score or a flag has another type or value.
    """
    flags = frozenset(flag for flag in FLAGS if is_set(wire, flag))
    return Candidate(id=wire["id"], scores=wire.get("scores"), flags=flags)


def is_set(wire: Mapping, flag: str) -> bool:
    """Read a boolean that is False where missing.

    Raises:
        ValueError: it is there and no boolean.
    """
    value = wire.get(flag, False)
    if not isinstance(value, bool):
        raise ValueError(f"{short(wire.get('id'))} has {flag} {short(value)}, expected true or false")
    return value
