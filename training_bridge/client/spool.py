"""A bounded store for what cannot be sent yet: in memory, or in a folder of its own that holds only this process's."""

import os
import shutil
import threading
from itertools import count
from pathlib import Path
from tempfile import mkdtemp

MEMORY_BYTES = 512 * 2**20
DISK_BYTES = 32 * 2**30


class SpoolFull(Exception):
    """There is no room; the caller decides what to give up."""


class Spool:
    """Bytes by ticket. What a dead process left is of a fenced life and worthless, so nothing is read back."""

    def __init__(self, folder: Path | None = None, limit_bytes: int | None = None):
        """Make room.

        Args:
            folder: where to write; None keeps everything in memory.
            limit_bytes: room for all that waits; default 512 MiB in memory, 32 GiB on disk.
        Raises:
            OSError: the folder cannot be written.
        """
        self.limit_bytes = limit_bytes or (DISK_BYTES if folder else MEMORY_BYTES)
        self.used_bytes = 0
        self._lock = threading.Lock()
        self._tickets = count(1)
        self._memory: dict[int, bytes] = {}
        self._sizes: dict[int, int] = {}
        self._folder: Path | None = None
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            self._folder = Path(mkdtemp(prefix=f"gagar-{os.getpid()}-", dir=folder))

    def put(self, content: bytes) -> int:
        """Keep bytes.

        Args:
            content: any size.
        Returns:
            The ticket for `get` and `drop`.
        Raises:
            SpoolFull: more than `limit_bytes` would wait, or the disk is full.
        """
        with self._lock:
            if self.used_bytes + len(content) > self.limit_bytes:
                raise SpoolFull(f"{self.used_bytes} bytes wait already, room for {self.limit_bytes}")
            ticket = next(self._tickets)
            self._sizes[ticket] = len(content)
            self.used_bytes += len(content)
        if self._folder is None:
            self._memory[ticket] = content
            return ticket
        try:
            (self._folder / str(ticket)).write_bytes(content)
        except OSError as error:
            self.drop(ticket)
            raise SpoolFull(str(error)) from error
        return ticket

    def get(self, ticket: int) -> bytes:
        """The bytes of a ticket. Raises: KeyError or FileNotFoundError after `drop`."""
        return self._memory[ticket] if self._folder is None else (self._folder / str(ticket)).read_bytes()

    def size(self, ticket: int) -> int:
        """Bytes behind a ticket."""
        return self._sizes[ticket]

    def drop(self, ticket: int) -> None:
        """Forget a ticket; one that is gone already is no error."""
        with self._lock:
            self.used_bytes -= self._sizes.pop(ticket, 0)
        self._memory.pop(ticket, None)
        if self._folder is not None:
            (self._folder / str(ticket)).unlink(missing_ok=True)

    def close(self) -> None:
        """Forget everything."""
        self._memory.clear()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
