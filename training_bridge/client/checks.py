"""What `gagar-check` looks at: each check says in plain words what it found. Nothing here touches a run's rows."""

import json
import os
import shutil
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx
import msgspec
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection, connect

from training_bridge.client.api import quoted
from training_bridge.client.spool import MEMORY_BYTES
from training_bridge.protocol.messages import SUBPROTOCOL, CloseCode, Error, Estimator, ProtocolError, Resume
from training_bridge.protocol.wire import decode_from_server, encode

NOBODY = 2**31 - 1  # a life that no server has issued: its resume is judged and opens nothing
CALLS = 5
PINGS = 3
SLOW_S = 1.0
SKEW_S = 5.0
LEAST_FREE_BYTES = 2 * 2**30
LOCAL = ("localhost", "127.0.0.1", "::1")
PURPOSES = {"ingest": "trajectories", "train": "acks"}  # purpose to a POST that an empty body cannot satisfy


@dataclass(frozen=True)
class Found:
    """What one check found. `fail`: a run would break; `warn`: it would go on, with what is said."""

    kind: Literal["ok", "warn", "fail"]
    words: str


@dataclass(frozen=True)
class Target:
    """One run on one server, as the trainer would name them."""

    url: str
    run: str
    token: str

    @property
    def api(self) -> str:
        """Where the run's REST calls begin."""
        return f"{self.url.rstrip('/')}/api/v1/runs/{quoted(self.run)}"

    @property
    def headers(self) -> dict[str, str]:
        """The token, where it belongs."""
        return {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}


def check_address(target: Target) -> Iterator[Found]:
    """Whether the URL is one, and whether the token would travel in the clear."""
    parts = urlsplit(target.url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        yield Found("fail", f"the address {target.url!r} is no http://host or https://host")
    elif parts.scheme == "http" and parts.hostname not in LOCAL:
        yield Found("warn", "the address is http: the token travels unencrypted")


def check_rest(target: Target, client: httpx.Client) -> Iterator[Found]:
    """Reach, TLS, token, run, clock and the time of a call. Ends early where nothing further can work."""
    took_s = []
    try:
        for _ in range(CALLS):
            start = time.perf_counter()
            answer = client.get(f"{target.api}/advantages", params={"after": 0})
            took_s.append(time.perf_counter() - start)
    except httpx.TransportError as error:
        yield Found("fail", f"the server does not answer: {type(error).__name__}: {error}")
        return
    if answer.status_code != 200:
        yield Found("fail", f"the server refuses this token for this run: HTTP {answer.status_code}, {said(answer)}")
        return
    if "head_seq" not in json_of(answer):
        yield Found("fail", f"something else answers at this address, expected a Gagar server: {answer.text[:80]!r}")
        return
    middle_s, worst_s = statistics.median(took_s), max(took_s)
    words = f"the server answers in {1000 * middle_s:.0f} ms (median of {CALLS}, worst {1000 * worst_s:.0f} ms)"
    yield Found("ok" if middle_s < SLOW_S else "warn", words)
    yield from check_clock(answer)
    for purpose, path in PURPOSES.items():
        yield check_purpose(client.post(f"{target.api}/{path}", json={}), purpose)


def check_clock(answer: httpx.Response) -> Iterator[Found]:
    """The server's clock against ours; deadlines are the server's own, so a difference only confuses people."""
    try:
        server_s = parsedate_to_datetime(answer.headers["Date"]).timestamp()
    except (KeyError, ValueError):
        yield Found("warn", "the server does not say what time it is")
        return
    apart_s = abs(time.time() - server_s - 0.5)  # the header is cut to whole seconds
    words = f"the clocks are {max(0.0, apart_s - 0.5):.0f} s apart"
    yield Found("ok" if apart_s <= SKEW_S else "warn", words + ("" if apart_s <= SKEW_S else ": set one of them"))


def check_purpose(answer: httpx.Response, purpose: str) -> Found:
    """Whether the token may do this: an empty body is refused for its shape, or for the purpose."""
    if answer.status_code == 403:
        return Found("fail", f"the token lacks the purpose {purpose}: {said(answer)}")
    if answer.status_code in (400, 422):
        return Found("ok", f"the token has the purpose {purpose}")
    return Found(
        "fail", f"an empty post was answered with HTTP {answer.status_code}, expected a refusal: {said(answer)}"
    )


def check_socket(target: Target, estimator: Estimator, hold_s: float) -> Iterator[Found]:
    """Handshake, protocol version, pings, and the estimator by a resume of a life that nobody has."""
    scheme, _, rest = target.url.rstrip("/").partition("://")
    uri = f"{'wss' if scheme == 'https' else 'ws'}://{rest}/ws/v1/runs/{quoted(target.run)}/advantages"
    token = {"Authorization": target.headers["Authorization"]}
    try:
        with connect(uri, subprotocols=[SUBPROTOCOL], additional_headers=token, open_timeout=10) as socket:  # type: ignore[list-item]
            if socket.subprotocol != SUBPROTOCOL:
                words = f"the server speaks {socket.subprotocol}, this client {SUBPROTOCOL}: update one of them"
                yield Found("fail", words)
                return
            yield ping(socket)
            if hold_s:
                yield hold(socket, hold_s)
            yield judge(socket, estimator)
    except InvalidStatus as refused:
        words = "a proxy may not pass websockets on" if refused.response.status_code != 403 else "the token is refused"
        yield Found("fail", f"the websocket was answered with HTTP {refused.response.status_code}: {words}")
    except ConnectionClosed as closed:
        yield Found("fail", closing_words(closed))
    except (OSError, TimeoutError, WebSocketException) as error:
        yield Found("fail", f"the websocket cannot be opened: {type(error).__name__}: {error}")


def ping(socket: ClientConnection) -> Found:
    """Pings that come back: what keeps a socket open through proxies."""
    took_s = []
    for _ in range(PINGS):
        start = time.perf_counter()
        if not socket.ping().wait(10):
            return Found("fail", "the websocket opens, but a ping does not come back within 10 s: a proxy swallows it")
        took_s.append(time.perf_counter() - start)
    return Found("ok", f"the websocket opens ({SUBPROTOCOL}), a ping takes {1000 * statistics.median(took_s):.0f} ms")


def hold(socket: ClientConnection, seconds: float) -> Found:
    """An idle socket, as during a long step: does something on the way cut it?"""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        try:
            socket.recv(timeout=min(left, 20))
        except TimeoutError:
            socket.ping()
    return Found("ok", f"an idle websocket stays open for {seconds:.0f} s")


def judge(socket: ClientConnection, estimator: Estimator) -> Found:
    """What the server says about the estimator, before it says that the life is unknown."""
    socket.send(encode(Resume(life=NOBODY, epoch=0, after_seq=0, estimator=estimator)))
    try:
        message = decode_from_server(socket.recv(timeout=20))
    except ProtocolError as error:
        return Found("fail", f"the server speaks another protocol: {error}")
    code = message.code if isinstance(message, Error) else 0
    if code in (CloseCode.UNKNOWN_LIFE, CloseCode.FENCED):
        return Found("ok", f"the server accepts the estimator ({described(estimator)})")
    if code == CloseCode.ESTIMATOR:
        return Found("fail", f"the server refuses the estimator by name: {message.message}")
    return Found("fail", f"the server answered a resume with {str(message)[:200]}")


def check_spool(folder: Path | None) -> Found:
    """Where uploads would wait while the server is away."""
    if folder is None:
        return Found("ok", f"without --spool up to {MEMORY_BYTES // 2**20} MiB wait in memory while the server is away")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder) as file:
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return Found("fail", f"the spool folder {folder} cannot be written: {error}")
    words = f"the spool folder {folder} can be written, {free / 2**30:.1f} GiB are free"
    return Found("ok" if free >= LEAST_FREE_BYTES else "warn", words)


def closing_words(closed: ConnectionClosed) -> str:
    """A close code in words."""
    if closed.rcvd is None:
        return "the websocket was cut without a word"
    known = {int(code): code.meaning for code in CloseCode}
    return f"the websocket was closed with {closed.rcvd.code}, {known.get(closed.rcvd.code, '')}: {closed.rcvd.reason}"


def described(estimator: Estimator) -> str:
    """The fields that say something."""
    fields = msgspec.structs.asdict(estimator)
    return ", ".join(f"{name} {value}" for name, value in fields.items() if value not in (None, "", False))


def said(answer: httpx.Response) -> str:
    """What a refusal says."""
    body = json_of(answer)
    return ", ".join(str(body[name]) for name in ("what", "got", "expected") if body.get(name)) or answer.text[:120]


def json_of(answer: httpx.Response) -> dict[str, Any]:
    """The answer's object; empty where it is none."""
    try:
        body = answer.json()
    except json.JSONDecodeError:
        return {}
    return body if isinstance(body, dict) else {}
