"""The verbs of the client without a server: every group gets its outcome advantages, version 0."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from training_bridge.client.sets import AdvantageSet, FrozenBatch, Rollout, local_set


@dataclass
class OfflineGroup:
    """A declared group."""

    key: str
    step: int
    eligible: bool
    rollouts: dict[str, Rollout] = field(default_factory=dict)

    def submit(self, external_id: str, *, outcome: str, reward: float | None = None, **ignored: object) -> None:
        """Note the outcome; there is nobody to send the rest to."""
        self.rollouts[external_id] = Rollout(outcome, reward)


class OfflineGagar:
    """Stands in for GagarClient when the job is started with --offline.

    Args:
        run: name of the run, kept in the checkpoint.
        cursor: from the checkpoint, or None.
    """

    def __init__(self, run: str, cursor: dict | None = None) -> None:
        self.run = run
        self.life = cursor["life"] + 1 if cursor else 1
        self._applied = list(cursor["applied"]) if cursor else []

    def __enter__(self) -> "OfflineGagar":
        return self

    def __exit__(self, *exc: object) -> None:
        return None

    def task(self, key: str, **ignored: object) -> None:
        """Register a task: nobody to tell."""

    def declare(self, key: str, *, step: int, eligible: bool = True, **ignored: object) -> OfflineGroup:
        """Open a group."""
        return OfflineGroup(key, step, eligible)

    def freeze(self, step: int, groups: list[OfflineGroup], **ignored: object) -> FrozenBatch:
        """Give every group its own outcome advantages."""
        sets = [
            local_set(group.key, self.life, group.step, group.rollouts, eligible=group.eligible, reason="offline")
            for group in groups
        ]
        return FrozenBatch(step, sets, [])

    def applied(self, batch: FrozenBatch) -> None:
        """Remember what was used."""
        self._applied += [self._entry(used, batch.step) for used in batch.sets]

    @contextlib.contextmanager
    def checkpoint(self) -> Iterator[dict]:
        """Hand out the cursor."""
        yield {"run": self.run, "life": self.life, "epoch": 0, "seq": 0, "digest": None, "applied": self._applied}

    def log(self, step: int, values: dict) -> None:
        """Send metrics: nobody to tell."""

    def _entry(self, used: AdvantageSet, step: int) -> tuple[int, str, int, int]:
        return used.life, used.group, used.version, step
