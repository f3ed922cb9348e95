"""Read a group's rows and what was decided, and hand them to the one builder in `payload`."""

from collections.abc import Mapping

from grading.grader import gather
from grading.models import Decision, RolloutGroup, RubricVersion, Trajectory, Verdict
from grading.states import DecisionKind, Method
from training_bridge.payload import Numbers, numbers

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
    options = {
        "method": group.method or group.run.method,
        "lambda_max": rubric.rubric.lambda_max,
        "eligible": group.eligible,
        "broken_evaluation": group.task.is_broken,
        "mask_truncated": group.run.mask_truncated,
    }
    rows = gather.rows_of(gather.counted(group) if trajectories is None else trajectories)
    return numbers(rows, factors, **(options | said))


def decision_numbers(decision: Decision, trajectories: list[Trajectory] | None = None) -> Numbers:
    """What training gets for a decision. Call after the group's lock, so that findings are read as they are."""
    # What was decided is paid, the same in every epoch; a quarantine or its release is a decision of its own.
    said = {"broken_evaluation": decision.kind in NOT_TRAINED}
    if decision.kind == DecisionKind.BASELINE:
        said["method"] = Method.OUTCOME
    if decision.kind == DecisionKind.FALLBACK:
        said["fallback_reason"] = decision.reason or decision.kind
    verdict = decision.verdict if decision.kind == DecisionKind.VERDICT else None
    return group_numbers(decision.group, verdict, trajectories=trajectories, **said)


def reason_of(decision: Decision, numbers: Numbers) -> str | None:
    """Why a group fell back, was filtered or excluded; None where its verdict counts."""
    if decision.kind in NOT_TRAINED:
        return decision.group.end_reason or decision.kind
    return numbers.credit.reason
