"""The job's side of one socket, without the socket: where the job stands, what follows, what to send. Pure."""

from collections import Counter
from collections.abc import Set
from dataclasses import dataclass

from training_bridge.protocol.messages import (
    CloseCode,
    Control,
    Durable,
    Error,
    Estimator,
    Mode,
    Noted,
    ProtocolError,
    Received,
    Resume,
    Row,
    Want,
    Welcome,
)
from training_bridge.protocol.outbox import Outbox
from training_bridge.protocol.wire import decode_from_server, digest_of, encode


@dataclass(frozen=True)
class Position:
    """The last row of the stream that the job holds: its epoch, seq and the hex sha256 of its text.

    The start is (0, 0, None): a job that has seen nothing knows no epoch.
    """

    epoch: int = 0
    seq: int = 0
    digest: str | None = None


class ClientSession:
    """One socket of one life. A `ProtocolError` means: tell the server, close, come back with a new session."""

    def __init__(self, *, life: int, position: Position, estimator: Estimator, outbox: Outbox):
        """Stand where the last session ended.

        Args:
            life: issued by the server for this process.
            position: of the last row held, from the last session or from the checkpoint.
            estimator: how the trainer centres and normalises.
            outbox: receipts and metrics, shared by all sessions of the process.
        """
        self.life, self.position, self.estimator, self.outbox = life, position, estimator, outbox
        self.welcome: Welcome | None = None
        self.mode: Mode = "normal"
        self.unknown: Counter[str] = Counter()  # fields we ignored, by type.field
        self.outbox_lost = 0  # messages that the server had noted and lost, as its welcome said
        self._told_received = 0
        self._told_durable = 0
        self._wants: list[tuple[tuple[str, ...], float]] = []
        outbox.rewind()

    def hello(self) -> str:
        """The first message of the socket."""
        at = self.position
        return encode(
            Resume(life=self.life, epoch=at.epoch, after_seq=at.seq, digest=at.digest, estimator=self.estimator)
        )

    def receive(self, text: str | bytes) -> Welcome | Row | None:
        """Take one websocket message.

        Args:
            text: as it came.
        Returns:
            A row that follows the last one (`position` and `mode` are already past it), the welcome, or None: a note,
            or a row seen before.
        Raises:
            ProtocolError: the message is bad, comes before the welcome, leaves a gap, notes what was never sent, or is
                the server's `error`, with its code.
        """
        message = decode_from_server(text, self.unknown)
        if isinstance(message, Error):
            raise ProtocolError(
                "the server refused", got=message.message, expected="no error", code=_code(message.code)
            )
        if isinstance(message, Welcome):
            return self._take_welcome(message)
        if self.welcome is None:
            raise ProtocolError("first message", got=type(message).__name__, expected="Welcome")
        if isinstance(message, Noted):
            self.outbox.noted(message.n)
            return None
        return self._take_row(message, text if isinstance(text, str) else text.decode())

    def want(self, groups: tuple[str, ...], within_s: float) -> None:
        """Ask for decisions.

        Args:
            groups: keys of groups of this life.
            within_s: seconds from the server's reading of the message.
        """
        self._wants.append((groups, within_s))

    def due(self, durable: int = 0, undeclared: Set[str] = frozenset()) -> list[str]:
        """What to send now.

        Args:
            durable: every row of the current epoch up to this seq is in a checkpoint on disk; 0 for none.
            undeclared: groups the server has not heard of yet, see `Outbox.due`.
        Returns:
            Texts in order; nothing before the welcome. Each is given once per socket.
        """
        if self.welcome is None:
            return []
        texts = []
        if self.position.seq > self._told_received:
            self._told_received = self.position.seq
            texts.append(encode(Received(seq=self._told_received)))
        if self._told_durable < durable <= self.position.seq:
            self._told_durable = durable
            texts.append(encode(Durable(seq=durable)))
        wants, self._wants = self._wants, []
        texts += [encode(Want(life=self.life, groups=groups, within_s=within_s)) for groups, within_s in wants]
        return texts + self.outbox.due(undeclared)

    def _take_welcome(self, welcome: Welcome) -> Welcome:
        if self.welcome is not None:
            raise ProtocolError("second welcome", got="welcome", expected="rows and notes")
        if welcome.noted is not None:
            self.outbox_lost = self.outbox.settle(welcome.noted)
        self.welcome, self.mode = welcome, welcome.mode
        if welcome.epoch != self.position.epoch or welcome.head_seq < self.position.seq:
            self.position = Position(welcome.epoch)
        self._told_received = self.position.seq
        return welcome

    def _take_row(self, row: Row, text: str) -> Row | None:
        if row.seq <= self.position.seq:
            return None
        if row.seq != self.position.seq + 1:
            raise ProtocolError("row", got=row.seq, expected=self.position.seq + 1, code=CloseCode.GAP)
        self.position = Position(self.position.epoch, row.seq, digest_of(text))
        if isinstance(row, Control) and self.welcome is not None and row.seq > self.welcome.head_seq:
            self.mode = row.mode  # up to head_seq the welcome has told the outcome of all controls
        return row


def _code(code: int) -> CloseCode:
    try:
        return CloseCode(code)
    except ValueError:
        return CloseCode.BAD_MESSAGE
