"""Read a group's rows and what was decided, and hand them to the one builder in `payload`."""

from collections.abc import Mapping

from grading.grader import gather
from grading.models import Decision, RolloutGroup, RubricVersion, Trajectory, Verdict
from grading.scoring.rows import Row
from grading.states import DecisionKind, Method
from training_bridge.payload import Asked, Numbers, numbers_of

NOT_TRAINED = (DecisionKind.EXCLUDED, DecisionKind.ABANDONED)


def factors_of(verdict: Verdict | None) -> Mapping[str, float] | None:
    """Factor by external id, or None where no valid verdict counts."""
    if verdict is None or not verdict.is_valid:
        return None
    return {placed.trajectory.external_id: placed.factor for placed in verdict.candidates.all()}


def group_numbers(
    group: RolloutGroup, verdict: Verdict | None, *, trajectories: list[Trajectory] | None = None, **said
) -> Numbers:
    """What training gets if this verdict counts; None for none. `said` may set method, fallback_reason, eligible."""
    rubric = verdict.rubric if verdict else group.rubric or group.run.rubric
    return factor_numbers(group, factors_of(verdict), rubric=rubric, trajectories=trajectories, **said)


def factor_numbers(
    group: RolloutGroup,
    factors: Mapping[str, float] | None,
    *,
    rubric: RubricVersion,
    trajectories: list[Trajectory] | None = None,
    **said,
) -> Numbers:
    """What training gets for factors by external id, be they of a verdict or of a draft of one."""
    rows = gather.rows_of(gather.counted(group) if trajectories is None else trajectories)
    said.setdefault("broken_evaluation", group.task.is_broken)
    return numbers_of([asked(group, rows, factors, lambda_max=rubric.rubric.lambda_max, **said)])[0]


def asked(group: RolloutGroup, rows: list[Row], factors: Mapping[str, float] | None, **said) -> Asked:
    """A group as the builder takes it. `said`: lambda_max, broken_evaluation, and what differs from the group's own."""
    options = {
        "method": group.method or group.run.method,
        "eligible": group.eligible,
        "mask_truncated": group.run.mask_truncated,
        "neutral_when_equal": group.neutral_when_equal if group.method else group.run.neutral_when_equal,
    }
    return Asked(rows, factors, **(options | said))


def decision_numbers(decision: Decision, trajectories: list[Trajectory] | None = None) -> Numbers:
    """What training gets for a decision. Call after the group's lock, so that findings are read as they are."""
    verdict = decision.verdict if decision.kind == DecisionKind.VERDICT else None
    return group_numbers(decision.group, verdict, trajectories=trajectories, **said_by(decision))


def said_by(decision: Decision) -> dict:
    """What a decision says of how its group is counted."""
    # What was decided is paid, the same in every epoch; a quarantine or its release is a decision of its own.
    said = {"broken_evaluation": decision.kind in NOT_TRAINED}
    if decision.kind == DecisionKind.BASELINE:
        said["method"] = Method.OUTCOME
    if decision.kind == DecisionKind.FALLBACK:
        said["fallback_reason"] = decision.reason or decision.kind
    return said


def reason_of(decision: Decision, numbers: Numbers) -> str | None:
    """Why a group fell back, was filtered or excluded; None where its verdict counts."""
    if decision.kind in NOT_TRAINED:
        return decision.group.end_reason or decision.kind
    return numbers.credit.reason
