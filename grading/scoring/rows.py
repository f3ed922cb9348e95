"""Effective outcomes: what a rollout counts as once invalid rows are masked and integrity is applied."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from grading.scoring.ranks import check_ids

PASSED, FAILED, INFRA_INVALID = OUTCOMES = ("passed", "failed", "infra_invalid")
LEAK, HACK = FINDINGS = ("leak", "hack")

OK = "ok"
FILTERED_ALL_PASSED = "filtered_all_passed"
FILTERED_ALL_FAILED = "filtered_all_failed"
EXCLUDED_BROKEN_EVALUATION = "excluded_broken_evaluation"
EXCLUDED_NO_VALID_TRAJECTORY = "excluded_no_valid_trajectory"
EXCLUDED_BAD_REWARD = "excluded_bad_reward"
FILTERED = (FILTERED_ALL_PASSED, FILTERED_ALL_FAILED)
EXCLUDED = (EXCLUDED_BROKEN_EVALUATION, EXCLUDED_NO_VALID_TRAJECTORY, EXCLUDED_BAD_REWARD)


class Row(msgspec.Struct, frozen=True):
    """One rollout as it came in. `integrity` is a confirmed finding, `reward` None is the outcome itself."""

    id: str
    outcome: str
    reward: float | None = None
    truncated: bool = False
    integrity: str | None = None

    def __post_init__(self):
        if self.outcome not in OUTCOMES:
            raise ValueError(f"row {self.id!r} has outcome {self.outcome!r}, expected one of {list(OUTCOMES)}")
        if self.integrity not in (None, *FINDINGS):
            raise ValueError(f"row {self.id!r} has integrity {self.integrity!r}, expected null or {list(FINDINGS)}")


class EffectiveRow(NamedTuple):
    """One rollout as it counts. An invalid row has no reward; a confirmed finding is `failed`."""

    id: str
    outcome: str
    valid: bool
    reward: float | None
    integrity: str | None

    @property
    def passing(self) -> bool:
        """Whether it is valid and its effective outcome is a pass."""
        return self.valid and self.outcome == PASSED


@dataclass(frozen=True)
class EffectiveGroup:
    """The rows as they count, how dynamic sampling sees them, and the row whose reward is no number."""

    status: str
    rows: tuple[EffectiveRow, ...]
    bad_reward: str | None = None


def effective_group(
    rows: Sequence[Row], *, mask_truncated: bool = False, broken_evaluation: bool = False
) -> EffectiveGroup:
    """Mask invalid rows, apply confirmed findings, then sort the group out. Before any statistic.

    Args:
        rows: every rollout of the group, in order, no id twice.
        mask_truncated: whether the run leaves truncated rows out of the statistics.
        broken_evaluation: whether the task's tests are confirmed to be broken.
    Returns:
        The group with its status: `ok` only if valid rows pass and valid rows fail. One valid row is
        filtered; shaped rewards do not matter for that.
    Raises:
        ValueError: an id is there twice.
    """
    check_ids(row.id for row in rows)
    valid_ids = {r.id for r in rows if r.outcome != INFRA_INVALID and not (mask_truncated and r.truncated)}
    # A finding's own reward is not read, so it can neither be bad nor set the floor.
    trusted = [own_reward(r) for r in rows if r.id in valid_ids and r.integrity is None]
    floor = min([0.0, *(reward for reward in trusted if math.isfinite(reward))])
    counted = tuple(_counted(row, row.id in valid_ids, floor) for row in rows)
    bad_reward = first_bad_reward(row for row in counted if row.valid)
    if bad_reward is not None:
        counted = tuple(row if _is_number(row.reward) else row._replace(reward=None) for row in counted)
    return EffectiveGroup(_status(counted, bad_reward, broken_evaluation), counted, bad_reward)


def own_reward(row: Row) -> float:
    """Return the reward a row came with: the shaped one, else 1 for a pass and 0 for a failure."""
    return float(row.outcome == PASSED) if row.reward is None else float(row.reward)


def first_bad_reward(rows: Iterable[EffectiveRow]) -> str | None:
    """Find the row whose reward is NaN, infinite, or so large that a group's sums would be.

    Args:
        rows: the valid rows.
    Returns:
        Its id, or None.
    """
    rows = list(rows)
    for row in rows:
        if not math.isfinite(row.reward):
            return row.id
    largest = max(rows, key=lambda row: abs(row.reward), default=None)
    # n * 8 leaves room for the differences, sums and lambda that follow.
    if largest is not None and not math.isfinite(largest.reward * len(rows) * 8):
        return largest.id
    return None


def _counted(row: Row, valid: bool, floor: float) -> EffectiveRow:
    if not valid:
        return EffectiveRow(row.id, row.outcome, False, None, row.integrity)
    if row.integrity is not None:
        # The lowest reward of the group, so that it never ends above zero; with binary rewards that is 0.
        return EffectiveRow(row.id, FAILED, True, floor, row.integrity)
    return EffectiveRow(row.id, row.outcome, True, own_reward(row), None)


def _is_number(reward: float | None) -> bool:
    return reward is None or math.isfinite(reward)


def _status(rows: Sequence[EffectiveRow], bad_reward: str | None, broken_evaluation: bool) -> str:
    n_valid, n_passing = sum(row.valid for row in rows), sum(row.passing for row in rows)
    if broken_evaluation:
        return EXCLUDED_BROKEN_EVALUATION
    if n_valid == 0:
        return EXCLUDED_NO_VALID_TRAJECTORY
    if bad_reward is not None:
        return EXCLUDED_BAD_REWARD
    if n_passing == n_valid:
        return FILTERED_ALL_PASSED
    if n_passing == 0:
        return FILTERED_ALL_FAILED
    return OK
