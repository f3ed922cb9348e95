"""What the job's thread, the upload thread and the socket thread share, under one condition."""

import logging
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from training_bridge.client.buffer import Buffer
from training_bridge.client.cursor import pending_receipts, read_cursor
from training_bridge.protocol.messages import Mode
from training_bridge.protocol.outbox import Outbox

log = logging.getLogger("gagar")

PATIENCE_S = 30.0  # a server that is away for longer than a restart is not waited for
RETRY_FIRST_S, RETRY_CEILING_S = 0.2, 10.0


class Problems:
    """What went wrong and needs a person, newest last: logged at once, the last 1,000 kept."""

    def __init__(self) -> None:
        self.count = 0
        self._kept: deque[str] = deque(maxlen=1000)

    def add(self, text: str) -> None:
        """Keep and log one. Args: text, what, got, expected."""
        self.count += 1
        self._kept.append(text)
        log.error("gagar: %s", text)

    def kept(self) -> list[str]:
        """The newest ones, oldest first."""
        return list(self._kept)


class Backoff:
    """Jitter under a doubling ceiling, so that a thousand jobs do not come back at once."""

    def __init__(self) -> None:
        self._tries = 0

    def next_s(self, at_least_s: float = 0.0) -> float:
        """Seconds to wait before the next try. Args: at_least_s, what the server asked for."""
        high = min(RETRY_CEILING_S, RETRY_FIRST_S * 2 ** min(self._tries, 16))
        self._tries += 1
        return max(at_least_s, random.uniform(high / 2, high))

    def reset(self) -> None:
        """The last try worked."""
        self._tries = 0


class Shared:
    """The state of one client. Every field is read and written under `condition`.

    Attributes:
        buffer, outbox: see there.
        mode: `outcome_only` while the run is paused.
        online: the socket is welcomed.
        fatal: why the server will not have us any more; None normally.
        durable: (epoch, seq) that the newest checkpoint on disk covers.
        wants: by a number of its own, keys and monotonic deadline of a freeze that is waiting.
        undeclared: groups whose declaration still waits.
        wake, wake_uploads: tell the socket thread, or the upload thread, that something is due.
        away_since: monotonic second since which there is no socket; of no meaning while online.
        lives_issued: how often this process got a life; more than once only after the server's database was restored.
        life_lost: the server does not know our life any more; the upload thread gets another.
    """

    def __init__(self, buffer: Buffer):
        """Start offline. Args: buffer, new or restored."""
        self.condition = threading.Condition()
        self.buffer, self.outbox = buffer, Outbox()
        self.mode: Mode = "normal"
        self.online = False
        self.fatal: str | None = None
        self.durable = (0, 0)
        self.wants: dict[int, tuple[tuple[str, ...], float]] = {}
        self.undeclared: set[str] = set()
        self.wake: Callable[[], None] = lambda: None
        self.wake_uploads: Callable[[], None] = lambda: None
        self.problems = Problems()
        self.away_since = time.monotonic()
        self.lives_issued = 0
        self.life_lost = False

    def adopt(self, life: int) -> None:
        """The server has issued a life; what this process did before belongs to it. Call under `condition`.

        A second one means that the server has lost the first, and with it the groups it had not decided.
        Args: life, from 1.
        """
        if self.lives_issued:
            for key in self.buffer.undecided(self.buffer.open):
                if key not in self.undeclared:
                    self.buffer.break_group(key, "lost_by_server")
        self.outbox.adopt(self.buffer.life, life)
        self.buffer.adopt(life)
        self.lives_issued += 1
        self.life_lost = False
        self.away_since = time.monotonic()  # it has just answered
        self.condition.notify_all()

    def break_group(self, key: str, why: str) -> None:
        """The server will not decide this group: a freeze that waits for it wakes. Args: key; why, for the set."""
        with self.condition:
            self.buffer.break_group(key, why)
            self.condition.notify_all()

    def drain(self, deadline: float) -> None:
        """Wait until the server has noted every receipt and metric. Args: deadline, a monotonic second."""
        with self.condition:
            while len(self.outbox) and not self.unreachable and (left := deadline - time.monotonic()) > 0:
                self.wake()
                self.condition.wait(min(left, 0.2))

    def set_online(self, online: bool) -> None:
        """Say once when the socket comes and goes. Call under `condition`."""
        if online == self.online:
            return
        self.online = online
        self.away_since = time.monotonic()
        if online:
            log.info("gagar: connected as life %d, mode %s", self.buffer.life, self.mode)
        else:
            log.warning("gagar: no connection; training goes on, undecided groups use local outcome advantages")
        self.condition.notify_all()

    def start_without(self, why: str) -> None:
        """No server at the start: do not wait for it before it has been seen. Call under `condition`."""
        self.away_since = -float("inf")
        log.warning("gagar: no server at the start (%s); the job works on local outcome advantages until it comes", why)

    def set_fatal(self, reason: str) -> None:
        """The server refuses this process for good: tell, and stop asking. Call under `condition`."""
        if self.fatal is None:
            self.fatal = reason
            self.problems.add(
                f"the server refuses this job, it trains on local outcome advantages from now on: {reason}"
            )
        self.set_online(False)
        self.condition.notify_all()

    @property
    def unreachable(self) -> bool:
        """Whether to stop waiting for decisions: refused, or away for longer than a restart takes."""
        return bool(self.fatal) or (not self.online and time.monotonic() - self.away_since > PATIENCE_S)


def restored(run: str, cursor: dict[str, Any] | None) -> Shared:
    """A client's state: new, or as it stood when the cursor was saved, with the receipts that nobody noted since.

    Args:
        run: the run's public id.
        cursor: what `checkpoint` yielded; None at the first start.
    Raises:
        GagarError: the cursor is not one, or is of another run.
    """
    saved = read_cursor(cursor) if cursor is not None else None
    shared = Shared(Buffer(run, saved))
    if saved is not None:
        shared.outbox.restore(saved.unnoted)
        for receipt in pending_receipts(saved):
            shared.outbox.put(receipt)
    return shared
