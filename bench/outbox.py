"""The floor of a delivery: a table that is appended to with FULL commits and one websocket, nothing else."""

import asyncio
import json
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from websockets.asyncio.client import connect
from websockets.asyncio.server import serve

ROW = json.dumps({"rows": [{"trajectory": f"rollout-{n}", "reward": 0.1 * n, "advantage": 0.1} for n in range(16)]})


def times_of(rows: int, *, pause_s: float) -> tuple[list[float], float]:
    """Commit one row after another and send each. Returns: seconds from commit to client, one a row; the whole."""
    with tempfile.TemporaryDirectory(prefix="gagar-bench-") as folder:
        return asyncio.run(_run(Path(folder) / "outbox.sqlite3", rows, pause_s))


async def _run(path: Path, rows: int, pause_s: float) -> tuple[list[float], float]:
    started: list[float] = []
    arrived: list[float] = []
    bell = asyncio.Event()
    ring = partial(asyncio.get_running_loop().call_soon_threadsafe, bell.set)

    async def handle(socket) -> None:
        table, sent = sqlite3.connect(path), 0
        while sent < rows:
            await bell.wait()
            bell.clear()
            for number, text in table.execute("SELECT n, text FROM row WHERE n > ? ORDER BY n", (sent,)).fetchall():
                await socket.send(text)
                sent = number
        await socket.wait_closed()
        table.close()

    sqlite3.connect(path).executescript("PRAGMA journal_mode=WAL; CREATE TABLE row (n INTEGER PRIMARY KEY, text TEXT)")
    producer = threading.Thread(target=_produce, args=(path, rows, pause_s, started, ring))
    async with serve(handle, "127.0.0.1", 0, compression=None) as server:
        port = server.sockets[0].getsockname()[1]
        async with connect(f"ws://127.0.0.1:{port}", compression=None) as socket:
            producer.start()
            for _ in range(rows):
                json.loads(await socket.recv())
                arrived.append(time.perf_counter())
    producer.join()
    return [end - start for start, end in zip(started, arrived, strict=True)], arrived[-1] - started[0]


def _produce(path: Path, rows: int, pause_s: float, started: list[float], ring: Callable[[], object]) -> None:
    table = sqlite3.connect(path, isolation_level=None)
    table.execute("PRAGMA synchronous=FULL")
    for _ in range(rows):
        started.append(time.perf_counter())
        table.execute("INSERT INTO row (text) VALUES (?)", (ROW,))
        ring()
        time.sleep(pause_s)
    table.close()
