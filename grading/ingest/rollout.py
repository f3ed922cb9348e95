"""One rollout as it is handed in, before it is a row: what is canonical in it, and how two of them differ."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from grading import bodies
from grading.errors import TooLarge
from grading.shelf import Shelf

EVENTS_LIMIT_BYTES = 1024 * 2**20  # events of one rollout, plain
LOG_LIMIT_BYTES = 256 * 2**20


@dataclass(frozen=True)
class Rollout:
    """What somebody says about one rollout. None means "not said": a later post may leave out what it said before.

    `events` may be any iterable, also one that reads a socket; an empty one says that there are none.
    """

    external_id: str
    outcome: str | None = None
    reward: str | None = None  # float repr, "NaN", "Infinity" or "-Infinity"
    is_truncated: bool | None = None
    patch: bytes | None = None
    tests: list[dict] | None = None
    counts: dict[str, int | float] | None = None
    policy_version: str | None = None
    events: Iterable[dict] | None = None
    log: bytes | None = None
    raw: bytes | None = None  # an imported trajectory of a format that is not read yet
    extra: dict[str, Any] = field(default_factory=dict)  # model names and the like: hidden until the decision
    problem: str = ""


class Stored(NamedTuple):
    """The keys of a rollout's bodies, written before any row names them."""

    patch: str
    event_body: str | None
    event_count: int | None
    log: str | None
    raw_body: str


def store_bodies(rollout: Rollout, *, shelf: Shelf | None = None) -> Stored:
    """Write patch, events and log, durable at once or with the shelf.

    A rollout whose events break off raises, and nothing names what was written.
    """
    if rollout.log is not None and len(rollout.log) > LOG_LIMIT_BYTES:
        raise TooLarge("the log is too long", got=f"{len(rollout.log)} bytes", expected=f"<= {LOG_LIMIT_BYTES}")
    events = None
    if rollout.events is not None:
        events = bodies.write_events(rollout.events, limit=EVENTS_LIMIT_BYTES, shelf=shelf)
    return Stored(
        patch=bodies.write_bytes(rollout.patch, shelf=shelf) if rollout.patch else "",
        event_body=events and events.sha256,
        event_count=events.events if events else None,
        log=bodies.write_bytes(rollout.log, shelf=shelf) if rollout.log else None,
        raw_body=bodies.write_bytes(rollout.raw, shelf=shelf) if rollout.raw else "",
    )


def canonical(rollout: Rollout, stored: Stored, *, group: str) -> dict[str, Any]:
    """The fields that make two posts of one id the same or not, as far as this post says them."""
    said = {
        "group": group,
        "outcome": rollout.outcome,
        "reward": rollout.reward,
        "truncated": rollout.is_truncated,
        "patch": None if rollout.patch is None else stored.patch,
        "tests": rollout.tests,
        "counts": rollout.counts,
        "policy_version": rollout.policy_version,
    }
    return {name: value for name, value in said.items() if value is not None}


def canonical_of(trajectory) -> dict[str, Any]:
    """The same fields of a stored row, all of them."""
    return {
        "group": trajectory.group.key,
        "outcome": trajectory.outcome,
        "reward": trajectory.reward,
        "truncated": trajectory.is_truncated,
        "patch": trajectory.patch,
        "tests": trajectory.tests,
        "counts": trajectory.counts,
        "policy_version": trajectory.extra.get("policy_version", ""),
    }


def digest_of(fields: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def differences(stored: dict[str, Any], said: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """field -> (stored, said), where a post says something else than the row holds."""
    return {name: (stored.get(name), value) for name, value in said.items() if stored.get(name) != value}
