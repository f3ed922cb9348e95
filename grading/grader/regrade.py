"""A person asks for another grading. Before a decision it is a training verdict; after one it is an extra to read."""

from django.db import transaction

from grading import clock, wake
from grading.errors import BadInput, Conflict, WrongState
from grading.grader import claims
from grading.grader.graders import GRADERS
from grading.grader.options import GradingOptions
from grading.models import AnchorRound, Grading, RolloutGroup
from grading.states import AWAITING_REVIEW, ENDED, GroupState, Method


@transaction.atomic
def ask(group: RolloutGroup, *, by, grader: str = "", model: str = "") -> Grading:
    """Queue one more grading of a group, by another grader or model if named.

    Returns:
        Its row: `running` with attempt 0 until a worker begins. A group that waits for a person is `grading` meanwhile
        and keeps its hold and its review deadline; nothing else of a decided group moves.
    Raises:
        BadInput: no such grader or model. WrongState: the group has nothing to rank, or is not graded yet.
        Conflict: one is asked for already.
    """
    group = RolloutGroup.objects.locked().select_related("run").get(pk=group.pk)
    grader = grader or group.run.grader
    if grader not in GRADERS:
        raise BadInput("no such grader", got=grader[:80], expected=", ".join(GRADERS))
    GradingOptions.from_json({"model": model})
    refuse_ungradable(group)
    waiting = Grading.objects.filter(claims.ASKED, group=group).first()
    if waiting:
        raise Conflict(f"{waiting.asked_by} asked for a grading of group {group.key} already: wait until it has ended")
    asked = Grading.objects.create(
        group=group, grader=grader, model=model if grader != claims.INLINE else "", attempt=0, asked_by=by.username
    )
    if group.state in AWAITING_REVIEW:
        group.move(
            GroupState.GRADING, by=by.username, reason="graded again", details={"grading": asked.pk, "grader": grader},
            claimed_until=clock.now(), claimed_by="", fencing=group.fencing + 1, grading_attempts=0,
            grade_by=group.review_by,
        )  # fmt: skip
    else:
        details = {"grading": asked.pk, "grader": grader}
        group.note(group.state, by=by.username, reason="an extra grading was asked for", details=details)
    wake.grading()
    wake.pages(group.run_id)
    return asked


def ask_for_round(group: RolloutGroup, round: AnchorRound) -> Grading:
    """Queue an anchor's grading by the round's grader. Its verdict has the purpose `anchor` and moves nothing."""
    said = round.fingerprint
    return Grading.objects.create(
        group=group, grader=said["grader"], model=said["model"], attempt=0, asked_by=round.asked_by, round=round
    )


def refuse_ungradable(group: RolloutGroup) -> None:
    if group.state not in AWAITING_REVIEW | ENDED:
        raise WrongState(f"group {group.key} is {group.state}: its first grading is still to come")
    if group.end_reason:
        raise WrongState(f"group {group.key} ended as {group.end_reason}: there is nothing to rank")
    if not group.eligible or group.method == Method.OUTCOME:
        raise WrongState(f"group {group.key} is not graded: its rewards pass through as they came")
