"""Everything in one command: web and websockets here, the Celery worker (and a demo's job) as supervised children."""

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn
from channels.layers import get_channel_layer
from django.conf import settings

from gagar_web.relay import ThreadSafeInMemoryChannelLayer, open_relay

log = logging.getLogger("gagar")
PR_SET_PDEATHSIG = 1
STOP_WITHIN_S = 20
RESTART_AFTER_S = 1.0


def _die_with_parent() -> None:
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

    def start(self) -> None:
        # Its own session: a terminal's Ctrl-C reaches us alone, and we stop the children in order.
        # preexec_fn forks from a process with threads; the hook only makes one system call.
        self.process = subprocess.Popen(
            self.command,
            env=os.environ | self.env,
            start_new_session=True,
            preexec_fn=_die_with_parent,  # noqa: PLW1509
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
                log.warning("%s ended with status %s: starting it again", self.name, status)
                await asyncio.sleep(RESTART_AFTER_S)
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


async def serve(host: str, port: int, children: list[Child]) -> None:
    """Run until Ctrl-C, SIGTERM, or until a child that may end has ended well."""
    from gagar_web.asgi import application

    config = uvicorn.Config(
        application, host=host, port=port, lifespan="off", log_level="warning", ws_max_size=2**20,
        timeout_graceful_shutdown=5,
    )  # fmt: skip
    server = uvicorn.Server(config)
    relay = None
    if isinstance(layer := get_channel_layer(), ThreadSafeInMemoryChannelLayer):
        ThreadSafeInMemoryChannelLayer.home = asyncio.get_running_loop()
        address = Path(settings.GAGAR_DATA_DIR) / "relay.sock"
        relay = await open_relay(address, layer)
        for child in children:
            child.env["GAGAR_RELAY"] = str(address)
    for child in children:
        child.start()
    watching = [asyncio.create_task(_watch(child, server)) for child in children]
    try:
        await server.serve()
    finally:
        for task in watching:
            task.cancel()
        print("stopping: the worker finishes what it holds (a few seconds)", flush=True)
        for child in reversed(children):  # the job first, while the worker still drains
            await child.stop()
        if relay:
            relay.close()
        ThreadSafeInMemoryChannelLayer.home = None


async def _watch(child: Child, server: uvicorn.Server) -> None:
    await child.supervise()
    server.should_exit = True


def run(host: str, port: int, children: list[Child]) -> None:
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises the captured Ctrl-C again after its own clean stop
        asyncio.run(serve(host, port, children))
