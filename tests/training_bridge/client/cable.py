"""A network cable between a client and the little server, for tests to cut."""

import socket
import threading
from contextlib import suppress


class Cable:
    """One TCP port before two servers; it can be cut, and plugged in again at the same port."""

    def __init__(self, http_port: int, socket_port: int):
        self._ports = {"http": http_port, "socket": socket_port}
        self._pairs: set[socket.socket] = set()
        self._listener: socket.socket | None = None
        self.port = 0

    def plug(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=64)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def unplug(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.cut()

    def cut(self) -> None:
        for one in list(self._pairs):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._join, args=(near,), daemon=True).start()

    def _join(self, near: socket.socket) -> None:
        with near, suppress(OSError):
            first = near.recv(4096, socket.MSG_PEEK)
            far = socket.create_connection(("127.0.0.1", self._ports["socket" if b" /ws/" in first else "http"]))
            with far:
                self._pairs |= {near, far}
                back = threading.Thread(target=_pump, args=(far, near), daemon=True)
                back.start()
                _pump(near, far)
                back.join()
                self._pairs -= {near, far}


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while chunk := source.recv(65536):
            target.sendall(chunk)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
