"""A look at held-out groups, which spends them: other numbers over the same verdicts, or another grader's verdicts."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from django.db import IntegrityError, transaction

from grading.calibration import gate
from grading.calibration.fitting import pool, said_by, spent_groups, told_graders, whose
from grading.calibration.gate import GROUPS, PAIRS, Looked
from grading.calibration.identity import BY, Choice, Identity
from grading.calibration.orders import Orders, chunks, decided, orders_of
from grading.calibration.packing import read_pack
from grading.calibration.replay import replay
from grading.errors import Conflict, WrongState
from grading.models import Gate, GateKind, Run, SpentGroup, Verdict
from grading.scoring.criteria import Rubric
from grading.states import Purpose


@dataclass(frozen=True)
class Ready:
    """What a gate could look at, counted without looking."""

    groups: int
    pairs: int

    @property
    def is_enough(self) -> bool:
        return self.groups >= GROUPS and self.pairs >= PAIRS

    def refuse(self) -> None:
        """Raise WrongState while the data are thin; nothing is spent then."""
        if not self.is_enough:
            got = f"{self.groups} held-out groups with {self.pairs} decided pairs"
            raise WrongState(f"too little to look at: {got}, expected {GROUPS} and {PAIRS}; nothing was spent")


def ready(orders: Orders) -> Ready:
    found = decided(orders)
    return Ready(len(np.unique(found.group_P)), len(found.group_P))


def look_at_rubric(run: Run, rubric: Rubric, *, by: str, grader: str = "") -> Gate:
    """Compare the run's version with other numbers on the held-out groups, by the final order of factors.

    `grader`: whose verdicts, as in `fitting.fit`.
    Raises WrongState where there is too little to look at, Conflict where somebody spent the same groups meanwhile.
    """
    choice = whose(run, grader)
    _, held = pool(run, choice)
    ready(held).refuse()
    factors = [replay(held.pack.scored, one).factor_BG for one in (run.rubric.rubric, rubric)]
    seen = gate.look(decided(held), *factors)
    told = {"definition": rubric.to_json(), "graders": told_graders(run, choice)}
    return _kept(run, seen, held.groups, by=by, kind=GateKind.RUBRIC, **told)


def look_at_grader(run: Run, other: str, *, by: str, grader: str = "") -> Gate:
    """Compare the run's grader with another one's extra or anchor verdicts on people's groups, under one version.

    `other`: the new one, as `Identity.words`; `grader`: the old one, as in `fitting.fit`.
    """
    choice = whose(run, grader)
    orders, newer = both_graded(run, other, choice)
    ready(orders).refuse()
    theirs = read_pack([newer[group] for group in orders.groups])
    credits = [_credit(orders, pack, run.rubric.rubric) for pack in (orders.pack, theirs)]
    both_P = ~np.isnan(credits[0]) & ~np.isnan(credits[1])
    seen = gate.looked(decided(orders).group_P[both_P], credits[0][both_P], credits[1][both_P])
    graders = [" and ".join(told_graders(run, choice)), other]
    return _kept(run, seen, orders.groups, by=by, kind=GateKind.GRADER, graders=graders)


def both_graded(run: Run, other: str, choice: Choice) -> tuple[Orders, dict[int, int]]:
    """Unspent blind orders of groups that the other grader ranked too, and its newest verdict on each."""
    orders = orders_of(run.team, said_by(run, choice))
    newest: dict[int, int] = {}
    for chunk in chunks(orders.groups):
        rows = Verdict.objects.filter(group__in=chunk, is_valid=True, purpose__in=(Purpose.EXTRA, Purpose.ANCHOR))
        for group, pk, *said in rows.order_by("pk").values_list("group_id", "pk", *BY):
            if Identity.of(*said).words == other:
                newest[group] = pk
    spent = spent_groups(run.team, GateKind.GRADER)
    return orders.of(group for group in newest if group not in spent), newest


def other_graders(run: Run) -> list[str]:
    """Graders, each model and prompt apart, with extra or anchor verdicts on groups of the team."""
    rows = Verdict.objects.filter(group__run__team=run.team_id, is_valid=True)
    rows = rows.filter(purpose__in=(Purpose.EXTRA, Purpose.ANCHOR)).order_by()
    return sorted({Identity.of(*said).words for said in rows.values_list(*BY).distinct()})


def _credit(orders: Orders, pack, rubric: Rubric) -> np.ndarray:
    """(P,) credit of each decided pair under this pack's verdicts; NaN where a verdict lacks one of the two."""
    factor_BG = replay(pack.scored, rubric).factor_BG
    factor = {
        int(t): f
        for ts, fs in zip(pack.trajectory_BG, factor_BG, strict=True)
        for t, f in zip(ts, fs, strict=True)
        if t
    }
    found, own_BG = decided(orders), orders.pack.trajectory_BG
    one_P, other_P = (
        np.array([factor.get(int(t), np.nan) for t in own_BG[found.verdict_P, column_P]])
        for column_P in (found.one_P, found.other_P)
    )
    credit_P = np.where(np.abs(one_P - other_P) <= gate.TIE, 0.5, (one_P > other_P).astype(float))
    return np.where(np.isnan(one_P) | np.isnan(other_P), np.nan, credit_P)


def _kept(run: Run, seen: Looked, groups: Iterable[int], *, by: str, kind: GateKind, **compared) -> Gate:
    try:
        with transaction.atomic():
            made = Gate.objects.create(
                team=run.team, kind=kind, base=run.rubric, by=by, passed=seen.passed, groups=seen.groups,
                pairs=seen.pairs, old_accuracy=seen.old.value, new_accuracy=seen.new.value, gain=seen.gain.value,
                low=seen.gain.low, high=seen.gain.high, **compared,
            )  # fmt: skip
            SpentGroup.objects.bulk_create(SpentGroup(gate=made, kind=kind, group_id=pk) for pk in groups)
    except IntegrityError as raced:
        raise Conflict("somebody looked at these groups at this moment: they are spent") from raced
    return made
