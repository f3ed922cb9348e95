"""The items of one request: judged one by one, stored in batches, answered in their order."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from grading.errors import Conflict, GradingError, NotFound
from grading.ingest import refusals
from grading.ingest.adding import Added, Item, add_all
from grading.ingest.fields import checked, unknown_fields
from grading.ingest.ndjson import TrajectoryLines
from grading.ingest.rollout import Rollout, store_bodies
from grading.ingest.serializers import TrajectoryWire, rollout_of
from grading.models import Life, RolloutGroup
from grading.shelf import Shelf
from grading.storable import storable

BATCH_ITEMS = 64  # the groups are locked while so many rows are written: 0.1 s
BATCH_BYTES = 8 * 2**20  # patches and logs held until then

Answer = tuple[dict, int]  # an item's answer and its HTTP status


class HandIn:
    """Take items within a `with`: at its end all are stored and `answers` has one for each."""

    def __init__(self, life: Life, *, by: str):
        self.answers: list[Answer] = []
        self._life, self._by = life, by
        self._groups: dict[str, RolloutGroup] = {}
        self._shelf = Shelf()
        self._waiting: list[tuple[int, Item, list[str]]] = []  # its place in the answers, unknown fields
        self._bytes = 0

    def __enter__(self) -> "HandIn":
        return self

    def __exit__(self, kind: type | None, *_: object) -> None:
        with self._shelf:
            if kind is None:
                self._store()

    def all_of(self, trajectories: Iterable[Any]) -> None:
        for at, fields in enumerate(trajectories):
            self.take(fields, where=f"trajectories[{at}]")

    def all_streamed(self, stream: TrajectoryLines) -> None:
        try:
            for number, fields in stream:
                self.take(fields, where=f"line {number}", events=stream.events)
        except GradingError as broken:  # the body itself, between two trajectories: what came before is stored
            self.answers.append(_refused({}, broken))

    def take(self, fields: Any, *, where: str, events: Callable | None = None) -> None:
        """Write one item's bodies and put it into the batch, or answer why not."""
        try:
            said = checked(TrajectoryWire, fields, where=where)
            group = self._group(said["group"])
            rollout = rollout_of(said, events=events and events())
            if events and rollout.events is None and rollout.log is not None:
                rollout = replace(rollout, events=[])  # a body of a log alone: there are no events to wait for
            item = Item(group, rollout, store_bodies(rollout, shelf=self._shelf))
        except GradingError as refused:
            self.answers.append(_refused(fields, refused))
            return
        self._waiting.append((len(self.answers), item, unknown_fields(TrajectoryWire, fields)))
        self.answers.append(({}, 0))
        self._bytes += _held_bytes(rollout)
        if len(self._waiting) >= BATCH_ITEMS or self._bytes > BATCH_BYTES:
            self._store()

    def _group(self, key: str) -> RolloutGroup:
        if key not in self._groups:
            group = RolloutGroup.objects.filter(run=self._life.run_id, life=self._life, key=key).first()
            if group is None:
                raise NotFound("no such group", got=key, expected="a key declared in this run and life", where="group")
            self._groups[key] = group
        return self._groups[key]

    def _store(self) -> None:
        waiting, self._waiting, self._bytes = self._waiting, [], 0
        if not waiting:
            return
        self._shelf.keep()
        added = add_all([item for _, item, _ in waiting], by=self._by)
        for (at, item, unknown), result in zip(waiting, added, strict=True):
            if isinstance(result, Added):
                said = {"external_id": item.rollout.external_id, "status": str(result.status)}
                self.answers[at] = (said | ({"ignored": unknown} if unknown else {}), 201 if result.is_new else 200)
            else:
                self.answers[at] = _refused({"external_id": item.rollout.external_id}, result)


def _held_bytes(rollout: Rollout) -> int:
    tests = sum(len(test.get("message", "")) + len(test["name"]) for test in rollout.tests or ())
    return len(rollout.patch or b"") + len(rollout.log or b"") + tests


def _refused(fields: Any, error: GradingError) -> Answer:
    external_id = fields.get("external_id") if isinstance(fields, dict) else None
    item = {
        "external_id": storable(external_id)[:200] if isinstance(external_id, str) else None,
        "status": "conflict" if isinstance(error, Conflict) else "error",
        "error": refusals.as_json(error),
    }
    return item, error.status
