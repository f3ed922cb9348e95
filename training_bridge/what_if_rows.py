"""The rollouts behind packed verdicts, as arrays: who passes, with which reward, and whose factor is whose."""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from threading import Lock

import numpy as np

from grading.calibration.packing import AT_ONCE, RUNS, Pack
from grading.models import Finding, RolloutGroup, RubricVersion, Run, Task, Trajectory
from grading.scoring.rows import OK, Row, effective_group
from training_bridge.what_if import Batch, Paid, paid


@dataclass(frozen=True)
class Rollouts:
    """The groups of a pack that training reads, with their rows.

    pack_B: (B,) int64, the group's row in the pack. column_BG: (B, G) int64, the pack's column of a passing row, -1
    elsewhere. left_out: groups of the pack that do not train, or whose verdict lacks a pass that counts by now.
    """

    batch: Batch
    pack_B: np.ndarray
    column_BG: np.ndarray
    trajectory_BG: np.ndarray
    left_out: int

    def factors(self, factor_BG: np.ndarray) -> np.ndarray:
        """Factors of the pack's candidates, laid out over the rows; NaN where a row does not pass."""
        taken_BG = np.take_along_axis(factor_BG[self.pack_B], np.maximum(self.column_BG, 0), 1)
        return np.where(self.column_BG >= 0, taken_BG, np.nan)

    def paid(self, factor_BG: np.ndarray, lambda_max) -> Paid:
        return paid(self.batch, self.factors(factor_BG), None if lambda_max is None else float(lambda_max))


_kept: OrderedDict[tuple, tuple[tuple, Rollouts]] = OrderedDict()
_lock = Lock()


def rollouts_of(run: Run, pack: Pack) -> Rollouts:
    """Read the rows as they count now. Kept until a verdict, a finding or a broken task is new."""
    findings = Finding.objects.filter(trajectory__run=run).order_by("-pk").values_list("pk", flat=True).first()
    broken = tuple(Task.objects.filter(team=run.team_id, is_broken=True).order_by("pk").values_list("pk", flat=True))
    key, stamp = (run.pk, run.created_at), (pack.verdict_B.tobytes(), findings, broken, run.mask_truncated)
    with _lock:
        kept = _kept.get(key)
    if kept and kept[0] == stamp:
        return kept[1]
    rollouts = _read(run, pack, frozenset(broken))
    with _lock:
        _kept[key] = (stamp, rollouts)
        _kept.move_to_end(key)
        while len(_kept) > RUNS:
            _kept.popitem(last=False)
    return rollouts


def own_paid(rollouts: Rollouts, pack: Pack) -> Paid:
    """What the stored factors pay, each verdict under the bound of its own version."""
    versions = RubricVersion.objects.filter(pk__in=set(pack.rubric_B.tolist()))
    bounds = {version.pk: version.rubric.lambda_max for version in versions}
    made = {bound: rollouts.paid(pack.factor_BG, bound) for bound in set(bounds.values())}
    if len(made) == 1:
        return next(iter(made.values()))
    names = ("advantages_BG", "lambda_B", "capped_B", "exact_B", "fallback_B")
    merged = {name: np.zeros_like(getattr(rollouts.paid(pack.factor_BG, None), name)) for name in names}
    own_B = pack.rubric_B[rollouts.pack_B]
    for pk, bound in bounds.items():
        here = own_B == pk
        for name, values in merged.items():
            values[here] = getattr(made[bound], name)[here]
    return Paid(**merged)


def _read(run: Run, pack: Pack, broken: frozenset[int]) -> Rollouts:
    column = {t: g for row in pack.trajectory_BG.tolist() for g, t in enumerate(row) if t}
    place = {group: b for b, group in enumerate(pack.group_B.tolist())}
    kept, neutral = [], []
    for chunk in _chunks(list(place)):
        heads = RolloutGroup.objects.filter(pk__in=chunk).values_list("pk", "task_id", "eligible", "neutral_when_equal")
        told = {pk: (task in broken, eligible, is_neutral) for pk, task, eligible, is_neutral in heads}
        for group, rows in groupby(_rows(chunk), key=itemgetter(0)):
            is_broken, eligible, is_neutral = told[group]
            counted = _counted(list(rows), column, run.mask_truncated) if eligible and not is_broken else None
            if counted is not None:
                kept.append((place[group], counted))
                neutral.append(is_neutral)
    order = sorted(range(len(kept)), key=lambda n: kept[n][0])
    return _arrays([kept[n] for n in order], np.array([neutral[n] for n in order], bool), len(place))


def _chunks(pks: list[int]) -> Iterable[list[int]]:
    return (pks[start : start + AT_ONCE] for start in range(0, len(pks), AT_ONCE))


def _rows(groups: list[int]) -> Iterable[tuple]:
    found = Trajectory.objects.counted().filter(group__in=groups).order_by("group_id", "pk")
    return found.values_list("group_id", "pk", "external_id", "outcome", "reward", "is_truncated", "integrity")


def _counted(rows: list[tuple], column: dict[int, int], mask_truncated: bool) -> list[tuple] | None:
    """(reward, passes, valid, pack column, trajectory) a row; None where the group does not train by this verdict."""
    said = [
        Row(id, outcome, float(reward) if reward else None, truncated, integrity or None)
        for _, _, id, outcome, reward, truncated, integrity in rows
    ]
    effective = effective_group(said, mask_truncated=mask_truncated)
    made = [
        (row.reward if row.valid else 0.0, row.passing, row.valid, column.get(pk, -1) if row.passing else -1, pk)
        for row, (_, pk, *_) in zip(effective.rows, rows, strict=True)
    ]
    is_whole = all(at >= 0 for _, passing, _, at, _ in made if passing)
    return made if effective.status == OK and is_whole else None


def _arrays(kept: list[tuple], neutral_B: np.ndarray, groups: int) -> Rollouts:
    shape = (len(kept), max((len(rows) for _, rows in kept), default=0))
    rewards_BG, passing_BG, valid_BG = np.zeros(shape), np.zeros(shape, bool), np.zeros(shape, bool)
    column_BG, trajectory_BG = np.full(shape, -1, np.int64), np.zeros(shape, np.int64)
    for b, (_, rows) in enumerate(kept):
        here = slice(0, len(rows))
        rewards_BG[b, here], passing_BG[b, here], valid_BG[b, here], column_BG[b, here], trajectory_BG[b, here] = zip(
            *rows, strict=True
        )
    pack_B = np.array([at for at, _ in kept], np.int64)
    batch = Batch(rewards_BG, passing_BG, valid_BG, neutral_B)
    return Rollouts(batch, pack_B, column_BG, trajectory_BG, groups - len(kept))
