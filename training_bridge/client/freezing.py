"""Choosing a batch's rows: wait a little, then once and for all."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from training_bridge.client.errors import GagarError
from training_bridge.client.sets import AdvantageSet
from training_bridge.client.shared import Shared

WANT_GROUPS = 500  # a want stays far below the message limit
LOOK_S = 0.5  # how often a waiting freeze looks whether the server has been away for too long


class GivenUp(Exception):
    """Whoever waited for the freeze does not want it any more; nothing was frozen."""


class Freezer:
    """Freezes batches from the shared buffer."""

    def __init__(self, shared: Shared):
        """Serve one client. Args: shared, its state."""
        self._shared = shared
        self._numbers = count(1)

    def freeze(
        self, step: int, keys: list[str], within_s: float, hold_steps: int, given_up: threading.Event | None = None
    ) -> tuple[list[AdvantageSet], list[tuple[str, int]]]:
        """Choose the rows, see `GagarClient.freeze`.

        Args:
            step: the training step.
            keys: of open groups, each once.
            within_s: seconds to wait.
            hold_steps: steps that an undecided group may wait.
            given_up: set it, and notify the shared condition, to end the wait.
        Returns:
            The sets in the order of the keys; key and step of the groups that wait.
        Raises:
            GagarError: a group twice, or one that was frozen before, or a negative step.
            GivenUp: it was.
        """
        if step < 0:
            raise GagarError("step", got=step, expected="0 or more")
        shared = self._shared
        with shared.condition:
            self._check_free(keys)
            shared.buffer.step = max(shared.buffer.step, step)
            self._wait(step, keys, within_s, hold_steps, given_up or threading.Event())
            self._check_free(keys)  # the wait let the lock go: another freeze may have been faster
            sets, waiting, receipts = shared.buffer.freeze(
                step,
                keys,
                local="paused" if shared.mode == "outcome_only" else None,
                reason="deadline" if shared.online else "unreachable",
                hold_steps=0 if shared.unreachable else hold_steps,
            )
            for receipt in receipts:
                shared.outbox.put(receipt)
            waits = [(key, shared.buffer.open[key].step) for key in waiting]
        self._shared.wake()
        return sets, waits

    def _check_free(self, keys: list[str]) -> None:
        if len({*keys}) != len(keys):
            raise GagarError("groups of the batch", got="a group twice", expected="each once")
        for key in keys:
            group = self._shared.buffer.open.get(key)
            if group is None or group.frozen is not None:
                raise GagarError(f"group {key!r}", got="one that was frozen before", expected="each in one batch only")

    def _wait(self, step: int, keys: list[str], within_s: float, hold_steps: int, given_up: threading.Event) -> None:
        """Wait for new groups and for those that may wait no longer; only of the latter the server is asked."""
        shared, deadline = self._shared, time.monotonic() + within_s
        last_chance = [key for key in keys if step - shared.buffer.open[key].step >= hold_steps]
        awaited = [key for key in keys if key in {*last_chance} or not shared.buffer.open[key].carried]
        # the server decides a little earlier, so that its answer is here at our deadline
        with self._asking(shared.buffer.undecided(last_chance), deadline - min(0.5, within_s / 5)):
            while shared.buffer.undecided(awaited) and shared.mode == "normal" and not shared.unreachable:
                left = deadline - time.monotonic()
                if left <= 0 or given_up.is_set():
                    break
                shared.condition.wait(min(left, LOOK_S))
        if given_up.is_set():
            raise GivenUp

    @contextmanager
    def _asking(self, keys: list[str], deadline: float) -> Iterator[None]:
        wants = {
            next(self._numbers): (tuple(keys[start : start + WANT_GROUPS]), deadline)
            for start in range(0, len(keys), WANT_GROUPS)
        }
        self._shared.wants.update(wants)
        self._shared.wake()
        try:
            yield
        finally:
            for number in wants:
                del self._shared.wants[number]
