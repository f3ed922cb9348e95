"""From a decision to the job's buffer: one approval over HTTP, and a whole step whose deadline has passed.

python -m bench.delivery [--json] [--long] prints ours, the floor (a bare outbox and websocket), their ratio, the goal.
"""

import argparse
import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import httpx

from bench import outbox
from bench.server import ROOT, Served, served
from training_bridge.client import GagarClient

APPROVALS = 60
STEP_GROUPS = 1_568
WITHIN_S = 300.0  # on a loaded machine everything is late


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON list instead of a table")
    parser.add_argument("--long", action="store_true", help=f"a step of {STEP_GROUPS:,} groups instead of a quarter")
    options = parser.parse_args()
    lines = measure(long=options.long)
    if options.json:
        print(json.dumps(lines))
        return
    print(f"{'what':<66}{'ours':>10}{'floor':>10}{'ratio':>8}  goal")
    for line in lines:
        floor, ratio = (f"{line[name]:.2f}" if line[name] else "-" for name in ("floor", "ratio"))
        print(f"{line['what']:<66}{line['ours']:>10.2f}{floor:>10}{ratio:>8}  {line['goal']}")


def measure(*, long: bool = False) -> list[dict]:
    """Return a line of the table for each comparison: what, ours, floor, ratio, goal."""
    with served(policy="manual", method="redistribute") as server:
        token = server.client.headers["Authorization"].removeprefix("Bearer ")
        with GagarClient(str(server.client.base_url).removesuffix("/api/v1/"), server.run, token) as gagar:
            return [*approvals(server, gagar), *step(server, gagar, STEP_GROUPS if long else STEP_GROUPS // 4)]


def approvals(server: Served, gagar: GagarClient) -> list[dict]:
    """Time from the post of an approval to the freeze that got its row, one after the other."""
    rows = in_server(server, "held", gagar.life, 1, APPROVALS)
    handles = [declare(gagar, key, 1) for _, key, _ in rows]
    wait_until(lambda: gagar.online)
    took_s = []
    with browser(server) as page:
        for (pk, _, verdict), handle in zip(rows, handles, strict=True):
            frozen: list = []
            waiting = threading.Thread(target=lambda to=frozen, of=handle: to.append(in_buffer(gagar, of)))
            waiting.start()
            time.sleep(0.1)  # the freeze has asked the server by then
            start_s = time.perf_counter()
            answer = page.post(f"/groups/{pk}/approve", data={"verdict": verdict})
            waiting.join()
            if answer.status_code != 302:
                raise RuntimeError(f"the server answered {answer.status_code}: {answer.text[:300]}")
            took_s.append(frozen[0] - start_s)
    floor_s, _ = outbox.times_of(APPROVALS, pause_s=0.02)
    what = f"{APPROVALS} approvals over HTTP -> in the job's buffer"
    return [
        line(f"{what}, p50 ms", 1_000 * quantile(took_s, 0.5), 1_000 * quantile(floor_s, 0.5), "< 15"),
        line(f"{what}, p99 ms", 1_000 * quantile(took_s, 0.99), 1_000 * quantile(floor_s, 0.99), "< 50"),
    ]


def in_buffer(gagar: GagarClient, handle) -> float:
    batch = gagar.freeze(1, [handle], within_s=30.0)
    at_s = time.perf_counter()
    if batch.sets[0].version != 1:
        raise RuntimeError(f"group {handle.key} came with version {batch.sets[0].version}, expected 1")
    gagar.applied(batch)
    return at_s


def step(server: Served, gagar: GagarClient, groups: int) -> list[dict]:
    """Time a whole step whose review deadline has passed: from its first decision, made by the worker, on."""
    keys = [key for _, key, _ in in_server(server, "held", gagar.life, 2, groups)]
    busy_s, start_s = cpu_s(server.process.pid), time.perf_counter()
    handles = [declare(gagar, key, 2) for key in keys]
    wait_until(lambda: not gagar._shared.undeclared)  # receipts wait for their group's declaration
    declared_s, declaring_s = time.perf_counter() - start_s, cpu_s(server.process.pid) - busy_s
    busy_s = cpu_s(server.process.pid)
    overdue = threading.Timer(0.5, in_server, (server, "overdue"))
    overdue.start()
    batch = gagar.freeze(2, handles, within_s=WITHIN_S)
    frozen_at = time.time()
    if any(used.version != 1 for used in batch.sets):
        raise RuntimeError("a group was frozen without its decision")
    gagar.applied(batch)
    facts = wait_until(lambda: all_noted(server, groups + APPROVALS))
    noted_at, busy_s = time.time(), cpu_s(server.process.pid) - busy_s
    _, floor_s = outbox.times_of(groups, pause_s=0)
    what = f"a step of {groups:,} groups, from its first decision to"
    goal_s = 2 * groups / STEP_GROUPS
    return [
        line(f"{groups:,} groups declared, s", declared_s, None, "-"),
        line("  of it processor time of web and worker, s", declaring_s, None, "-"),
        line(f"{what} all in the buffer, s", frozen_at - facts["first"], floor_s, f"< {goal_s:.2f}"),
        line(f"{what} all receipts noted, s", noted_at - facts["first"], floor_s, f"< {goal_s:.2f}"),
        line("  of it processor time of web and worker, s", busy_s, None, "-"),
    ]


def all_noted(server: Served, receipts: int) -> dict | None:
    """When the first decision fell, once the server has stored every receipt; None before."""
    with contextlib.closing(sqlite3.connect(server.folder / "gagar.sqlite3")) as rows:
        noted, first = rows.execute(
            "SELECT MAX(noted), (SELECT MIN(d.at) FROM grading_decision d JOIN grading_rolloutgroup g"
            " ON g.id = d.group_id WHERE g.step = 2) FROM training_bridge_jobcursor"
        ).fetchone()
    if noted < receipts:
        return None
    return {"first": datetime.fromisoformat(first).replace(tzinfo=UTC).timestamp()}


def declare(gagar: GagarClient, key: str, step: int):
    return gagar.declare(key, task="t", step=step, group_size=16)


def wait_until(true: Callable[[], object]) -> object:
    deadline = time.monotonic() + WITHIN_S
    while not (found := true()):
        if time.monotonic() > deadline:
            raise RuntimeError(f"waited {WITHIN_S:.0f} s for {true}")
        time.sleep(0.01)
    return found


def in_server(server: Served, *arguments: object) -> object:
    """Run bench.rows on the server's folder, in a process of its own."""
    env = os.environ | {"GAGAR_DATA_DIR": str(server.folder), "DJANGO_SETTINGS_MODULE": "gagar_web.settings"}
    command = [sys.executable, "-m", "bench.rows", *map(str, arguments)]
    return json.loads(subprocess.check_output(command, cwd=ROOT, env=env))


def browser(server: Served) -> httpx.Client:
    """A signed-in person's."""
    cookies = in_server(server, "session") | {"csrftoken": "b" * 32}
    return httpx.Client(
        base_url=str(server.client.base_url).removesuffix("/api/v1/"),
        cookies=cookies,
        headers={"X-CSRFToken": "b" * 32},
        timeout=60,
    )


def cpu_s(pid: int) -> float:
    """Processor seconds of a process and all below it so far (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    own_s = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own_s + sum(cpu_s(int(child)) for child in children)


def quantile(samples: list[float], share: float) -> float:
    return sorted(samples)[min(int(share * len(samples)), len(samples) - 1)]


def line(what: str, ours: float, floor: float | None, goal: str) -> dict:
    ratio = ours / floor if floor else None
    return {"what": what, "ours": ours, "floor": floor, "ratio": ratio, "goal": goal}


if __name__ == "__main__":
    main()
