"""The small sums of a delivery that the monitor adds up by step, written with it in one transaction."""

from grading.models import Decision, Trajectory
from grading.states import DecisionKind
from training_bridge.decided import reason_of
from training_bridge.effects import balance, effect_of
from training_bridge.models import Payout
from training_bridge.payload import Numbers
from training_bridge.redistribution import regimes

NOT_COMPARED = (regimes.INELIGIBLE, regimes.FILTERED, regimes.EXCLUDED)
KEPT = ("group", "run", "step", "declared_at", "decided_at")  # of the group's first delivery
LENGTHS = ("response_tokens", "tokens")  # the first that the job counted


def payout(decision: Decision, numbers: Numbers, trajectories: list[Trajectory]) -> Payout:
    """What this decision pays, not saved yet."""
    group, credit, effect = decision.group, numbers.credit, effect_of(numbers)
    compared = credit.regime not in NOT_COMPARED
    (credit_due, credit_paid), (penalty_due, penalty_paid) = effect.credit, effect.penalty
    lengths = {t.external_id: length_of(t.counts) for t in trajectories}
    known = [lengths[row.trajectory] if row.reward is not None and credit.train else None for row in numbers.rows]
    advantage_tokens, tokens = balance([row.advantage for row in numbers.rows], known)
    graded = group.completed_at and group.graded_at
    return Payout(
        group=group, run_id=group.run_id, step=group.step, version=decision.version, regime=credit.regime,
        reason=(reason_of(decision, numbers) or "")[:200], is_inverted=credit.inverted_by_reward,
        valid=int(effect.valid_G.sum()), passes=int(effect.passing_G.sum()), **_tiers(decision, numbers),
        credit_due=credit_due if compared else 0.0, credit_paid=credit_paid if compared else 0.0,
        penalty_due=penalty_due if compared else 0.0, penalty_paid=penalty_paid if compared else 0.0,
        advantage_tokens=advantage_tokens, tokens=tokens,
        grading_s=(group.graded_at - group.completed_at).total_seconds() if graded else None,
        declared_at=group.created_at, held_at=group.graded_at if group.hold_reason else None, decided_at=decision.at,
    )  # fmt: skip


def store(rows: list[Payout]) -> None:
    """One row a group: a newer version replaces what an older one paid."""
    changed = [field.name for field in Payout._meta.concrete_fields if field.name not in (*KEPT, "id")]
    Payout.objects.bulk_create(rows, update_conflicts=True, unique_fields=["group"], update_fields=changed)


def length_of(counts: dict) -> float | None:
    """Tokens of the response, in the job's own count; None where it gave no number."""
    found = (counts.get(name) for name in LENGTHS)
    return next((float(n) for n in found if isinstance(n, int | float) and not isinstance(n, bool) and n >= 0), None)


def _tiers(decision: Decision, numbers: Numbers) -> dict[str, int]:
    """How many passes of each tier were weighed; none where no verdict counts."""
    if decision.kind != DecisionKind.VERDICT or decision.verdict is None:
        return {}
    weighed = {row.trajectory for row in numbers.rows if row.factor is not None}
    tiers = [placed.tier for placed in decision.verdict.candidates.all() if placed.trajectory.external_id in weighed]
    return {f"tier_{tier}": tiers.count(tier) for tier in (1, 2, 3)}
