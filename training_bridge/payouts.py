"""The small sums of a delivery that the monitor adds up by step, written once its row can be sent."""

import math
from collections.abc import Sequence

import numpy as np

from grading.models import Decision
from grading.models.rows import insert_all
from grading.review.decisions import BY_DEADLINE
from grading.states import Method
from training_bridge.decided import reason_of
from training_bridge.due import Due
from training_bridge.effects import REDISTRIBUTING, Effect, balance, effects_of
from training_bridge.models import Payout
from training_bridge.monitor import step_sums
from training_bridge.payload import Numbers
from training_bridge.redistribution import regimes
from training_bridge.redistribution.baselines import deficit

NOT_COMPARED = (regimes.INELIGIBLE, regimes.FILTERED, regimes.EXCLUDED)
MOST = 1e300  # of a sum, reward units: any number of these can be added up
CREDIT = ("credit_due", "credit_paid", "penalty_due", "penalty_paid")
KEPT = ("group", "run", "step", "declared_at", "decided_at")  # of the group's first delivery


def payouts(dues: Sequence[Due], made: Sequence[Numbers]) -> list[Payout]:
    """What these decisions pay, not saved yet."""
    return [_payout(*of) for of in zip(dues, made, effects_of(made), strict=True)]


def _payout(due: Due, numbers: Numbers, effect: Effect) -> Payout:
    decision, group, credit = due.decision, due.decision.group, numbers.credit
    sums = dict(zip(CREDIT, (*effect.credit, *effect.penalty), strict=True))
    compared = credit.regime not in NOT_COMPARED
    known = [due.lengths[row.trajectory] if row.reward is not None and credit.train else None for row in numbers.rows]
    advantage_tokens, tokens = balance([row.advantage for row in numbers.rows], known)
    graded = group.completed_at and group.graded_at
    return Payout(
        group=group, run_id=group.run_id, step=group.step, version=decision.version, regime=credit.regime,
        reason=(reason_of(decision, numbers) or "")[:200], is_inverted=credit.inverted_by_reward,
        valid=int(effect.valid_G.sum()), passes=int(effect.passing_G.sum()), **_tiers(due, numbers),
        **{name: _bounded(value) if compared else 0.0 for name, value in sums.items()},
        advantage_tokens=_bounded(advantage_tokens), tokens=tokens, **_weights(decision, numbers, effect),
        by_deadline=decision.by == BY_DEADLINE,
        grading_s=(group.graded_at - group.completed_at).total_seconds() if graded else None,
        declared_at=group.created_at, held_at=group.graded_at if group.hold_reason else None, decided_at=decision.at,
    )  # fmt: skip


def _bounded(found: float) -> float:
    """A huge reward times a length may be no finite number: one group must not stop the count of a whole run."""
    return 0.0 if math.isnan(found) else min(max(found, -MOST), MOST)


def store(rows: list[Payout]) -> None:
    """One row a group: a newer version replaces what an older one paid. The stream's row is locked."""
    if not rows:
        return
    old = {row.group_id: row for row in Payout.objects.filter(group__in=[row.group_id for row in rows])}
    _date_back([row for row in rows if row.version > 1 and row.group_id not in old])
    changed = [field.name for field in Payout._meta.concrete_fields if field.name not in (*KEPT, "id")]
    insert_all(rows, unique="group", replaced=changed)
    step_sums.pay(rows[0].run_id, rows, old)


def _date_back(corrections: list[Payout]) -> None:
    """Groups whose first decision paid nothing, as a newer one overtook it: nobody has waited for them since."""
    if corrections:
        first = Decision.objects.filter(group__in=[row.group_id for row in corrections], version=1)
        at = dict(first.values_list("group", "at"))
        for row in corrections:
            row.decided_at = at.get(row.group_id, row.decided_at)


def _weights(decision: Decision, numbers: Numbers, effect: Effect) -> dict[str, float | int | None]:
    """What weighed the passes: their factors, lambda, and what downweighting alone takes away (D of Eq. 1)."""
    factors = [row.factor for row in numbers.rows if row.factor is not None and row.outcome == "passed"]
    found = {"factors": len(factors), "factor_sum": sum(factors)}
    if numbers.credit.regime in REDISTRIBUTING:
        found["lambda_used"] = numbers.credit.lambda_
    method = decision.group.method or decision.group.run.method
    if method == Method.DOWNWEIGHT_ONLY and numbers.credit.regime == regimes.BASELINE and factors:
        factors_G = np.array([row.factor or 1.0 for row in numbers.rows], float)
        found["deficit"] = float(deficit(effect.before_G, factors_G, effect.passing_G))
    return found


def _tiers(due: Due, numbers: Numbers) -> dict[str, int]:
    """How many passes of each tier were weighed; none where no verdict counts."""
    weighed = [due.tiers[row.trajectory] for row in numbers.rows if row.factor is not None]
    return {f"tier_{tier}": weighed.count(tier) for tier in (1, 2, 3)}
