"""Where the sockets' steps touch rows: threads beside the event loop, whose SQLite connections stay open."""

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from channels.db import database_sync_to_async
from django.db import connection

THREADS = 4  # each keeps a connection with a page cache of its own; SQLite writes one at a time anyway
_seen = threading.local()
_threads = ThreadPoolExecutor(THREADS, thread_name_prefix="gagar-rows")


def rows(step: Callable[..., Any]) -> Callable[..., Any]:
    """Run a step that reads or writes rows outside the event loop.

    To open SQLite (its pragmas included) costs as much as a query or two, several times an approval. A pool of
    PostgreSQL connections makes opening cheap, and must get its connections back.
    """
    if connection.vendor != "sqlite":
        return database_sync_to_async(step, thread_sensitive=False)

    async def call(*arguments: Any, **named: Any) -> Any:
        work = partial(_on_a_sound_connection, step, *arguments, **named)
        return await asyncio.get_running_loop().run_in_executor(_threads, work)

    return call


def _on_a_sound_connection(step: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    _follow_the_file()
    try:
        return step(*arguments, **named)
    finally:
        if connection.errors_occurred:  # as Django does at the end of a request, without the age
            connection.close()


def _follow_the_file() -> None:
    """A backup may have been put in the database's place: an open connection would go on writing into the old file."""
    try:
        found = os.stat(connection.settings_dict["NAME"])
    except OSError:
        return
    file = (found.st_dev, found.st_ino)
    if getattr(_seen, "file", file) != file:
        connection.close()
    _seen.file = file
