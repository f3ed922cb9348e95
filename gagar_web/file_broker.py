"""Kombu's folder-of-files broker, with messages and tables that appear whole.

Kombu writes both in place, and readers take no lock or come before it: a worker dies of half a file.
"""

import fcntl
import os
import uuid
from pathlib import Path
from time import time_ns

from kombu.transport import TRANSPORT_ALIASES, filesystem
from kombu.utils.json import dumps

SCHEME = "files"


def _write_whole(final: Path, text: str) -> None:
    """Write under a name that no reader looks for, then rename."""
    part = final.with_name(f"{final.name}.{uuid.uuid4()}.part")
    part.write_text(text)
    os.replace(part, final)


class Channel(filesystem.Channel):
    def _put(self, queue, payload, **kwargs):
        """Names by the wall clock keep the order over restarts."""
        name = f"{time_ns()}_{uuid.uuid4()}.{queue}.msg"
        _write_whole(Path(self.data_folder_out) / name, dumps(payload))

    def _queue_bind(self, exchange, routing_key, pattern, queue):
        """Add one line to the exchange's table; of two processes that bind at once, one waits."""
        file = self._exchange_file(exchange)
        bound = filesystem.exchange_queue_t(routing_key or "", pattern or "", queue or "")
        with open(file.with_name(f"{file.name}.lock"), "w") as guard:
            fcntl.flock(guard, fcntl.LOCK_EX)
            table = self.get_table(exchange)
            if bound not in table:
                _write_whole(file, dumps([bound, *table]))


class Transport(filesystem.Transport):
    Channel = Channel


TRANSPORT_ALIASES[SCHEME] = f"{__name__}:Transport"
