"""What the job's thread, the upload thread and the socket thread share, under one condition."""

import logging
import random
import threading
import time
from collections import deque
from collections.abc import Callable

from training_bridge.client.buffer import Buffer
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
        wake: tells the socket thread that something is due.
        away_since: monotonic second since which there is no socket; of no meaning while online.
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
        self.problems = Problems()
        self.away_since = time.monotonic()

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
