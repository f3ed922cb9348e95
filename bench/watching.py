"""Two jobs stream at once while a person reviews: is each point there once, is memory flat, does the page stay smooth?

python -m bench.watching [--seconds 600] [--json]. Chromium shows both monitors and does the reviewing, by keys.
"""

import argparse
import contextlib
import json
import shutil
import sqlite3
import statistics
import time
from pathlib import Path
from typing import NamedTuple

from bench.delivery import in_server
from bench.server import Served, served
from bench.streaming_job import NAMES, StreamingJob, number

RUNS = ("bench", "second")
OWN_PANELS = 4  # names of the job's that the monitor does not know
FLAGS = ["--no-sandbox", "--disable-dev-shm-usage"]
REVIEW_DEADLINE_S = 180  # nobody holds up a job for longer
LOOK_EVERY_S, REVIEW_EVERY_S, IDLE_S, SETTLE_S = 10, 4, 5, 90
FRAMES = """() => { window.frameGaps = []; let last = performance.now(); requestAnimationFrame(
  function frame(now) { frameGaps.push(now - last); last = now; requestAnimationFrame(frame); }); }"""
TAKE_FRAMES = "() => window.frameGaps.splice(0)"
ON_THE_PAGE = """([names, last]) => names.map((name) => [gagarMonitor.count(name),
  Array.from({ length: last }, (_, i) => gagarMonitor.at(name, i + 1) ?? null)])"""


class Look(NamedTuple):
    """Memory at one moment, MB: of all processes of the server, and of the monitor's page after a collection."""

    at_s: float
    server: float
    page: float
    nodes: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON list instead of a table")
    parser.add_argument("--seconds", type=int, default=600)
    options = parser.parse_args()
    fields = {"policy": "sampled", "hold_share": "0.3", "overlap_share": "0", "hold_budget": "0"}
    with served(**fields, review_deadline_s=str(REVIEW_DEADLINE_S), grading_deadline_s="600") as server:
        lines = measure(server, options.seconds)
    if options.json:
        print(json.dumps(lines))
        return
    print(f"{'what':<76}{'ours':>12}{'floor':>12}  goal")
    for line in lines:
        print("{what:<76}{ours:>12}{floor:>12}  {goal}".format(**line))


def measure(server: Served, seconds: int) -> list[dict]:
    from playwright.sync_api import sync_playwright

    url = str(server.client.base_url).removesuffix("/api/v1/")
    tokens = (server.client.headers["Authorization"].removeprefix("Bearer "), in_server(server, "run", "second"))
    jobs = [StreamingJob(url, run, token) for run, token in zip(RUNS, tokens, strict=True)]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        reader, *monitors = (_signed_in(browser, server, url) for _ in range(1 + len(RUNS)))
        idle = _idle_frames(monitors[0], url)
        for job in jobs:
            job.start()
        for page, job in zip(monitors, jobs, strict=True):
            _open_monitor(page, url, job)
        watched = _watch(server, Reviewer(reader, url), monitors[0], seconds)
        for job in jobs:
            job.told.set()
        for job in jobs:
            job.join(SETTLE_S)
        counted = [*_counts(server, jobs), *_on_the_pages(monitors, jobs)]
        pages = _page_against_anew(server, monitors[0], jobs[0])
        browser.close()
    return [*counted, *_reviews(watched), *_memory(watched["looks"]), *pages, *_frames(idle, watched["frames"])]


def _signed_in(browser, server: Served, url: str):
    """A page in a window of its own: Chromium slows down those that lie behind others."""
    context = browser.new_context(viewport={"width": 1640, "height": 1000})
    cookies = in_server(server, "session")
    context.add_cookies([{"name": name, "value": value, "url": url} for name, value in cookies.items()])
    page = context.new_page()
    page.set_default_timeout(1000 * SETTLE_S)
    return page


def _idle_frames(page, url: str) -> list[float]:
    """The gaps between frames of the monitor while nothing happens."""
    page.goto(f"{url}/runs/{RUNS[0]}/")
    page.evaluate(FRAMES)
    page.wait_for_timeout(1000 * IDLE_S)
    return page.evaluate(TAKE_FRAMES)


def _open_monitor(page, url: str, job: StreamingJob) -> None:
    """Once the job's names are known; from then on the page is not loaded again."""
    while job.steps < 2:
        page.wait_for_timeout(100)
    page.goto(f"{url}/runs/{job.run_id}/")
    while page.locator("[data-panel^='job-']").count() < OWN_PANELS:
        page.wait_for_timeout(1000)
        page.reload()
    page.wait_for_function("(name) => window.gagarMonitor?.count(name)", arg=NAMES[0])


class Reviewer:
    """Opens what waits, approves it by its key, and goes on."""

    def __init__(self, page, url: str):
        self.page, self.url, self.done, self.missed = page, url, 0, 0

    def review_one(self) -> None:
        from playwright.sync_api import TimeoutError as TooLate

        self.page.goto(f"{self.url}/queue/")
        waiting = self.page.locator("#queue-rows tbody a[data-open]").first
        if not waiting.count():
            return
        try:
            waiting.click()
            self.page.locator("#advantage-panel .sum-check").wait_for()
            self.page.keyboard.press("a")
            self.page.locator(".alerts", has_text="Approved").wait_for()
            self.done += 1
        except TooLate:  # its deadline decided it meanwhile: the page says so, and the next one waits
            self.missed += 1


def _watch(server: Served, reviewer: Reviewer, monitor, seconds: int) -> dict:
    """Review and look while the jobs run."""
    monitor.evaluate(FRAMES)
    session = _counting(monitor)
    begun = look_at = time.monotonic()
    looks, frames = [], []
    while (now := time.monotonic()) < begun + seconds:
        if now >= look_at:
            frames += monitor.evaluate(TAKE_FRAMES)
            looks.append(_look(server, session, now - begun))
            monitor.evaluate(TAKE_FRAMES)  # a collection of our own is no fault of the page
            look_at = now + LOOK_EVERY_S
        reviewer.review_one()
        monitor.wait_for_timeout(1000 * REVIEW_EVERY_S)
    return {"looks": looks, "frames": frames, "reviewer": reviewer}


def _counting(page):
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    return session


def _look(server: Served, session, at_s: float) -> Look:
    for _ in range(2):  # the second one takes what the first one let go of
        session.send("HeapProfiler.collectGarbage")
    found = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
    return Look(at_s, _resident_mb(server.process.pid), found["JSHeapUsedSize"] / 1e6, int(found["Nodes"]))


def _resident_mb(pid: int) -> float:
    """Of a process and of all it started (Linux)."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    mine = {pid}
    while more := {child for child, parent in parents.items() if parent in mine} - mine:
        mine |= more
    total = 0.0
    for one in mine:
        with contextlib.suppress(OSError):
            total += int(Path(f"/proc/{one}/statm").read_text().split()[1]) * 4096 / 1e6
    return total


# ---- what was found ----


def _counts(server: Served, jobs: list[StreamingJob]) -> list[dict]:
    """What the database holds of each job against what the job said."""
    with contextlib.closing(sqlite3.connect(server.folder / "gagar.sqlite3")) as rows:
        return [line for job in jobs for line in _counts_of(rows, job)]


def _counts_of(rows: sqlite3.Connection, job: StreamingJob) -> list[dict]:
    of_run = "run_id = (SELECT id FROM grading_run WHERE public_id = ?)"
    points = "SELECT name, step, value FROM training_bridge_metricpoint WHERE name IN ({}) AND {}"
    said = {(name, step): number(name, step) for name in NAMES for step in range(1, job.steps + 1)}
    deadline = time.monotonic() + SETTLE_S
    while True:  # what the server took is there; what it still takes comes
        found = rows.execute(points.format(",".join("?" * len(NAMES)), of_run), (*NAMES, job.run_id)).fetchall()
        applied = rows.execute(
            f"SELECT group_id, COUNT(*) FROM training_bridge_receipt WHERE status = 'applied' AND {of_run} GROUP BY 1",
            (job.run_id,),
        ).fetchall()
        if (len(found) >= len(said) and len(applied) >= len(job.used)) or time.monotonic() > deadline:
            break
        time.sleep(1)
    stored = {(name, step): value for name, step, value in found}
    lost = sum(stored.get(key) != value for key, value in said.items())
    twice = len(found) - len(stored) + sum(n > 1 for _, n in applied) + sum(n > 1 for n in job.used.values())
    what = f"run {job.run_id}: {len(said):,} points of {job.steps:,} steps"
    return [
        line(f"{what}: lost or changed", lost, goal="0"),
        line(f"  its {len(job.used)} groups used: without a receipt", len(job.used) - len(applied), goal="0"),
        line("  points, receipts or groups doubled", twice, goal="0"),
        line("  what the client complained of", len(job.problems), goal="0"),
    ]


def _on_the_pages(monitors, jobs: list[StreamingJob]) -> list[dict]:
    """The curves of the open pages, which were never reloaded, against what the jobs said."""
    lines = []
    for page, job in zip(monitors, jobs, strict=True):
        deadline = time.monotonic() + SETTLE_S
        while page.evaluate("(name) => gagarMonitor.count(name)", NAMES[0]) < job.steps and time.monotonic() < deadline:
            page.wait_for_timeout(500)
        drawn = page.evaluate(ON_THE_PAGE, [NAMES, job.steps])
        wrong = sum(
            abs((value if value is not None else 9.0) - number(name, step)) > 1e-5
            for name, (_, values) in zip(NAMES, drawn, strict=True)
            for step, value in enumerate(values, start=1)
        )
        doubled = sum(max(0, count - job.steps) for count, _ in drawn)
        lines.append(line(f"run {job.run_id}: points missing or wrong on its open page", wrong + doubled, goal="0"))
    return lines


def _reviews(watched: dict) -> list[dict]:
    reviewer = watched["reviewer"]
    return [line("groups approved in the browser; floor: that a deadline took first", reviewer.done, reviewer.missed)]


def _memory(looks: list[Look]) -> list[dict]:
    """The last sixth against the second one: the first is the start."""
    sixth = max(1, len(looks) // 6)
    early, late = looks[sixth : 2 * sixth] or looks[:1], looks[-sixth:]
    lines = []
    for name, what in (("server", "server, all processes, MB"), ("page", "page after a collection, MB")):
        then, now = (statistics.fmean(getattr(look, name) for look in part) for part in (early, late))
        lines.append(line(f"{what}: at the end; floor: early", f"{now:.1f}", f"{then:.1f}", "< 1.1x"))
    return lines


def _page_against_anew(server: Served, page, job: StreamingJob) -> list[dict]:
    """The nodes that the page keeps after all that time against the same page loaded anew, after a collection."""
    page.wait_for_timeout(2000)  # the last refetch is read and dropped
    kept = _look(server, _counting(page), 0.0)
    page.reload()
    page.wait_for_function("([name, n]) => window.gagarMonitor?.count(name) >= n", arg=[NAMES[0], job.steps])
    page.wait_for_timeout(2000)
    anew = _look(server, _counting(page), 0.0)
    return [line("nodes of its document; floor: loaded anew", kept.nodes, anew.nodes, "< 1.1x")]


def _frames(idle: list[float], streaming: list[float]) -> list[dict]:
    lines = []
    for what, share in (("median", 0.5), ("95 %", 0.95), ("99 %", 0.99)):
        ours, floor = (sorted(gaps)[int(share * (len(gaps) - 1))] for gaps in (streaming, idle))
        lines.append(line(f"monitor, ms between frames, {what}; floor: no job", f"{ours:.1f}", f"{floor:.1f}", "floor"))
    return lines


def line(what: str, ours: object, floor: object = "-", goal: str = "-") -> dict:
    return {"what": what, "ours": ours, "floor": floor, "goal": goal}


if __name__ == "__main__":
    main()
