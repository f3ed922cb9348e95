"""Rollouts are stored in batches: each whole or not at all, groups locked once, completion counted under the lock.

Nothing is written before every item is judged, so a refused one leaves no trace and the others go in.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from django.db import IntegrityError, OperationalError, transaction
from django.db.models import Count, prefetch_related_objects

from grading.errors import Conflict, GradingError, NotFound
from grading.ingest.completing import bodies_complete, bodies_missing, complete, locked_all, unfenced
from grading.ingest.rollout import Rollout, Stored, canonical, canonical_of, differences, digest_of
from grading.models import RolloutGroup, Trajectory
from grading.states import GroupState
from grading.storable import storable

BODY_FIELDS = ("event_body", "event_count", "log", "log_bytes")
DEADLOCK = "40P01"  # PostgreSQL


class Status(StrEnum):
    CREATED = "created"
    EXISTS = "exists"
    FILLED = "filled"  # a second post brought the bodies
    LATE = "late"  # the group was complete: stored, outside statistics


class Added(NamedTuple):
    trajectory: Trajectory
    status: Status
    is_new: bool


class Item(NamedTuple):
    """A rollout for a group, its bodies already durable."""

    group: RolloutGroup
    rollout: Rollout
    stored: Stored


def add_all(items: Sequence[Item], *, by: str) -> list[Added | GradingError]:
    """Store rollouts in their order, or find that they are there, or fill the bodies they have not.

    Returns one answer an item: a Conflict names the difference when the id came with other content, Fenced says that
    the life is over. One transaction for all; where the database itself refuses it, one for each.
    """
    try:
        with transaction.atomic():
            return _Batch(items, by=by).store()
    except (IntegrityError, OperationalError) as error:
        # One id went into two groups at the same moment, and the other group's lock is not ours.
        if isinstance(error, OperationalError) and getattr(error.__cause__, "sqlstate", None) != DEADLOCK:
            raise
        if len(items) > 1:
            return [added for item in items for added in add_all([item], by=by)]
        rollout, group = items[0].rollout, items[0].group
        said = f"rollout {rollout.external_id} is in two groups"
        return [Conflict(said, got=group.key, expected="one group", where="group")]


class _Batch:
    """Lives inside one transaction."""

    def __init__(self, items: Sequence[Item], *, by: str):
        self.items, self.by = items, by
        self.groups = {group.pk: group for group in locked_all(item.group.pk for item in items)}
        self.known = self._known()
        self.counted = self._counts()
        self.new: list[Trajectory] = []
        self.filled: dict[int, Trajectory] = {}

    def _known(self) -> dict[tuple[int, str], Trajectory]:
        """The rows of these ids, by life and id."""
        runs = {group.run_id for group in self.groups.values()}
        lives = {group.life_id for group in self.groups.values()}
        ids = {item.rollout.external_id for item in self.items}
        rows = Trajectory.objects.filter(run__in=runs, life__in=lives, external_id__in=ids)
        found = {(row.life_id, row.external_id): row for row in rows.order_by()}
        for row in found.values():
            if row.group_id in self.groups:
                row.group = self.groups[row.group_id]
        return found

    def _counts(self) -> dict[int, int]:
        """How many rollouts count in the groups that still collect."""
        collecting = {pk: 0 for pk, group in self.groups.items() if group.state == GroupState.COLLECTING}
        rows = Trajectory.objects.counted().filter(group__in=collecting).order_by().values("group_id")
        found = rows.annotate(n=Count("pk")) if collecting else ()
        return collecting | {row["group_id"]: row["n"] for row in found}

    def store(self) -> list[Added | GradingError]:
        answers = [self._judge(item) for item in self.items]
        Trajectory.objects.bulk_create(self.new)
        for row in self.filled.values():
            row.save(update_fields=BODY_FIELDS)  # bulk_update takes three times as long
        full = {pk for pk, counted in self.counted.items() if counted >= self.groups[pk].group_size}
        prefetch_related_objects([self.groups[pk] for pk in full], "run__rubric", "task")
        for pk, group in self.groups.items():
            self._finish(group, is_full=pk in full)
        return answers

    def _judge(self, item: Item) -> Added | GradingError:
        group = self.groups[item.group.pk]
        try:
            unfenced(group.life)
            known = self.known.get((group.life_id, item.rollout.external_id))
            return self._create(group, item) if known is None else self._again(group, known, item)
        except GradingError as refused:
            return refused

    def _create(self, group: RolloutGroup, item: Item) -> Added:
        # A group that fills up in this batch is complete for whatever follows.
        is_late = self.counted.get(group.pk, group.group_size) >= group.group_size
        trajectory = new_row(group, item, is_late=is_late)
        self.known[group.life_id, trajectory.external_id] = trajectory
        self.new.append(trajectory)
        if not is_late:
            self.counted[group.pk] += 1
        return Added(trajectory, Status.LATE if is_late else Status.CREATED, True)

    def _again(self, group: RolloutGroup, known: Trajectory, item: Item) -> Added:
        filled = missing_bodies(known, item, said=canonical(item.rollout, item.stored, group=group.key))
        if not filled:
            return Added(known, Status.LATE if known.is_late else Status.EXISTS, False)
        for name, value in filled.items():
            setattr(known, name, value)
        if known.pk is not None:
            self.filled[known.pk] = known
        return Added(known, Status.FILLED, False)

    def _finish(self, group: RolloutGroup, *, is_full: bool) -> None:
        """What follows from the rows that are in now."""
        if is_full:
            complete(group, by=self.by, reason="all rollouts are in")
        for row in self.new:
            if row.is_late and row.group_id == group.pk:
                said = f"late rollout {row.external_id}"
                group.note(group.state, by=self.by, reason=said, details={"late": row.external_id})
        is_filled = any(row.group_id == group.pk for row in self.filled.values())
        waits = group.state != GroupState.COLLECTING and not group.bodies_ready
        if is_filled and waits and not bodies_missing(group):
            bodies_complete(group, by=self.by, reason="all wanted bodies are in")


def new_row(group: RolloutGroup, item: Item, *, is_late: bool) -> Trajectory:
    """The row of a rollout that is not there yet, unsaved."""
    rollout, stored = item.rollout, item.stored
    if rollout.outcome is None:
        raise NotFound(
            f"no rollout {rollout.external_id} yet", expected="its outcome first, then its bodies", where="external_id"
        )
    extra = rollout.extra | ({"policy_version": rollout.policy_version} if rollout.policy_version else {})
    return Trajectory(
        group=group,
        run_id=group.run_id,
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


def missing_bodies(known: Trajectory, item: Item, *, said: dict) -> dict:
    """The fields that a second post fills; Conflict where it says something else than the first."""
    rollout, stored = item.rollout, item.stored
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
    return filled


def _refuse(differing: dict, known: Trajectory) -> None:
    if differing:
        raise Conflict(
            f"rollout {known.external_id} came before with other content",
            got={name: said for name, (_, said) in differing.items()},
            expected={name: stored for name, (stored, _) in differing.items()},
            where=", ".join(differing),
        )
