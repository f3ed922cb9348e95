"""What arrives from a job, over HTTP into the embedded server, against a bare script that stores the same bytes.

python -m bench.ingest [--json] [--long] prints ours, the floor, their ratio and the goal.
"""

import argparse
import hashlib
import json
import os
import random
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import zstandard

from bench.server import Served, served

MIB = 2**20
GROUP = 16
STEP_ROLLOUTS = 25_088
BATCH = 64  # rollouts a post, as the client sends them
DECLARED_TOGETHER = 256  # groups a post, likewise
DECLARED = {"task": "t", "step": 1, "group_size": GROUP, "eligible": True}
EVENTS = 300
LONG_MIB = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON list instead of a table")
    parser.add_argument("--long", action="store_true", help="the whole step of 25,088 rollouts and 256 trajectories")
    options = parser.parse_args()
    lines = measure(long=options.long)
    if options.json:
        print(json.dumps(lines))
        return
    print(f"{'what':<58}{'ours':>10}{'floor':>10}{'ratio':>8}  goal")
    for line in lines:
        floor, ratio = (f"{line[name]:.2f}" if line[name] else "-" for name in ("floor", "ratio"))
        print(f"{line['what']:<58}{line['ours']:>10.2f}{floor:>10}{ratio:>8}  {line['goal']}")


def measure(*, long: bool = False) -> list[dict]:
    """Return a line of the table for each comparison: what, ours, floor, ratio, goal."""
    with served(policy="auto", method="redistribute") as server:
        server.client.put("/tasks/t", json={"statement": "a task"}).raise_for_status()
        return [
            small_step(server),
            outcomes(server, STEP_ROLLOUTS if long else STEP_ROLLOUTS // 16),
            bodies(server, 256 if long else 32),
            long_trajectory(server),
        ]


def small_step(server: Served) -> dict:
    """Time 8 groups with outcomes and small bodies, one group after the other, until the last is gradable."""
    events = [{"kind": "action", "text": f"run {n} " + "x" * 200} for n in range(12)]
    times_s = []
    for step in range(3):
        start_s = time.perf_counter()
        for group in (f"small-{step}-{n}" for n in range(8)):
            rollouts = [rollout(group, n) for n in range(GROUP)]
            declare(server, group)
            post(server, rollouts)
            server.client.get(f"/runs/bench/groups/{group}?life=1").raise_for_status()
            stream(server, b"".join(lines_of(item, events) for item in rollouts))
        times_s.append(time.perf_counter() - start_s)
    ours_s = sorted(times_s)[1]
    return line("a step of 8 x 16 with small bodies arrives, s", ours_s, None, "< 2")


def outcomes(server: Served, rollouts: int) -> dict:
    """Count rollouts a second without bodies, in posts of 64 whole groups."""
    groups = [f"outcomes-{n}" for n in range(rollouts // GROUP)]
    items = [rollout(group, n) for group in groups for n in range(GROUP)]
    start_s = time.perf_counter()
    for at in range(0, len(groups), DECLARED_TOGETHER):
        declare_together(server, groups[at : at + DECLARED_TOGETHER])
    for at in range(0, len(items), BATCH):
        post(server, items[at : at + BATCH])
    ours = len(items) / (time.perf_counter() - start_s)
    start_s = time.perf_counter()
    with bare_store() as store:
        for at in range(0, len(items), BATCH):
            store.outcomes(json.dumps(items[at : at + BATCH]).encode())
    floor = len(items) / (time.perf_counter() - start_s)
    goal = f">= {STEP_ROLLOUTS / 60:.0f}: {STEP_ROLLOUTS:,} in 60 s (here {STEP_ROLLOUTS / ours:.0f} s)"
    return line(f"{len(items):,} outcomes with patches, declared, a second", ours, floor, goal)


def bodies(server: Served, many: int) -> dict:
    """Count MB/s of trajectories of 1 MB, one post each."""
    groups = [f"bodies-{n}" for n in range(many // GROUP)]
    items = [rollout(group, n) for group in groups for n in range(GROUP)]
    for group in groups:
        declare(server, group)
    post(server, items)
    texts = [lines_of(item, megabyte(seed)) for seed, item in enumerate(items)]
    start_s = time.perf_counter()
    for text in texts:
        stream(server, text)
    ours_s = time.perf_counter() - start_s
    start_s = time.perf_counter()
    with bare_store() as store:
        for text in texts:
            store.body(text)
    floor_s = time.perf_counter() - start_s
    megabytes = sum(map(len, texts)) / 1e6
    return line(
        f"{many} trajectories of 1 MB, {EVENTS} events, MB/s", megabytes / ours_s, megabytes / floor_s, ">= 0.50"
    )


def long_trajectory(server: Served) -> dict:
    """Measure how far the server's memory grows, in MB, while one trajectory of 200 MB arrives."""
    declare(server, "long")
    item = rollout("long", 0)
    post(server, [item])
    process = Path(f"/proc/{server.process.pid}")
    (process / "clear_refs").write_text("5")  # the peak starts anew from what is resident now
    before = peak_mb(process / "status")

    def lines() -> Iterator[bytes]:
        head, *events, end = lines_of(item, megabyte(0)).splitlines(keepends=True)
        yield head
        for _ in range(LONG_MIB):
            yield b"".join(events)
        yield end

    stream(server, lines())
    grown = peak_mb(process / "status") - before
    return line(f"one trajectory of {LONG_MIB} MB: the server grows by, MB", grown, None, "< 100")


def peak_mb(status: Path) -> float:
    """The largest resident size of a process so far, in MB (Linux)."""
    [kilobytes] = [row.split()[1] for row in status.read_text().splitlines() if row.startswith("VmHWM")]
    return int(kilobytes) / 1000


class bare_store:
    """The floor: decode, compress, write, fsync, one row each. No HTTP, no checks, no groups."""

    def __enter__(self) -> "bare_store":
        self._folder = tempfile.TemporaryDirectory(prefix="gagar-bench-")
        self._rows = sqlite3.connect(Path(self._folder.name) / "rows.sqlite3", isolation_level=None)
        self._rows.execute("PRAGMA journal_mode=WAL")
        self._rows.execute("PRAGMA synchronous=FULL")
        self._rows.execute("CREATE TABLE row (id TEXT PRIMARY KEY, fields TEXT, body TEXT)")
        return self

    def __exit__(self, *_: object) -> None:
        self._rows.close()
        self._folder.cleanup()

    def outcomes(self, text: bytes) -> None:
        self._rows.execute("BEGIN IMMEDIATE")
        for item in json.loads(text):
            patch = self._file(item.pop("patch").encode())
            self._rows.execute("INSERT INTO row VALUES (?, ?, ?)", (item["external_id"], json.dumps(item), patch))
        self._rows.execute("COMMIT")

    def body(self, text: bytes) -> None:
        head, *events, _ = [json.loads(part) for part in text.splitlines()]
        name = self._file("\n".join(json.dumps(event) for event in events).encode())
        self._rows.execute("INSERT INTO row VALUES (?, ?, ?)", (head["external_id"], json.dumps(head), name))

    def _file(self, plain: bytes) -> str:
        name = hashlib.sha256(plain).hexdigest()
        path = Path(self._folder.name) / name
        with path.open("wb") as file:
            file.write(zstandard.ZstdCompressor(level=3).compress(plain))
            file.flush()
            os.fsync(file.fileno())
        return name


def rollout(group: str, n: int) -> dict:
    patch = f"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-old\n+{group} {n}\n"
    counts = {"turns": 12, "tokens": 4096 + n, "duration_s": 31.5}
    tests = [{"name": f"test_{k}", "status": "passed" if n % 2 else "failed"} for k in range(3)]
    outcome = "passed" if n % 2 else "failed"
    return {
        "group": group,
        "external_id": f"{group}/{n}",
        "outcome": outcome,
        "patch": patch,
        "counts": counts,
        "tests": tests,
    }


def megabyte(seed: int) -> list[dict]:
    """Events of about 1 MB together that pack like traces: words out of a small stock."""
    chance = random.Random(seed)
    stock = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz_", k=chance.randint(3, 11))) for _ in range(2000)]
    return [
        {"kind": "observation", "tool": "bash", "text": " ".join(chance.choices(stock, k=415))} for _ in range(EVENTS)
    ]


def lines_of(item: dict, events: list[dict]) -> bytes:
    every = [{"type": "trajectory"} | item, *({"type": "event"} | event for event in events), {"type": "end"}]
    return b"".join(json.dumps(each).encode() + b"\n" for each in every)


def declare(server: Served, group: str) -> None:
    server.client.put(f"/runs/bench/groups/{group}", json=DECLARED | {"life": 1}).raise_for_status()


def declare_together(server: Served, groups: list[str]) -> None:
    said = {"life": 1, "groups": [DECLARED | {"key": group} for group in groups]}
    server.client.post("/runs/bench/groups", json=said).raise_for_status()


def post(server: Served, items: list[dict]) -> None:
    _all_in(server.client.post("/runs/bench/trajectories", json={"life": 1, "trajectories": items}))


def stream(server: Served, lines: bytes | Iterator[bytes]) -> None:
    headers = {"Content-Type": "application/x-ndjson"}
    _all_in(server.client.post("/runs/bench/trajectories?life=1", content=lines, headers=headers))


def _all_in(answer) -> None:
    if answer.status_code not in (200, 201):
        raise RuntimeError(f"the server answered {answer.status_code}: {answer.text[:300]}")


def line(what: str, ours: float, floor: float | None, goal: str) -> dict:
    ratio = ours / floor if floor else None
    return {"what": what, "ours": ours, "floor": floor, "ratio": ratio, "goal": goal}


if __name__ == "__main__":
    main()
