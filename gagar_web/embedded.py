"""Everything in one command: web and websockets here, the Celery worker (and a demo's job) as supervised children."""

import asyncio
import contextlib
import ctypes
import fcntl
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn
from channels.layers import get_channel_layer
from django.conf import settings
from django.core.management.base import CommandError

from gagar_web.relay import ThreadSafeInMemoryChannelLayer, open_relay
from grading.grader import claims

log = logging.getLogger("gagar")
PR_SET_PDEATHSIG = 1
STOP_WITHIN_S = 20
RESTART_AFTER_S, RESTART_AT_MOST_S = 1.0, 30.0
STEADY_AFTER_S = 10.0  # a child that lived longer did not fail at its start
SOCKET_FOLDER_BYTES = 90  # a socket's whole path may have about 100


def die_with_parent() -> None:
    """A SIGKILLed server must not leave its children behind (Linux; elsewhere leases run out)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


@dataclass
class Child:
    """A process that is started again when it dies, until it ends well or we stop."""

    name: str
    command: list[str]
    env: dict[str, str] = field(default_factory=dict)
    ends: bool = False  # exit status 0 means done, not died
    process: subprocess.Popen | None = None
    has_ended: bool = False  # by itself, and well
    started_at: float = 0.0
    wait_s: float = RESTART_AFTER_S / 2

    def start(self) -> None:
        self.started_at = time.monotonic()
        # Its own session: a terminal's Ctrl-C reaches us alone, and we stop the children in order.
        # preexec_fn forks from a process with threads; the hook only makes one system call.
        self.process = subprocess.Popen(
            self.command,
            env=os.environ | self.env,
            start_new_session=True,
            preexec_fn=die_with_parent,  # noqa: PLW1509
        )

    async def supervise(self) -> None:
        """Return once a child that may end has ended well. The loop's thread starts it: PDEATHSIG is a thread's."""
        while True:
            status = self.process.poll()
            if status is None:
                await asyncio.sleep(0.1)
            elif status == 0 and self.ends:
                self.has_ended = True
                return
            else:
                # One that fails at once, again and again, is tried ever more rarely, and says so each time.
                lived_long = time.monotonic() - self.started_at > STEADY_AFTER_S
                self.wait_s = RESTART_AFTER_S if lived_long else min(self.wait_s * 2, RESTART_AT_MOST_S)
                log.warning("%s ended with status %s: starting it again in %g s", self.name, status, self.wait_s)
                await asyncio.sleep(self.wait_s)
                self.start()

    async def stop(self) -> None:
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        for _ in range(STOP_WITHIN_S * 10):
            if self.process.poll() is not None:
                return
            await asyncio.sleep(0.1)
        log.warning("%s did not stop within %s s: killed; its leases run out by themselves", self.name, STOP_WITHIN_S)
        self.kill()
        self.process.wait()

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()


def worker(concurrency: int) -> Child:
    """The Celery worker with its clock (beat): sweeps every 2 s."""
    command = [
        sys.executable,
        "-m",
        "celery",
        "--quiet",
        "-A",
        "gagar_web",
        "worker",
        "--beat",
        "--loglevel",
        "WARNING",
    ]
    command += ["--concurrency", str(concurrency), "--without-gossip", "--without-mingle", "--without-heartbeat"]
    return Child("worker", command)


def graders() -> list[Child]:
    """The process that asks models; none where there is no endpoint to ask."""
    if not claims.has_endpoint():
        return []
    return [Child("grader", [sys.executable, str(settings.BASE_DIR / "manage.py"), "grade"])]


class Server(uvicorn.Server):
    """Signals are ours: uvicorn closes the port first and raises them again, before a child has stopped."""

    @contextlib.contextmanager
    def capture_signals(self):
        yield


@contextlib.contextmanager
def place(host: str, port: int) -> Iterator[socket.socket]:
    """The port and the data folder are ours until the end; taken before a row is written. A Ctrl-C just ends it."""
    folder = Path(settings.GAGAR_DATA_DIR)
    with (folder / "server.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CommandError(
                f"another server runs on the folder {folder}, expected none: stop it, or set GAGAR_DATA_DIR to another"
            ) from None
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            listening = socket.create_server((host, port), family=family)
            # asyncio sets this only on sockets that name their protocol. Without it the second part of an answer, or a
            # row on the wire, waits up to 40 ms for the other side's acknowledgement of the first. Inherited at accept.
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except (OSError, OverflowError) as refused:
            raise CommandError(
                f"cannot listen on port {port} of {host} ({refused}), expected a "
                "free one: stop what listens there, or choose another with --port (make: PORT=)"
            ) from None
        with listening, contextlib.suppress(KeyboardInterrupt):
            yield listening


@contextlib.asynccontextmanager
async def _relay(children: list[Child]):
    """In one process with its children, doorbells pass through a unix socket; Redis needs none."""
    if not isinstance(layer := get_channel_layer(), ThreadSafeInMemoryChannelLayer):
        yield
        return
    ThreadSafeInMemoryChannelLayer.home = asyncio.get_running_loop()
    with contextlib.ExitStack() as stack:
        folder = Path(settings.GAGAR_DATA_DIR)
        if len(os.fsencode(folder)) > SOCKET_FOLDER_BYTES:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gagar-")))
        address = folder / "relay.sock"
        relay = await open_relay(address, layer)
        for child in children:
            child.env["GAGAR_RELAY"] = str(address)
        try:
            yield
        finally:
            relay.close()
            ThreadSafeInMemoryChannelLayer.home = None


async def _stop(children: Iterable[Child]) -> None:
    for child in children:
        await child.stop()


def _told(server: Server, children: list[Child]) -> asyncio.Event:
    """Set by the first Ctrl-C or SIGTERM. The second one kills the children: rows and checkpoints bear that."""
    told = asyncio.Event()

    def tell() -> None:
        if told.is_set():
            server.force_exit = True
            for child in children:
                child.kill()
        told.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, tell)
    return told


async def serve(listening: socket.socket, children: list[Child]) -> None:
    """Run until Ctrl-C, SIGTERM, or until a child that may end has ended well."""
    from gagar_web.asgi import application

    config = uvicorn.Config(
        application, lifespan="off", log_level="warning", ws_max_size=2**20, timeout_graceful_shutdown=5
    )
    server = Server(config)
    told = _told(server, children)
    async with _relay(children):
        for child in children:
            child.start()
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        watching = [asyncio.create_task(what) for what in (told.wait(), *(child.supervise() for child in children))]
        done, _ = await asyncio.wait([serving, *watching], return_when=asyncio.FIRST_COMPLETED)
        for task in watching:
            task.cancel()
        print("stopping: the worker finishes what it holds (a few seconds; Ctrl-C again: at once)", flush=True)
        await _stop(child for child in children if child.ends)  # the job's last words still find an open port
        server.should_exit = True
        await serving
        await _stop(children)
        for task in done:
            task.result()


def run(listening: socket.socket, children: list[Child]) -> None:
    asyncio.run(serve(listening, children))
