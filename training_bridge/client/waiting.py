"""What waits for the server: declarations, outcomes, bodies. The job fills it, the upload thread empties it."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Any

from training_bridge.client.bodies import Bodies, Lines
from training_bridge.client.shared import Problems
from training_bridge.client.spool import Spool, SpoolFull
from training_bridge.client.trajectory import Event, Events, body_lines, event_json, to_json

BATCH_ITEMS = 64
BATCH_BYTES = 2 * 2**20


@dataclass(frozen=True)
class Errand:
    """One PUT: JSON, or raw bytes in the spool. That of a group gets the life when it is sent."""

    path: str
    body: dict[str, Any] | None = None
    ticket: int | None = None
    group: str | None = None


@dataclass(frozen=True)
class Afterthought:
    """One POST about a group whose rollouts must be there first: a seal, an amendment. It gets the life when sent."""

    group: str
    verb: str
    body: dict[str, Any]
    after: int  # outcomes that were queued before it


@dataclass(frozen=True)
class Outcome:
    """One rollout without its body, as JSON bytes in the spool."""

    group: str
    external_id: str
    ticket: int


class Waiting:
    """The queues. `changed` guards them and is notified when one grows, shrinks, or `stopping` is set."""

    def __init__(self, spool: Spool, problems: Problems):
        """Start empty. Args: spool, for every byte that waits; problems, told what finds no room."""
        self.changed = threading.Condition()
        self.stopping = False
        self.errands: deque[Errand] = deque()
        self.outcomes: deque[Outcome] = deque()
        self.afterthoughts: deque[Afterthought] = deque()
        self._queued = self._settled = 0  # outcomes so far
        self._nudged = False
        self.bodies = Bodies()
        self.spool = spool
        self._problems = problems

    def put(self, path: str, body: dict[str, Any], *, group: str | None = None) -> None:
        """Queue one PUT of JSON. Args: path below `/api/v1`; body; group, the key if it declares one."""
        self._add(self.errands, Errand(path, body, group=group))

    def put_bytes(self, path: str, content: bytes) -> None:
        """Queue one PUT of raw bytes. Args: path below `/api/v1`; content."""
        try:
            self._add(self.errands, Errand(path, ticket=self.spool.put(content)))
        except SpoolFull as full:
            self._problems.add(f"{path} is lost, the spool is full: {full}")

    def open_group(self, group: str, size: int) -> None:
        """Know a group, so that its bodies can be asked for. Args: group, its key; size, in rollouts."""
        with self.changed:
            self.bodies.open(group, size)

    def put_after(self, group: str, verb: str, body: dict[str, Any]) -> None:
        """Queue one POST behind the rollouts of now. Args: group, its key; verb, end of the path; body."""
        with self.changed:
            self.afterthoughts.append(Afterthought(group, verb, body, self._queued))
            self.changed.notify_all()

    def afterthought(self) -> Afterthought | None:
        """The oldest one whose rollouts are settled."""
        with self.changed:
            ready = self.afterthoughts and not self.errands and self.afterthoughts[0].after <= self._settled
            return self.afterthoughts[0] if ready else None

    def afterthought_done(self, done: Afterthought) -> None:
        """It is settled. Args: done, from `afterthought`."""
        with self.changed:
            self.afterthoughts.popleft()
            if done.verb == "seal":
                self.bodies.sealed(done.group, time.monotonic())
            self.changed.notify_all()

    def rollout(
        self, group: str, fields: dict[str, Any], events: Events | None, log: bytes | Callable[[], bytes] | None
    ) -> bool:
        """Queue one rollout: its outcome now, its body for when it is wanted.

        Args:
            group: key of the group.
            fields: from `trajectory_fields`.
            events: a list is written out now; a callable is called in the upload thread when the server wants them.
            log: the evaluation's output, likewise.
        Returns:
            Whether there was room for it.
        """
        external_id = fields["external_id"]
        body = self._body(fields, events, log)
        # an empty list says that nothing will follow, so the server need not wait for a body
        outcome = to_json(fields if body else {**fields, "events": []})
        try:
            ticket = self.spool.put(outcome)
        except SpoolFull as full:
            if body:
                body[1]()
            self._problems.add(f"rollout {external_id!r} is lost, the spool is full: {full}")
            return False
        with self.changed:
            if body:
                self.bodies.add(group, external_id, *body)
            self.outcomes.append(Outcome(group, external_id, ticket))
            self._queued += 1
            self.changed.notify_all()
        return True

    def batch(self, limit: int = BATCH_ITEMS) -> list[Outcome]:
        """The oldest outcomes, together at most 2 MiB or a single one; none before their declarations are sent.

        Args:
            limit: how many at most.
        """
        batch: list[Outcome] = []
        total = 0
        with self.changed:
            if self.errands:
                return []
            for outcome in islice(self.outcomes, limit):
                total += self.spool.size(outcome.ticket)
                if batch and total > BATCH_BYTES:
                    break
                batch.append(outcome)
        return batch

    def declarations(self, limit: int) -> list[Errand]:
        """The oldest errands up to the first that declares no group. Args: limit, how many at most."""
        with self.changed:
            return list(takewhile(lambda errand: errand.group is not None, islice(self.errands, limit)))

    def errands_done(self, many: int) -> None:
        """The oldest errands are settled. Args: many, how many."""
        with self.changed:
            for _ in range(many):
                errand = self.errands.popleft()
                if errand.ticket is not None:
                    self.spool.drop(errand.ticket)
            self.changed.notify_all()

    def outcomes_done(self, batch: list[Outcome], *, refused: bool) -> None:
        """The oldest outcomes are settled. Args: batch, from `batch`; refused, their bodies have nowhere to go."""
        with self.changed:
            for outcome in batch:
                self.outcomes.popleft()
                self._settled += 1
                self.spool.drop(outcome.ticket)
                if refused:
                    self.bodies.settle(outcome.group, outcome.external_id)
                self.bodies.outcome_arrived(outcome.group, time.monotonic())
            self.changed.notify_all()

    def flush(self, timeout_s: float, *, given_up: Callable[[], bool]) -> bool:
        """Wait until the server has everything it wants of what is here.

        Args:
            timeout_s: at most this long.
            given_up: True when waiting is useless.
        Returns:
            Whether nothing is left.
        """
        deadline = time.monotonic() + timeout_s
        with self.changed:
            while self.errands or self.outcomes or self.afterthoughts or self.bodies.settling:
                left = deadline - time.monotonic()
                if left <= 0 or given_up():
                    return False
                self.changed.wait(min(left, 0.5))
        return True

    def sleep(self, seconds: float) -> None:
        """Wait so long, or until `stopping`. Args: seconds."""
        deadline = time.monotonic() + seconds
        with self.changed:
            while not self.stopping and (left := deadline - time.monotonic()) > 0:
                self.changed.wait(left)

    def rest(self) -> None:
        """Wait until there may be something to do."""
        with self.changed:
            nudged, self._nudged = self._nudged, False
            if nudged or self.stopping or self.errands or self.outcomes or self.afterthoughts:
                return
            at = self.bodies.next_at()
            self.changed.wait(None if at is None else max(0.0, at - time.monotonic()))

    def nudge(self) -> None:
        """There is something to do that is not in the queues. From any thread."""
        with self.changed:
            self._nudged = True
            self.changed.notify_all()

    def stop(self) -> None:
        """Wake every waiter for the last time."""
        with self.changed:
            self.stopping = True
            self.changed.notify_all()

    def _body(
        self, fields: dict[str, Any], events: Events | None, log: bytes | Callable[[], bytes] | None
    ) -> tuple[Lines, Callable[[], None]] | None:
        """Make the second post, or keep it in the spool. Returns: what makes the lines, what frees the room."""
        if events is None and log is None:
            return None
        if callable(events) or callable(log):
            return (lambda: _lines(fields, events, log)), (lambda: None)
        try:
            ticket = self.spool.put(b"".join(_lines(fields, events, log)))
        except SpoolFull as full:
            self._problems.add(f"the body of rollout {fields['external_id']!r} is lost, the spool is full: {full}")
            return None
        return (lambda: [self.spool.get(ticket)]), (lambda: self.spool.drop(ticket))

    def _add(self, queue: deque[Any], item: Any) -> None:
        with self.changed:
            queue.append(item)
            self.changed.notify_all()


def _lines(fields: dict[str, Any], events: Events | None, log: bytes | Callable[[], bytes] | None) -> Iterable[bytes]:
    each: Iterable[Event] = (events() if callable(events) else events) or ()
    return body_lines(fields, (event_json(event) for event in each), log() if callable(log) else log)
