"""The verdicts that stand in a run's last groups, as arrays. Verdicts are frozen, so what was read once is kept.

Growth: by candidate, about 40 bytes; the first call reads all of them, later ones the ids and what is new. RUNS runs
are kept in a process, LAST groups of each at most.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, fields
from threading import Lock

import numpy as np

from grading.calibration import replay
from grading.calibration.replay import Scored
from grading.models import RolloutGroup, RubricVersion, Run, Verdict, VerdictCandidate
from grading.scoring.criteria import CRITERIA, FLAGS
from grading.states import Purpose

RUNS, LAST = 4, 10_000
AT_ONCE = 900  # SQLite takes 999 variables in old builds
FILL = {"there_BG": False, "own_tier_BG": -1, "own_base_BG": -1, "own_place_BG": -1, "scores_BGC": 1}
_bit = {flag: 1 << n for n, flag in enumerate(FLAGS)}


@dataclass(frozen=True)
class Pack:
    """Verdicts of one run, oldest first.

    verdict_B, group_B, rubric_B: (B,) int64, primary keys. trajectory_BG: (B, G) int64, 0 where absent.
    factor_BG: (B, G) float64 as stored, NaN where absent.
    """

    verdict_B: np.ndarray
    group_B: np.ndarray
    rubric_B: np.ndarray
    trajectory_BG: np.ndarray
    factor_BG: np.ndarray
    scored: Scored


_kept: OrderedDict[tuple, Pack] = OrderedDict()
_lock = Lock()


def pack_of(run: Run, last: int = LAST) -> Pack:
    """The newest valid training verdict, correction or not, of each of the run's last groups that have one."""
    wanted, key = standing_verdicts(run, last), (run.pk, run.created_at)  # a key alone may come again in a new database
    with _lock:
        kept = _kept.get(key)
    pack = _completed(kept, wanted)
    with _lock:
        if kept is None or len(wanted) >= len(kept.verdict_B):  # a look at fewer groups forgets none
            _kept[key] = pack
        _kept.move_to_end(key)
        while len(_kept) > RUNS:
            _kept.popitem(last=False)
    return pack


def standing_verdicts(run: Run, last: int) -> list[int]:
    """Primary keys, by group. A group whose newest training verdict is not valid has fallen back and is left out."""
    graded = RolloutGroup.objects.filter(run=run, graded_at__isnull=False).order_by("-pk").values_list("pk", flat=True)
    oldest = list(graded[:last])
    if not oldest:
        return []
    rows = Verdict.objects.filter(group__run=run, purpose=Purpose.TRAINING, group_id__gte=oldest[-1])
    newest = {group: (pk, valid) for group, pk, valid in rows.order_by("pk").values_list("group_id", "pk", "is_valid")}
    return [newest[group][0] for group in sorted(newest) if newest[group][1]]


def _completed(kept: Pack | None, wanted: Sequence[int]) -> Pack:
    known = {} if kept is None else {pk: row for row, pk in enumerate(kept.verdict_B.tolist())}
    if kept is not None and list(known) == list(wanted):
        return kept
    missing = [pk for pk in wanted if pk not in known]
    read = read_pack(missing)
    if kept is None or len(missing) == len(wanted):
        return read
    joined = _joined(kept, read)
    row_of = known | {pk: len(known) + row for row, pk in enumerate(read.verdict_B.tolist())}
    return _taken(joined, np.array([row_of[pk] for pk in wanted], np.int64))


def hides_verdict(group: RolloutGroup) -> bool:
    """Whether a person may still be asked for an order before they see its verdict: no page names or draws it."""
    return group.is_blind and group.is_open


def read_pack(verdicts: Sequence[int]) -> Pack:
    """Read verdicts by primary key, in this order. All are valid ones with candidates."""
    heads, placed = {}, {pk: [] for pk in verdicts}
    for start in range(0, len(verdicts), AT_ONCE):
        some = verdicts[start : start + AT_ONCE]
        found = Verdict.objects.filter(pk__in=some).order_by().values_list("pk", "group_id", "rubric_id")
        heads |= {pk: (group, rubric) for pk, group, rubric in found}
        rows = VerdictCandidate.objects.filter(verdict__in=some).order_by("verdict_id", "trajectory_id")
        for row in rows.values_list("verdict_id", "trajectory_id", "scores", "flags", "tier", "rank", "factor"):
            placed[row[0]].append(row)
    return _packed([(pk, *heads[pk]) for pk in verdicts], list(placed.values()))


def _packed(heads: Sequence[tuple[int, int, int]], placed: Sequence[Sequence[tuple]]) -> Pack:
    shape = (len(heads), max(map(len, placed), default=0))
    there_BG = np.arange(shape[1]) < np.array([len(rows) for rows in placed], np.int64)[:, None]
    flat = [row for rows in placed for row in rows]  # in the order in which a mask is filled
    scores_BGC = np.full((*shape, len(CRITERIA)), FILL["scores_BGC"], np.int8)
    scores_BGC[there_BG] = np.array([[row[2][c] for c in CRITERIA] for row in flat], np.int8).reshape(-1, len(CRITERIA))
    verdict_B, group_B, rubric_B = np.array(heads, np.int64).reshape(-1, 3).T.copy()
    bare = Scored(
        scores_BGC=scores_BGC,
        flags_BG=_filled(there_BG, [sum(_bit[flag] for flag in row[3]) for row in flat], np.uint8, 0),
        there_BG=there_BG,
        revised_B=np.zeros(shape[0], bool),
        own_tier_BG=_filled(there_BG, [row[4] for row in flat], np.int8, -1),
        own_base_BG=np.full(shape, -1, np.int16),
        own_place_BG=_filled(there_BG, [row[5] for row in flat], np.int16, -1),
    )
    return Pack(
        verdict_B=verdict_B,
        group_B=group_B,
        rubric_B=rubric_B,
        trajectory_BG=_filled(there_BG, [row[1] for row in flat], np.int64, 0),
        factor_BG=_filled(there_BG, [row[6] for row in flat], np.float64, np.nan),
        scored=_with_own_base(bare, rubric_B),
    )


def _filled(there_BG: np.ndarray, values: list, dtype, absent) -> np.ndarray:
    filled_BG = np.full(there_BG.shape, absent, dtype)
    filled_BG[there_BG] = np.array(values, dtype)
    return filled_BG


def _with_own_base(scored: Scored, rubric_B: np.ndarray) -> Scored:
    """Where each candidate stood by W alone; a verdict whose stored places differ is a revised one."""
    own_base_BG = scored.own_base_BG.copy()
    versions = {version.pk: version.rubric for version in RubricVersion.objects.filter(pk__in=set(rubric_B.tolist()))}
    for pk, rubric in versions.items():
        here = np.flatnonzero(rubric_B == pk)
        own_base_BG[here] = replay.places(scored.own_tier_BG[here], replay.weighted(scored, rubric)[0][here])
    revised_B = (own_base_BG != scored.own_place_BG).any(-1)
    parts = {field.name: getattr(scored, field.name) for field in fields(Scored)}
    return Scored(**parts | {"own_base_BG": own_base_BG, "revised_B": revised_B})


def _joined(one: Pack, other: Pack) -> Pack:
    width = max(one.trajectory_BG.shape[1], other.trajectory_BG.shape[1])
    return _each(lambda name, of: np.concatenate([_widened(of(pack), width, name) for pack in (one, other)]))


def _taken(pack: Pack, rows: np.ndarray) -> Pack:
    return _each(lambda name, of: of(pack)[rows])


def _each(make) -> Pack:
    """A pack whose every array is `make(name, reader)`."""
    inner = {f.name: make(f.name, lambda pack, n=f.name: getattr(pack.scored, n)) for f in fields(Scored)}
    outer = {f.name: make(f.name, lambda pack, n=f.name: getattr(pack, n)) for f in fields(Pack) if f.name != "scored"}
    return Pack(**outer, scored=Scored(**inner))


def _widened(values: np.ndarray, width: int, name: str) -> np.ndarray:
    if values.ndim == 1 or values.shape[1] == width:
        return values
    wide = np.full((values.shape[0], width, *values.shape[2:]), FILL.get(name, 0), values.dtype)
    if name == "factor_BG":
        wide[:] = np.nan
    wide[:, : values.shape[1]] = values
    return wide
