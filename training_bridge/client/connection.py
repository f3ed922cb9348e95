"""The socket of the job: a thread with its own event loop, because a GPU step blocks the main thread for minutes."""

import asyncio
import threading
import time
from contextlib import suppress
from typing import Any

from msgspec import structs
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from training_bridge.client.api import quoted
from training_bridge.client.shared import Backoff, Shared, log
from training_bridge.protocol.client_session import ClientSession
from training_bridge.protocol.messages import (
    FATAL,
    SUBPROTOCOL,
    Advantages,
    CloseCode,
    Control,
    Error,
    Estimator,
    ProtocolError,
    Welcome,
)
from training_bridge.protocol.wire import encode

MAX_BYTES = 2**20  # the server stays under 256 KiB; the library's own default would close with 1009 at 1 MiB as well
DEFAULTS = structs.asdict(Estimator())
JUDGED = {*DEFAULTS} - {"name", "loss", "shaped"}
REFUSALS = 3  # handshakes refused in a row before we believe it: a proxy may say 403 while it is being deployed


class Connection:
    """Keeps one socket open for the life of the process, resumes where the buffer stands, stops on a fatal code."""

    def __init__(self, url: str, run: str, token: str, estimator: Estimator, shared: Shared):
        """Prepare; `start` runs the thread.

        Args:
            url: of the server, http or https.
            run: public id.
            token: sent in `Authorization`, never in the URL.
            estimator: what the resume names.
            shared: buffer and outbox, under its condition.
        """
        scheme, _, rest = url.rstrip("/").partition("://")
        self._uri = f"{'wss' if scheme == 'https' else 'ws'}://{rest}/ws/v1/runs/{quoted(run)}/advantages"
        self._token, self._estimator, self._shared = token, estimator, shared
        self._loop: asyncio.AbstractEventLoop | None = None
        self._socket: ClientConnection | None = None
        self._closing: asyncio.Future | None = None  # kept, or it might be collected while it runs
        self._due = asyncio.Event()
        self._stopping = False
        self._refusals = 0
        self._issued = 0  # the life of the newest session, counted as in `Shared.lives_issued`
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="gagar-socket", daemon=True)

    def describe(self, known: dict[str, Any]) -> None:
        """Name what the trainer does, where nobody did yet; what may be refused is told at once. From any thread."""
        fresh = {name: value for name, value in known.items() if getattr(self._estimator, name) == DEFAULTS[name]}
        changed = {name for name, value in fresh.items() if value != DEFAULTS[name]}
        self._estimator = structs.replace(self._estimator, **fresh)
        if changed & JUDGED and self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed: the thread has ended
                self._loop.call_soon_threadsafe(self._resume_anew)

    def _resume_anew(self) -> None:
        if self._socket is not None:
            self._closing = asyncio.ensure_future(self._socket.close())

    def start(self) -> None:
        """Run the thread. Needs the life."""
        self._thread.start()

    def wake(self) -> None:
        """Something may be due: an acknowledgement, a want, a receipt. From any thread."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed: the thread has ended
                self._loop.call_soon_threadsafe(self._due.set)

    def stop(self) -> None:
        """Close the socket and end the thread."""
        self._stopping = True
        self.wake()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        backoff = Backoff()
        while not self._stopping and not self._shared.fatal:
            before, since = self._shared.buffer.position, time.monotonic()
            try:
                await self._hold_socket()
            except (OSError, TimeoutError, WebSocketException, ProtocolError) as error:
                self._judge(error)
            except Exception:
                self._shared.problems.add("the socket thread failed and reconnects; see the log")
                log.exception("gagar: socket")
            if self._stopping:  # the end is no loss: nothing to say
                self._shared.online = False
                return
            with self._shared.condition:
                self._shared.set_online(False)
            if self._shared.buffer.position != before or time.monotonic() - since > 30:
                backoff.reset()  # the socket did its work; else a row we cannot read would make us spin
            await self._pause(backoff.next_s())

    async def _hold_socket(self) -> None:
        async with connect(
            self._uri,
            subprotocols=[SUBPROTOCOL],  # type: ignore[list-item]
            additional_headers={"Authorization": f"Bearer {self._token}"},
            max_size=MAX_BYTES,
            open_timeout=10,
            ping_interval=20,
            ping_timeout=60,
            close_timeout=2,
        ) as socket:
            self._refusals = 0
            if socket.subprotocol != SUBPROTOCOL:
                raise ProtocolError("subprotocol", got=socket.subprotocol, expected=SUBPROTOCOL)
            self._socket = socket  # before the estimator is read: who describes it later closes this one
            session = self._new_session()
            await socket.send(session.hello())
            sender = asyncio.create_task(self._send_due(socket, session))
            try:
                async for text in socket:
                    self._take(session, text)
                    self._due.set()
                await socket.recv()  # raises with the code of a clean close too
            except ProtocolError as error:
                await self._refuse(socket, error)
                raise
            finally:
                self._socket = None
                sender.cancel()

    def _new_session(self) -> ClientSession:
        with self._shared.condition:
            buffer, self._issued = self._shared.buffer, self._shared.lives_issued
            return ClientSession(
                life=buffer.life, position=buffer.position, estimator=self._estimator, outbox=self._shared.outbox
            )

    def _take(self, session: ClientSession, text: str | bytes) -> None:
        shared = self._shared
        with shared.condition:
            if session.life != shared.buffer.life:
                raise ProtocolError("life", got=session.life, expected=shared.buffer.life, code=CloseCode.RESTART)
            message = session.receive(text)
            shared.mode = session.mode
            if isinstance(message, Welcome):
                if session.outbox_lost:
                    log.warning("gagar: a restored server has lost %d noted messages", session.outbox_lost)
                    for receipt in shared.buffer.retell(session.outbox_lost):
                        shared.outbox.put(receipt)
                shared.buffer.position = session.position
                shared.buffer.mask_truncated = message.mask_truncated
                shared.set_online(True)
            elif isinstance(message, Advantages):
                for receipt in shared.buffer.take(message, session.position):
                    shared.outbox.put(receipt)
            elif isinstance(message, Control):
                shared.buffer.position = session.position
                log.warning("gagar: the run is in mode %s (%s)", session.mode, message.reason)
            shared.condition.notify_all()

    async def _send_due(self, socket: ClientConnection, session: ClientSession) -> None:
        told: set[int] = set()  # wants: one may have been lost with the last socket, so each socket tells them anew
        try:
            while not self._stopping:
                await self._due.wait()
                self._due.clear()
                with self._shared.condition:
                    texts = self._due_texts(session, told)
                for text in texts:
                    await socket.send(text)
        except ConnectionClosed:
            return
        except Exception:
            log.exception("gagar: socket, sending")
        await socket.close()  # a socket that cannot send must not look alive

    def _due_texts(self, session: ClientSession, told: set[int]) -> list[str]:
        if session.life != self._shared.buffer.life:
            return []  # a new one was issued: this socket ends with the next message
        now = time.monotonic()
        for number, (groups, deadline) in self._shared.wants.items():
            if number not in told and deadline > now:
                told.add(number)
                session.want(groups, deadline - now)
        epoch, seq = self._shared.durable
        return session.due(seq if epoch == session.position.epoch else 0, self._shared.undeclared)

    async def _refuse(self, socket: ClientConnection, error: ProtocolError) -> None:
        with suppress(ConnectionClosed):
            await socket.send(encode(Error(code=int(error.code), message=str(error))))
            await socket.close(int(error.code), error.reason)

    def _judge(self, error: Exception) -> None:
        """Stop for good, tell a person, or come back quietly."""
        code, reason = None, str(error)
        if isinstance(error, ConnectionClosed) and error.rcvd is not None:
            code, reason = error.rcvd.code, error.rcvd.reason
        elif isinstance(error, ProtocolError):
            code = error.code
        elif isinstance(error, InvalidStatus) and error.response.status_code in (401, 403):
            self._refusals += 1
            code = CloseCode.REFUSED if self._refusals >= REFUSALS else None
        with self._shared.condition:  # another life may be on its way, or have come while this socket closed
            renewed = self._shared.life_lost or self._issued != self._shared.lives_issued
            self._shared.life_lost |= code == CloseCode.UNKNOWN_LIFE and not renewed
        if code == CloseCode.UNKNOWN_LIFE:
            self._shared.wake_uploads()
        elif code == CloseCode.FENCED and renewed:
            log.debug("gagar: the life before was fenced by our own new one")
        elif code in FATAL:
            with self._shared.condition:
                self._shared.set_fatal(f"{int(code)}, {CloseCode(code).meaning}: {reason}")
        elif code in set(CloseCode) - {CloseCode.RESTART}:
            self._shared.problems.add(f"the socket was closed with {int(code)} and reconnects: {reason}")
        else:
            log.debug("gagar: socket lost: %r", error)

    async def _pause(self, seconds: float) -> None:
        """Wait before the next try, unless the client is being closed."""
        deadline = time.monotonic() + seconds
        issued = self._shared.lives_issued
        while not self._stopping and not self._shared.fatal and (left := deadline - time.monotonic()) > 0:
            if self._shared.lives_issued != issued:
                return
            self._due.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._due.wait(), left)
