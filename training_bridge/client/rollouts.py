"""Where rollouts go in: to the buffer for the local numbers, to the upload thread for the server."""

from collections.abc import Callable
from typing import Any

from training_bridge.client.sets import Rollout
from training_bridge.client.shared import Shared
from training_bridge.client.trajectory import Events, amendment_fields
from training_bridge.client.waiting import Waiting


class Rollouts:
    """What a group's handle hands its rollouts to."""

    def __init__(self, shared: Shared, waiting: Waiting):
        """Serve one client. Args: shared, its state; waiting, its uploads."""
        self._shared, self._waiting = shared, waiting

    def take(
        self,
        key: str,
        fields: dict[str, Any],
        rollout: Rollout,
        events: Events | None,
        log: bytes | Callable[[], bytes] | None,
    ) -> None:
        """Queue one rollout.

        Args:
            key: of its group.
            fields: from `trajectory_fields`.
            rollout: for the local advantages.
            events, log: as in `GroupHandle.submit`.
        Raises:
            GagarError: the id was submitted with another outcome, or in another group.
        """
        with self._shared.condition:
            is_new = self._shared.buffer.submit(key, fields["external_id"], rollout)
        if is_new and not self._waiting.rollout(key, fields, events, log):
            self._shared.break_group(key, f"rollout {fields['external_id']!r} found no room in the spool")

    def amend(self, key: str, external_id: str, outcome: str, reward: float | None, reason: str) -> None:
        """Queue one amendment.

        Args:
            key: of the group.
            external_id, outcome, reward, reason: as in `GroupHandle.amend`.
        Raises:
            GagarError: another outcome, no reason, or a rollout that was not submitted.
        """
        fields = amendment_fields(external_id, outcome, reward, reason)
        with self._shared.condition:
            for receipt in self._shared.buffer.amend(key, external_id, outcome, reward):
                self._shared.outbox.put(receipt)
        self._shared.wake()
        self._waiting.put_after(key, "amend", fields)

    def seal(self, key: str) -> None:
        """Queue the end of a group that stays smaller than declared. Args: key."""
        self._waiting.put_after(key, "seal", {})
