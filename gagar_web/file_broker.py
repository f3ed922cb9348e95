"""Kombu's folder-of-files broker, with messages that appear whole.

Its own `_put` writes in place and its `_get` takes no lock: a reader can meet half a message, and the worker dies.
"""

import os
import uuid
from pathlib import Path
from time import time_ns

from kombu.transport import TRANSPORT_ALIASES, filesystem
from kombu.utils.json import dumps

SCHEME = "files"


class Channel(filesystem.Channel):
    def _put(self, queue, payload, **kwargs):
        """Write under a name that no reader looks for, then rename. Wall-clock names keep the order over restarts."""
        final = Path(self.data_folder_out) / f"{time_ns()}_{uuid.uuid4()}.{queue}.msg"
        part = final.with_name(f"{final.name}.part")
        part.write_text(dumps(payload))
        os.replace(part, final)


class Transport(filesystem.Transport):
    Channel = Channel
    # The table of exchanges is the class's own in kombu: one a process.
    global_state = filesystem.Transport.global_state


TRANSPORT_ALIASES[SCHEME] = f"{__name__}:Transport"
