"""The heartbeat of one grading: keeps its claim while it works, and tells it to stop when nobody waits any more."""

import logging
import time
from threading import Event, Thread

from django.conf import settings
from django.db import DatabaseError, connections

from grading.errors import LeaseLost
from grading.models import Grading

log = logging.getLogger(__name__)
_kept: dict[int, "Keeper"] = {}  # of this process, by grading


class Keeper:
    """Use it around the work: `with Keeper(grading, wall_s=600) as keeper`; the grader watches `keeper.cancelled`.

    A grader that goes on although it was cancelled is no longer kept: its lease runs out, and another takes the group.
    """

    def __init__(self, grading: Grading, *, wall_s: float):
        self.grading, self.wall_s, self.lease_s = grading, wall_s, settings.GAGAR_LEASE_S
        self.cancelled, self.why = Event(), ""
        self._done, self._started = Event(), time.monotonic()
        self._thread = Thread(target=self._keep, name=f"keeper of grading {grading.pk}", daemon=True)

    def __enter__(self) -> "Keeper":
        _kept[self.grading.pk] = self
        self._thread.start()
        return self

    def __exit__(self, *failure) -> None:
        _kept.pop(self.grading.pk, None)
        self._done.set()
        self._thread.join(5)

    def cancel(self, why: str) -> None:
        """Tell the grader to stop at its next look."""
        self.why = self.why or why
        self.cancelled.set()

    def _keep(self) -> None:
        every_s, give_up_s = self.lease_s / 3, self.wall_s + self.lease_s
        try:
            while not self._done.wait(self._pause(every_s)):
                elapsed_s = time.monotonic() - self._started
                if elapsed_s >= self.wall_s:
                    self.cancel(f"its {self.wall_s:g} s were over")
                if elapsed_s >= give_up_s:
                    return
                self._beat(elapsed_s)
        finally:
            connections.close_all()

    def _pause(self, every_s: float) -> float:
        """Until the next beat; not past the end of its time."""
        left_s = self.wall_s - (time.monotonic() - self._started)
        return min(every_s, left_s) if left_s > 0 else every_s

    def _beat(self, elapsed_s: float) -> None:
        grading = self.grading
        try:
            if grading.fencing:
                grading.group.keep_claim(fencing=grading.fencing, lease_s=self.lease_s)
            row = Grading.objects.filter(pk=grading.pk, state=Grading.State.RUNNING, attempt=grading.attempt)
            if not row.update(duration_s=elapsed_s):
                raise LeaseLost(f"grading {grading.pk} was taken from its worker")
        except LeaseLost as lost:
            self.cancel(str(lost))
        except DatabaseError:
            log.warning("the claim on group %s could not be renewed", grading.group.key, exc_info=True)
        finally:
            connections.close_all()  # a pool has few of them, and the next beat is far away


def cancel(grading: Grading, why: str) -> None:
    """Stop a grading that this process works at; nothing where it has just ended."""
    if kept := _kept.get(grading.pk):
        kept.cancel(why)
