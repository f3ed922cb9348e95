"""Steps that build a declared group out of what the job sends: add a rollout or its bodies, seal, amend, close.

Every step that may complete a group locks its row, looks at the state again and counts under that lock.
Nothing here knows HTTP; importers call the same steps.
"""

from collections.abc import Callable
from datetime import datetime

from django.db import transaction
from django.db.models import Q

from grading.errors import GradingError, NotFound, WrongState
from grading.ingest.adding import Added, Item, add_all
from grading.ingest.completing import bodies_complete, complete, locked, unfenced
from grading.ingest.rollout import Rollout, store_bodies
from grading.models import RolloutGroup, Trajectory
from grading.review import decisions
from grading.review.recount import recount
from grading.states import DecisionKind, EndReason, GroupState

CLOSE_AT_ONCE = 200


def add_trajectory(group: RolloutGroup, rollout: Rollout, *, by: str) -> Added:
    """Store one rollout, or find that it is there, or fill the bodies it has not. Raises what `add_all` returns."""
    [added] = add_all([Item(group, rollout, store_bodies(rollout))], by=by)
    if isinstance(added, GradingError):
        raise added
    return added


@transaction.atomic
def seal(group: RolloutGroup, *, by: str) -> RolloutGroup:
    """Complete a group that stays smaller than declared. Sealing a group that is past collecting changes nothing."""
    group = locked(group)
    unfenced(group.life)
    if group.state == GroupState.COLLECTING:
        if not group.trajectories.counted().exists():
            raise WrongState(f"group {group.key} has no rollouts to seal", got=0, expected="at least 1 rollout")
        complete(group, by=by, reason="sealed")
    return group


@transaction.atomic
def amend(
    group: RolloutGroup, *, external_id: str, outcome: str, reason: str, by: str, reward: str | None = None
) -> RolloutGroup:
    """Change what a rollout's tests said (a flaky test). What was decided is decided anew, as a new version."""
    group = locked(group)
    unfenced(group.life)
    trajectory = group.trajectories.filter(external_id=external_id).first()
    if trajectory is None:
        raise NotFound(f"no rollout {external_id} in group {group.key}", where="external_id")
    now = {"outcome": outcome, "reward": trajectory.reward if reward is None else reward}
    old = {"outcome": trajectory.outcome, "reward": trajectory.reward}
    if now == old:
        return group
    # The digest stays that of the first post: a retry of it is still the same content.
    Trajectory.objects.filter(pk=trajectory.pk).update(**now)
    details = {"rollout": external_id, "old": old, "new": now}
    said = f"outcome of {external_id} amended: {reason}"
    group.note(group.state, by=by, reason=said, details=details)
    if not trajectory.is_late:
        recount(group, by=by, reason=said)
    return group


def close_overdue(now: datetime) -> int:
    """The collect deadline, for the sweep: groups still collecting end, missing bodies are waited for no longer.

    Returns how many groups it changed.
    """
    collecting = RolloutGroup.objects.filter(state=GroupState.COLLECTING, collect_by__lt=now)
    waiting = RolloutGroup.objects.filter(state=GroupState.COMPLETE, bodies_ready=False)
    waiting = waiting.filter(Q(collect_by__lt=now) | Q(bodies_wanted=False))
    return _each(collecting, _close, GroupState.COLLECTING) + _each(waiting, _stop_waiting, GroupState.COMPLETE)


def _each(rows, step: Callable[[RolloutGroup], None], state: GroupState) -> int:
    done = 0
    for found in rows.order_by("collect_by")[:CLOSE_AT_ONCE]:
        with transaction.atomic():
            group = locked(found)
            if group.state == state and not group.bodies_ready:
                step(group)
                done += 1
    return done


def _close(group: RolloutGroup) -> None:
    if group.trajectories.counted().exists():
        complete(group, by=decisions.BY_DEADLINE, reason="collect deadline")
    else:
        reason = EndReason.EXCLUDED_NO_VALID_TRAJECTORY
        why, by = "collect deadline, no rollout", decisions.BY_DEADLINE
        decisions.decide(group, DecisionKind.EXCLUDED, by=by, end_reason=reason, reason=why)


def _stop_waiting(group: RolloutGroup) -> None:
    bodies_complete(group, by=decisions.BY_DEADLINE, reason="collect deadline: graded with the bodies that are in")
