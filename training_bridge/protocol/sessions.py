"""The server's side of one job's socket, without the socket: no I/O, no clock, no database.

The consumer feeds it texts, carries out what `receive` returns, and sends what `replies` and `pass_on` give.
"""

from collections import Counter
from dataclasses import dataclass
from enum import Enum

from msgspec import structs

from training_bridge.protocol.estimator import check_cap, check_estimator
from training_bridge.protocol.messages import (
    WINDOW,
    CloseCode,
    Durable,
    Error,
    JobMessage,
    Message,
    Metrics,
    Mode,
    Noted,
    ProtocolError,
    Receipt,
    Received,
    Resume,
    Want,
    Welcome,
)
from training_bridge.protocol.wire import decode_from_job, encode


@dataclass(frozen=True)
class StreamFacts:
    """What the caller read from the database to answer a resume.

    Attributes:
        life: the newest life of the run.
        epoch, head_seq: of the run's stream; `head_seq` 0 is an empty stream.
        mode: the mode after row `head_seq`.
        digest: hex sha256 of the stored text of row `resume.after_seq` in `epoch`; None where there is no such row.
        noted: the highest `n` stored for the life of the resume; 0 for none.
        mask_truncated: whether the run leaves truncated rollouts out of its statistics.
        cap: lambda_max of the run's rubric; None for the exact form.
    """

    life: int
    epoch: int
    head_seq: int
    mode: Mode
    digest: str | None
    noted: int
    mask_truncated: bool = False
    cap: float | None = None


@dataclass(frozen=True)
class NewEpoch:
    """The cursor does not belong to this stream. The caller opens a new epoch, whose rows 1..k are the open groups.

    Its number is `above` that of the stream and of the job: after a restore the job may have seen later epochs.
    """

    reason: str
    above: int


class ServerState(Enum):
    """Where a socket stands."""

    AWAITING_RESUME = "awaiting resume"
    ANSWERING = "answering the resume"
    STREAMING = "streaming"
    CLOSED = "closed"


def _misplaced(resume: Resume, facts: StreamFacts) -> str | None:
    """Why the cursor does not belong to the stream, or None. The start of a stream belongs to every epoch."""
    if resume.after_seq == 0:
        return None
    if resume.epoch != facts.epoch:
        return f"cursor of epoch {resume.epoch}, the stream is in epoch {facts.epoch}"
    if resume.after_seq > facts.head_seq:
        return f"cursor at row {resume.after_seq}, the stream ends at row {facts.head_seq}"
    if facts.digest is None or resume.digest != facts.digest:
        return f"row {resume.after_seq} is another one than the job has seen"
    return None


class ServerSession:
    """One socket of one job. Every method may raise `ProtocolError`, after which the session is closed.

    Order of use: `receive` until it returns a `Resume`; `answer` it; then rows by `pass_on` while `room` is above 0,
    and `note` each receipt or metrics message once it is stored. `replies` is what to send, in order, after any call.
    """

    def __init__(self, window: int = WINDOW):
        """Wait for a resume.

        Args:
            window: rows that may be in flight before the job acknowledges one.
        """
        self.state = ServerState.AWAITING_RESUME
        self.window = window
        self.unknown: Counter[str] = Counter()  # fields we ignored, by type.field
        self.life = 0  # of the job, from its resume
        self.sent = 0  # seq of the last row passed on, or the cursor of the resume
        self.acknowledged = 0  # seq up to which the job has the rows in its buffer
        self.durable = 0  # seq up to which a checkpoint on disk covers the rows
        self.taken = 0  # n of the last receipt or metrics message handed to the caller
        self.noted = 0  # n up to which they are stored
        self._resume: Resume | None = None
        self._outdated = 0  # the epoch that was current when we asked for a new one
        self._replies: list[str] = []

    def receive(self, text: str | bytes) -> JobMessage | None:
        """Take one websocket message.

        Args:
            text: as it came.
        Returns:
            What the caller has to carry out: `Resume` (answer it), `Want`, `Durable`, a new `Receipt` or `Metrics`
            (store it, then `note`). None where nothing is left to do: `received`, `error`, and anything seen before.
        Raises:
            ProtocolError: the message is bad, in the wrong state, of a foreign life, out of order or from the future.
        """
        try:
            message = decode_from_job(text, self.unknown)
            if isinstance(message, Error):
                return None
            if isinstance(message, Resume):
                return self._take_resume(message)
            self._require(ServerState.STREAMING, message)
            return self._take(message)
        except ProtocolError:
            self.state = ServerState.CLOSED
            raise

    def answer(self, facts: StreamFacts) -> NewEpoch | None:
        """Decide where the stream starts.

        Args:
            facts: read after the resume came, under the lock of the run's stream row.
        Returns:
            None: the welcome is among the replies and rows after `sent` may follow. `NewEpoch`: open one and call
            again with the facts of the new epoch; the stream then starts at row 1.
        Raises:
            ProtocolError: `FENCED` or `UNKNOWN_LIFE`, the resume is not of the newest life; `ESTIMATOR`, it counts on
                another cap.
        """
        resume = self._resume
        if resume is None or self.state is not ServerState.ANSWERING:
            raise ValueError(f"answer() in state {self.state.value}, expected after a resume was received")
        try:
            check_cap(resume.estimator, facts.cap)
        except ProtocolError as refused:
            raise self._closed(refused) from None
        self.fence(facts.life)
        misplaced = _misplaced(resume, facts)
        if self._outdated and facts.epoch <= self._outdated:
            raise ValueError(f"answer() after NewEpoch with epoch {facts.epoch}, expected one above {self._outdated}")
        if misplaced and not self._outdated:
            self._outdated = max(facts.epoch, resume.epoch)
            return NewEpoch(misplaced, self._outdated)
        self.sent = self.acknowledged = self.durable = 0 if misplaced else resume.after_seq
        self._welcome(resume, facts)
        return None

    def _welcome(self, resume: Resume, facts: StreamFacts) -> None:
        self.taken = self.noted = facts.noted
        self.state = ServerState.STREAMING
        self._reply(
            Welcome(
                epoch=facts.epoch,
                head_seq=facts.head_seq,
                estimator=structs.replace(resume.estimator, cap=facts.cap),
                window=self.window,
                mode=facts.mode,
                mask_truncated=facts.mask_truncated,
                noted=facts.noted,
            )
        )

    @property
    def room(self) -> int:
        """How many rows after `sent` may be sent now; 0 before the welcome and while the window is full."""
        return self.window - (self.sent - self.acknowledged) if self.state is ServerState.STREAMING else 0

    def pass_on(self, seq: int, text: str) -> str:
        """Count one stored row as sent.

        Args:
            seq: the row's.
            text: its stored JSON text.
        Returns:
            The text, to send byte for byte.
        Raises:
            ProtocolError: `GAP`, the row does not follow the last one; `WINDOW`, there is no room for it.
        """
        if self.room <= 0:
            raise self._closed(ProtocolError(f"row {seq}", got="no room", expected="room > 0", code=CloseCode.WINDOW))
        if seq != self.sent + 1:
            raise self._closed(ProtocolError("row", got=seq, expected=self.sent + 1, code=CloseCode.GAP))
        self.sent = seq
        return text

    def note(self, n: int) -> None:
        """Say that every receipt and metrics message up to `n` is stored. Args: n, at most the last one taken."""
        if n > self.taken:
            raise ValueError(f"note({n}), but the job has sent only up to {self.taken}")
        self.noted = max(self.noted, n)
        self._reply(Noted(n=self.noted))

    def fence(self, newest_life: int) -> None:
        """Compare with the newest life of the run; call it whenever that may have changed.

        Raises:
            ProtocolError: `FENCED`, a newer life took over; `UNKNOWN_LIFE`, this one was never issued.
        """
        if self.life != newest_life:
            code = CloseCode.FENCED if self.life < newest_life else CloseCode.UNKNOWN_LIFE
            raise self._closed(ProtocolError("life of the job", got=self.life, expected=newest_life, code=code))

    def replies(self) -> list[str]:
        """What to send now, in order; each text is given once."""
        waiting, self._replies = self._replies, []
        return waiting

    def _take_resume(self, resume: Resume) -> Resume:
        self._require(ServerState.AWAITING_RESUME, resume)
        check_estimator(resume.estimator)
        self._resume, self.life, self.state = resume, resume.life, ServerState.ANSWERING
        return resume

    def _take(self, message: Want | Received | Durable | Receipt | Metrics) -> JobMessage | None:
        match message:
            case Received(seq=seq):
                self._refuse_future("received", seq, self.sent)
                self.acknowledged = max(self.acknowledged, seq)
                return None
            case Durable(seq=seq):
                self._refuse_future("durable", seq, self.acknowledged)
                if seq <= self.durable:
                    return None
                self.durable = seq
            case Want(life=life) if life != self.life:
                raise ProtocolError("want.life", got=life, expected=self.life)
            case Receipt(life=life) if life > self.life:
                raise ProtocolError("receipt.life", got=life, expected=f"at most {self.life}, the life of the job")
        if isinstance(message, Receipt | Metrics):
            return self._take_numbered(message)
        return message

    def _take_numbered(self, message: Receipt | Metrics) -> Receipt | Metrics | None:
        if message.n > self.taken + 1:
            raise ProtocolError("n", got=message.n, expected=self.taken + 1, code=CloseCode.GAP)
        if message.n <= self.taken:
            if message.n <= self.noted:  # the note was lost with an older socket
                self._reply(Noted(n=self.noted))
            return None
        self.taken = message.n
        return message

    def _refuse_future(self, what: str, seq: int, newest: int) -> None:
        if seq > newest:
            raise ProtocolError(f"{what}.seq", got=seq, expected=f"at most {newest}", code=CloseCode.GAP)

    def _require(self, state: ServerState, message: Message) -> None:
        if self.state is not state:
            name = message.__struct_config__.tag
            raise ProtocolError(
                f"message `{name}` while {self.state.value}", got=name, expected=f"it while {state.value}"
            )

    def _closed(self, error: ProtocolError) -> ProtocolError:
        self.state = ServerState.CLOSED
        return error

    def _reply(self, message: Message) -> None:
        self._replies.append(encode(message))
