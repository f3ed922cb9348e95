"""Steps that build a group out of what the job sends: declare, add rollouts, add bodies, seal, amend, close.

Every step that may complete a group locks its row, looks at the state again and counts under that lock.
Nothing here knows HTTP; importers call the same steps.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from django.db import IntegrityError, transaction
from django.db.models import Q

from grading import clock, wake
from grading.errors import Conflict, Fenced, NotFound, WrongShape, WrongState
from grading.ingest.completing import bodies_missing, complete
from grading.ingest.rollout import Rollout, Stored, canonical, canonical_of, differences, digest_of, store_bodies
from grading.models import Life, RolloutGroup, Run, Task, Trajectory
from grading.review import decisions
from grading.review.recount import recount
from grading.states import DecisionKind, EndReason, GroupState
from grading.storable import storable

BY_DEADLINE = "policy:deadline"
CLOSE_AT_ONCE = 200


class Status(StrEnum):
    CREATED = "created"
    EXISTS = "exists"
    FILLED = "filled"  # a second post brought the bodies
    LATE = "late"  # the group was complete: stored, outside statistics


class Added(NamedTuple):
    trajectory: Trajectory
    status: Status
    is_new: bool


def declare_group(
    *,
    run: Run,
    life: int,
    key: str,
    task: str,
    step: int,
    group_size: int,
    policy_version: str = "",
    eligible: bool = True,
) -> tuple[RolloutGroup, bool]:
    """Announce a group before its rollouts. The same again changes nothing; anything else is a Conflict."""
    of_task = Task.objects.filter(team=run.team_id, key=task).first()
    if of_task is None:
        raise WrongShape(
            "no such task", got=task, expected=f"a key that was sent before: PUT /tasks/{task}", where="task"
        )
    said = {
        "task_id": of_task.pk,
        "step": step,
        "policy_version": policy_version,
        "group_size": group_size,
        "eligible": eligible,
    }
    with transaction.atomic():
        of_life = open_life(run, life, lock=True)
        within = run.collect_deadline_s if run.is_live else None
        collect_by = None if within is None else clock.now() + timedelta(seconds=within)
        group, created = RolloutGroup.objects.get_or_create(
            run=run, life=of_life, key=key, defaults=said | {"collect_by": collect_by}
        )
        if created:
            group.note(GroupState.COLLECTING, by=f"life:{life}", reason="declared")
    if changed := {name: getattr(group, name) for name, value in said.items() if getattr(group, name) != value}:
        raise Conflict(
            f"group {key} was declared otherwise",
            got={name.removesuffix("_id"): said[name] for name in changed},
            expected={name.removesuffix("_id"): value for name, value in changed.items()},
            where=", ".join(name.removesuffix("_id") for name in changed),
        )
    return group, created


def open_life(run: Run, n: int, *, lock: bool = False) -> Life:
    """The life of this number, or Fenced when a newer one took over. Locked, no group slips in behind the fence."""
    lives = Life.objects.select_for_update(no_key=True) if lock else Life.objects
    life = lives.filter(run=run, n=n).first()
    if life is None:
        raise NotFound("no such life", got=n, expected="a life this server issued", where="life")
    return _unfenced(life)


def _unfenced(life: Life) -> Life:
    if life.fenced_at is not None:
        raise Fenced(
            f"life {life.n} is fenced: a newer process of the job took over",
            got=life.n,
            expected="the newest life; this process should end",
            where="life",
        )
    return life


def add_trajectory(group: RolloutGroup, rollout: Rollout, *, by: str) -> Added:
    """Store one rollout, or find that it is there, or fill the bodies it has not.

    Raises Conflict, naming the difference, when the id came with other content; Fenced for a life that is over.
    """
    stored = store_bodies(rollout)
    with transaction.atomic():
        group = locked(group)
        _unfenced(group.life)
        mine = {"run": group.run, "life": group.life, "external_id": rollout.external_id}
        known = Trajectory.objects.filter(**mine).select_related("group").first()
        if known is not None:
            return _again(group, known, rollout, stored, by=by)
        is_late = group.state != GroupState.COLLECTING
        trajectory = _create(group, rollout, stored, is_late=is_late)
        if is_late:
            said = {"late": rollout.external_id}
            group.note(group.state, by=by, reason=f"late rollout {rollout.external_id}", details=said)
            return Added(trajectory, Status.LATE, True)
        if group.trajectories.counted().count() >= group.group_size:
            complete(group, by=by, reason="all rollouts are in")
        return Added(trajectory, Status.CREATED, True)


def locked(group: RolloutGroup) -> RolloutGroup:
    """The group as it is now, locked until the transaction ends."""
    rows = RolloutGroup.objects.locked().select_related("run", "life", "task", "rubric")
    return rows.get(pk=group.pk)


def _create(group: RolloutGroup, rollout: Rollout, stored: Stored, *, is_late: bool) -> Trajectory:
    if rollout.outcome is None:
        raise NotFound(
            f"no rollout {rollout.external_id} yet", expected="its outcome first, then its bodies", where="external_id"
        )
    extra = rollout.extra | ({"policy_version": rollout.policy_version} if rollout.policy_version else {})
    trajectory = Trajectory(
        group=group,
        run=group.run,
        life=group.life,
        external_id=rollout.external_id,
        outcome=rollout.outcome,
        reward=rollout.reward or "",
        is_truncated=bool(rollout.is_truncated),
        is_late=is_late,
        patch=stored.patch,
        patch_bytes=len(rollout.patch or b""),
        event_body=stored.event_body or "",
        event_count=stored.event_count,
        log=stored.log or "",
        log_bytes=len(rollout.log or b""),
        raw_body=stored.raw_body,
        tests=rollout.tests or [],
        counts=rollout.counts or {},
        extra=storable(extra),
        problem=rollout.problem[:200],
        content_digest=digest_of(canonical(rollout, stored, group=group.key)),
    )
    try:
        with transaction.atomic():
            trajectory.save(force_insert=True)
    except IntegrityError:  # the same id went into another group, whose lock is not ours, at the same moment
        raise Conflict(
            f"rollout {rollout.external_id} is in two groups", got=group.key, expected="one group", where="group"
        ) from None
    return trajectory


def _again(group: RolloutGroup, known: Trajectory, rollout: Rollout, stored: Stored, *, by: str) -> Added:
    said = canonical(rollout, stored, group=group.key)
    if digest_of(said) != known.content_digest:
        _refuse(differences(canonical_of(known), said), known)
    bodies = {"events": (known.event_body, stored.event_body), "log": (known.log, stored.log)}
    if not known.event_count:  # none given, or said to be none: an empty body is filled once
        bodies.pop("events")
    _refuse({name: (old, new) for name, (old, new) in bodies.items() if old and new and old != new}, known)
    filled = {}
    if not known.event_count and stored.event_count not in (None, known.event_count):
        filled |= {"event_body": stored.event_body, "event_count": stored.event_count}
    if not known.log and stored.log:
        filled |= {"log": stored.log, "log_bytes": len(rollout.log)}
    if not filled:
        return Added(known, Status.LATE if known.is_late else Status.EXISTS, False)
    Trajectory.objects.filter(pk=known.pk).update(**filled)
    for name, value in filled.items():
        setattr(known, name, value)
    if group.state != GroupState.COLLECTING and not group.bodies_ready and not bodies_missing(group):
        _bodies_complete(group, by=by, reason="all wanted bodies are in")
    return Added(known, Status.FILLED, False)


def _refuse(differing: dict, known: Trajectory) -> None:
    if differing:
        raise Conflict(
            f"rollout {known.external_id} came before with other content",
            got={name: said for name, (_, said) in differing.items()},
            expected={name: stored for name, (stored, _) in differing.items()},
            where=", ".join(differing),
        )


def _bodies_complete(group: RolloutGroup, *, by: str, reason: str) -> None:
    RolloutGroup.objects.filter(pk=group.pk).update(bodies_ready=True)
    group.bodies_ready = True
    group.note(group.state, by=by, reason=reason)
    wake.grading()


@transaction.atomic
def seal(group: RolloutGroup, *, by: str) -> RolloutGroup:
    """Complete a group that stays smaller than declared. Sealing a group that is past collecting changes nothing."""
    group = locked(group)
    _unfenced(group.life)
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
    _unfenced(group.life)
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
        if group.state == GroupState.GRADING and not group.bodies_wanted:
            group.bodies_wanted = True  # it was filtered, now it trains
            group.save(update_fields=["bodies_wanted"])
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
        complete(group, by=BY_DEADLINE, reason="collect deadline")
    else:
        reason = EndReason.EXCLUDED_NO_VALID_TRAJECTORY
        decisions.decide(
            group, DecisionKind.EXCLUDED, by=BY_DEADLINE, end_reason=reason, reason="collect deadline, no rollout"
        )


def _stop_waiting(group: RolloutGroup) -> None:
    _bodies_complete(group, by=BY_DEADLINE, reason="collect deadline: graded with the bodies that are in")
