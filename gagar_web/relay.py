"""Channel layers for the embedded server: one process serves, its children ring through a unix socket."""

import asyncio
import json
import logging
import os
import socket
import threading
from pathlib import Path

from channels.layers import BaseChannelLayer, InMemoryChannelLayer

log = logging.getLogger(__name__)
LINE_LIMIT = 2**20


class ThreadSafeInMemoryChannelLayer(InMemoryChannelLayer):
    """Sends run on the server's event loop, whichever thread or loop calls."""

    home: asyncio.AbstractEventLoop | None = None  # one server a process: `serve` sets it

    async def _at_home(self, send, *args):
        home = type(self).home
        if home is None or home is asyncio.get_running_loop():
            return await send(*args)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(send(*args), home))

    async def send(self, channel, message):
        return await self._at_home(super().send, channel, message)

    async def group_send(self, group, message):
        return await self._at_home(super().group_send, group, message)


async def open_relay(path: Path, layer) -> asyncio.AbstractServer:
    """Listen on a socket only this user may open, and pass each line on to the layer."""

    async def pass_on(reader, writer):
        try:
            while line := await reader.readline():
                kind, name, message = json.loads(line)
                await (layer.group_send if kind == "group" else layer.send)(name, message)
        except (ValueError, OSError):
            log.exception("relay: a child sent a line we cannot read")
        finally:
            writer.close()

    path.unlink(missing_ok=True)
    server = await asyncio.start_unix_server(pass_on, path, limit=LINE_LIMIT)
    path.chmod(0o600)
    return server


class RelayClientLayer(BaseChannelLayer):
    """The child's side. A push that fails is dropped: the row is the truth, the sweep finds it."""

    extensions = ["groups"]

    def __init__(self, address, **kwargs):
        super().__init__(**kwargs)
        self.address, self.lock = address, threading.Lock()
        self.socket, self.owner = None, None

    def _put(self, item) -> None:
        line = json.dumps(item).encode() + b"\n"
        with self.lock:
            for last in (False, True):
                try:
                    self._connect()
                    return self.socket.sendall(line)
                except OSError:
                    self.socket = None
                    if last:
                        log.warning("relay: the server does not listen at %s", self.address)

    def _connect(self) -> None:
        if self.socket is None or self.owner != os.getpid():  # a fork must not share its parent's socket
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.socket.settimeout(5)
            self.socket.connect(self.address)
            self.owner = os.getpid()

    async def send(self, channel, message):
        self._put(["channel", channel, message])

    async def group_send(self, group, message):
        self._put(["group", group, message])
