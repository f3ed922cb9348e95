"""Receipts and metrics of the job: numbered when first sent, sent again until noted. Pure; the caller locks.

`n` is dense per life of the job, and allotted as late as possible, so that what waits for a server can be thinned.
"""

from collections import deque
from collections.abc import Set
from itertools import islice
from typing import Any

import msgspec

from training_bridge.protocol.messages import CloseCode, Metrics, Numbered, ProtocolError, Receipt
from training_bridge.protocol.wire import encode


class Outbox:
    """What one process of the job still has to tell the server. The `n` of a message put here is replaced when sent."""

    def __init__(self, limit: int = 100_000, in_flight: int = 512):
        """Start empty.

        Args:
            limit: messages that may wait un-numbered; above it the oldest metrics go first, then the oldest receipts.
            in_flight: messages that may be sent and not yet noted.
        """
        self.limit, self.in_flight = limit, in_flight
        self.dropped = 0  # messages lost to the limit
        self._receipts: deque[Receipt] = deque()
        self._metrics: deque[Metrics] = deque()
        self._flight: deque[Numbered] = deque()  # numbered, oldest first
        self._sent = 0  # how many of the flight went out on the current socket
        self._next_n = 1

    def __len__(self) -> int:
        return len(self._receipts) + len(self._metrics) + len(self._flight)

    def put(self, message: Numbered) -> None:
        """Queue one message. Args: message, its `n` is not read."""
        (self._receipts if isinstance(message, Receipt) else self._metrics).append(message)
        if len(self._receipts) + len(self._metrics) > self.limit:
            (self._metrics or self._receipts).popleft()
            self.dropped += 1

    def due(self, undeclared: Set[str] = frozenset()) -> list[str]:
        """Number what may go now.

        Args:
            undeclared: groups the server has not heard of yet; their receipts wait, it could not place them.
        Returns:
            Texts to send, in order of `n`: after `rewind` first what is in flight already, then receipts, then metrics,
            until `in_flight` messages are out. Each text is given once per socket.
        """
        early: list[Receipt] = []
        while len(self._flight) < self.in_flight and (self._receipts or self._metrics):
            message = (self._receipts or self._metrics).popleft()
            if isinstance(message, Receipt) and message.group in undeclared:
                early.append(message)
                continue
            self._flight.append(msgspec.structs.replace(message, n=self._next_n))
            self._next_n += 1
        self._receipts.extendleft(reversed(early))
        texts = [encode(message) for message in islice(self._flight, self._sent, None)]
        self._sent = len(self._flight)
        return texts

    def noted(self, n: int) -> None:
        """Forget what is stored.

        Args:
            n: cumulative, of the current life.
        Raises:
            ProtocolError: `GAP`, nothing with this `n` was ever sent.
        """
        if n >= self._next_n:
            raise ProtocolError("noted.n", got=n, expected=f"at most {self._next_n - 1}", code=CloseCode.GAP)
        while self._flight and self._flight[0].n <= n:
            self._flight.popleft()
            self._sent = max(self._sent - 1, 0)

    def settle(self, noted: int) -> int:
        """A new socket says what is stored. Less than before: what follows is numbered anew from there.

        Args:
            noted: cumulative, of the current life.
        Returns:
            How many messages the server had noted and has lost since.
        Raises:
            ProtocolError: `UNKNOWN_LIFE`, nothing with this `n` was ever sent: another process has our life.
        """
        if noted >= self._next_n:
            expected = f"at most {self._next_n - 1}"
            raise ProtocolError("welcome.noted", got=noted, expected=expected, code=CloseCode.UNKNOWN_LIFE)
        self.noted(noted)
        lost = self._next_n - len(self._flight) - 1 - noted
        self._renumber(noted + 1)
        return lost

    def _renumber(self, first_n: int) -> None:
        self._flight = deque(
            msgspec.structs.replace(message, n=n) for n, message in enumerate(self._flight, start=first_n)
        )
        self._next_n = first_n + len(self._flight)

    def rewind(self) -> None:
        """A new socket: send again from the first message that is not noted."""
        self._sent = 0

    def adopt(self, local_life: int, life: int) -> None:
        """The server has issued the life under which this process has worked so far; numbers begin anew with it.

        Args:
            local_life: what stood in for it: a negative number, see `Buffer`, or a life that the server has lost.
            life: the issued one.
        """
        self._receipts, self._flight = (
            deque(
                msgspec.structs.replace(said, life=life)
                if isinstance(said, Receipt) and said.life == local_life
                else said
                for said in queue
            )
            for queue in (self._receipts, self._flight)
        )
        if life != local_life:  # a restored server may issue the number it has lost: the welcome says what it has
            self._renumber(1)
            self.rewind()

    def unnoted(self) -> list[dict[str, Any]]:
        """What a checkpoint must hold: JSON-able messages without `n`, oldest first, for `restore` in a later life."""
        messages = [msgspec.to_builtins(message) for message in (*self._flight, *self._receipts, *self._metrics)]
        return [{key: value for key, value in message.items() if key != "n"} for message in messages]

    def restore(self, unnoted: list[dict[str, Any]]) -> None:
        """Queue what an older life could not tell; it is numbered anew.

        Args:
            unnoted: from `unnoted`. Receipts of a life that no server ever issued (negative) are left out: no server
                has their groups.
        Raises:
            msgspec.ValidationError: the saved messages are not ours.
        """
        for saved in unnoted:
            if saved.get("life", 1) > 0:
                self.put(msgspec.convert({**saved, "n": 1}, type=Receipt | Metrics))
