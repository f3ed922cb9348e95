"""A run with decided and delivered groups, receipts and metrics, for the tests of the monitor."""

from grading.models import Life, RolloutGroup, Run
from grading.review import decisions
from grading.states import DecisionKind, GroupState
from tests.factories import make_group
from tests.verdicts import add_verdict
from training_bridge import delivery, intake
from training_bridge.protocol import messages


def deliver_group(
    run: Run, *, step: int, outcomes="PPF", scores=None, kind=DecisionKind.VERDICT, **fields
) -> RolloutGroup:
    """A group that was decided and delivered."""
    reason, end = fields.pop("reason", ""), fields.pop("end_reason", "")
    counts = fields.pop("counts", None)
    group = make_group(run=run, state=GroupState.GRADED, outcomes=outcomes, step=step, **fields)
    for trajectory, said in zip(group.trajectories.all(), counts or (), strict=False):
        trajectory.counts = said
        trajectory.save()
    verdict = add_verdict(group, scores) if kind == DecisionKind.VERDICT else None
    decisions.decide(group, kind, by="test", verdict=verdict, reason=reason, end_reason=end)
    delivery.deliver(run)
    group.refresh_from_db()
    return group


class Job:
    """The numbered messages of one life."""

    def __init__(self, life: Life):
        self.life, self.n = life, 0

    def receipt(self, group: RolloutGroup, status: str, *, step: int, version: int = 1) -> None:
        self.n += 1
        said = {"life": group.life.n, "group": group.key, "version": version, "status": status, "step": step}
        intake.note(self.life, [messages.Receipt(n=self.n, **said)])

    def metrics(self, step: int, **values) -> None:
        self.n += 1
        intake.note(self.life, [messages.Metrics(n=self.n, step=step, values=values)])
