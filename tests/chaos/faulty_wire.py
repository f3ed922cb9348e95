"""A TCP wire between a job and a server that fails as networks do: cut, vanished, stalled, or with a message lost.

It reads the job's socket frame by frame, so that a fault can strike a message of its choice.
"""

import re
import select
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from tests.conftest import wait_for

LOOK_S = 0.05
TYPE = re.compile(rb'"type":"(\w+)"')
RESET = struct.pack("ii", 1, 0)  # close sends RST instead of FIN


class Link:
    """One connection: `near` is the job's end, `far` the server's."""

    def __init__(self, near: socket.socket, far: socket.socket, *, is_stream: bool):
        self.near, self.far, self.is_stream = near, far, is_stream
        self.dead = False

    def reset(self, *ends: socket.socket) -> None:
        """RST to the ends given, to both by default; one that is not given stays open and never says a word."""
        self.dead = True
        for end in ends or (self.near, self.far):
            with suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            with suppress(OSError):
                end.close()


class FaultyWire:
    """Listens on `port` and joins to `target`. `fault` sees each message: (up or down, type) -> pass or lose."""

    def __init__(self, target: int):
        self.target = target
        self.fault: Callable[[str, str], str] = lambda way, kind: "pass"
        self.seen: Counter[str] = Counter()  # messages that passed, by type
        self.lost: Counter[str] = Counter()
        self.streams = 0
        self.flow = {"up": threading.Event(), "down": threading.Event()}  # of the job's socket
        self.release()
        self._links: list[Link] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def hold(self, *ways: str) -> None:
        """Read the job's socket no further in these ways, so that the kernel's buffers fill."""
        for way in ways:
            self.flow[way].clear()

    def release(self) -> None:
        for flow in self.flow.values():
            flow.set()

    def cut(self) -> None:
        """RST at both ends of every connection, REST too."""
        for link in self._alive():
            link.reset()

    def vanish(self) -> None:
        """The job's machine loses its route: its own ends fail, the server's stay open and silent."""
        for link in self._alive():
            link.reset(link.near)

    def wait_for(self, kind: str, more: int, *, unless: Callable[[], bool] = lambda: False) -> bool:
        """Wait until so many more messages of a type have passed. False: it ended before."""
        until = self.seen[kind] + more
        wait_for(lambda: self.seen[kind] >= until or unless(), within_s=240, every_s=0.005)
        return self.seen[kind] >= until

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.release()
        for link in self._links:
            link.reset()

    def _alive(self) -> list[Link]:
        return [link for link in self._links if not link.dead]

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._join, args=(near,), daemon=True).start()

    def _join(self, near: socket.socket) -> None:
        try:
            near.settimeout(60)
            head = near.recv(65536)
            far = socket.create_connection(("127.0.0.1", self.target), timeout=60)
        except OSError:
            near.close()
            return
        link = Link(near, far, is_stream=b" /ws/" in head.split(b"\r\n", 1)[0])
        if link.is_stream:
            self.streams += 1
            # Frames are read here, so they travel as they are.
            head = re.sub(rb"(?i)\r\nsec-websocket-extensions:[^\r]*", b"", head)
        self._links.append(link)
        with suppress(OSError):
            far.sendall(head)
        threading.Thread(target=self._pump, args=(link, "down"), daemon=True).start()
        self._pump(link, "up")

    def _pump(self, link: Link, way: str) -> None:
        source, target = (link.near, link.far) if way == "up" else (link.far, link.near)
        frames = Frames(skip_head=way == "down")
        with suppress(OSError, ValueError):  # an end was closed
            while not link.dead:
                if link.is_stream and not self.flow[way].wait(LOOK_S):
                    continue
                if not select.select([source], [], [], LOOK_S)[0]:
                    continue
                chunk = source.recv(65536)
                if not chunk:
                    link.dead = True
                    target.shutdown(socket.SHUT_WR)
                    break
                for raw, text in frames.split(chunk) if link.is_stream else [(chunk, None)]:
                    if not self._carry(link, way, raw, text, target):
                        return

    def _carry(self, link: Link, way: str, raw: bytes, text: bytes | None, target: socket.socket) -> bool:
        kind = TYPE.search(text) if text else None
        name = kind[1].decode() if kind else ""
        if name and self.fault(way, name) == "lose":
            self.lost[name] += 1
            link.reset()  # TCP loses a message only together with its connection
            return False
        target.sendall(raw)
        if name:
            self.seen[name] += 1
        return True


class Frames:
    """Cuts a byte stream into websocket frames; yields the raw bytes, and the text of a text frame."""

    def __init__(self, *, skip_head: bool):
        self.skipping, self.rest = skip_head, b""

    def split(self, chunk: bytes) -> list[tuple[bytes, bytes | None]]:
        self.rest += chunk
        found = []
        if self.skipping:
            head, end, after = self.rest.partition(b"\r\n\r\n")
            if not end:
                return []
            found.append((head + end, None))
            self.skipping, self.rest = False, after
        while (frame := self._frame()) is not None:
            found.append(frame)
        return found

    def _frame(self) -> tuple[bytes, bytes | None] | None:
        data = self.rest
        if len(data) < 2:
            return None
        size, at = data[1] & 127, 2
        if size >= 126:
            width = 2 if size == 126 else 8
            if len(data) < at + width:
                return None
            size, at = int.from_bytes(data[at : at + width]), at + width
        mask = b""
        if data[1] & 128:
            mask, at = data[at : at + 4], at + 4
        if len(data) < at + size:
            return None
        raw, self.rest = data[: at + size], data[at + size :]
        if data[0] & 15 != 1:
            return raw, None
        body = raw[at:]
        if mask:
            key = (mask * (size // 4 + 1))[:size]
            body = (int.from_bytes(body) ^ int.from_bytes(key)).to_bytes(size)
        return raw, body
