"""Long trajectories: 127 MB in 280 events, and 20,000 events. The floor is the page of a short one.

python -m bench.trajectories prints milliseconds until the whole answer is made, and, where Chromium is there, until a
reader sees rows and until an opened event stands; then until a reader sees the same text in Inspect's viewer.
"""

import argparse
import json
import os
import shutil
import statistics
import tempfile
import threading
import time
from pathlib import Path

from bench.inspect_viewer import InspectViewer
from bench.peer_tools import INSPECT, inspect_python

INSPECT_S = 240
ROUNDS = 5
EVENTS, MEGABYTES, MANY = 280, 127, 20_000
PAINT_GOAL, EVENT_GOAL = "useful paint < 1,000 ms", "any event < 100 ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON list instead of a table")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gagar-bench-", ignore_cleanup_errors=True) as folder:
        from bench.pages import start_django

        start_django(folder)
        lines = measure()
    if options.json:
        print(json.dumps(lines))
        return
    print(f"{'what':<58}{'ours ms':>10}{'floor ms':>10}{'ratio':>8}  goal")
    for line in lines:
        print("{what:<58}{ours:>10.1f}{floor:>10.1f}{ratio:>8.2f}  {goal}".format(**line))


def measure() -> list[dict]:
    """Return a line of the table for each page and event: what, ours, floor, ratio, goal."""
    short = rollout("short", ({"kind": "action", "text": f"ls {n}"} for n in range(20)))
    large = rollout("large", large_events())
    many = rollout("many", ({"kind": "observation", "text": f"line {n}\n" * 20} for n in range(MANY)))
    cases = [
        (f"page, {MEGABYTES} MB in {EVENTS} events", large, "", PAINT_GOAL),
        (f"page, {MANY:,} events, at the last", many, f"?at={MANY - 1}", PAINT_GOAL),
        (f"an event of {MEGABYTES * 1_000 // EVENTS} kB", large, f"events/{EVENTS - 1}?part=body", EVENT_GOAL),
        (f"an event of {MANY:,}", many, f"events/{MANY // 2}?part=body", EVENT_GOAL),
        (f"map and jumps of {MEGABYTES} MB, the first time", large, "?part=map", "after the page"),
        ("the same again", large, "?part=map", "after the page"),
    ]
    lines = []
    for what, url, query, goal in cases:
        floor = timed(short + ("events/10?part=body" if "events/" in query else query.replace(str(MANY - 1), "9")))
        ours = timed(url + query, rounds=1 if "first time" in what else ROUNDS)
        lines.append({"what": what, "ours": ours, "floor": floor, "ratio": ours / floor, "goal": goal})
    return lines + seen(short, large, many)


def large_events():
    """Tool output as agents bring it home: 280 events of about 450 kB."""
    line = "src/app/module.py:41: in answer: value = self._lookup(key)  # "
    size = MEGABYTES * 1_000_000 // EVENTS
    for n in range(EVENTS):
        row = f"{line}{n}\n"
        yield {"kind": "observation" if n % 2 else "action", "text": row * (size // len(row))}


def rollout(key: str, events) -> str:
    """Store a rollout with these events. Returns: the address of its page."""
    from grading import bodies
    from grading.models import Life, RolloutGroup, RubricVersion, Run, Task, Team, Trajectory

    team = Team.objects.get(slug="default")
    run, _ = Run.objects.get_or_create(team=team, public_id="bench", defaults={"rubric": RubricVersion.flash()})
    life, _ = Life.objects.get_or_create(run=run, n=1)
    task, _ = Task.objects.get_or_create(team=team, key="t")
    group = RolloutGroup.objects.create(run=run, life=life, key=key, task=task, step=1, group_size=1, state="complete")
    stored = bodies.write_events(events)
    fields = {"group": group, "run": run, "life": life, "external_id": key, "content_digest": key, "letter": "A"}
    fields |= {"event_body": stored.sha256, "event_count": stored.events, "outcome": "passed"}
    Trajectory.objects.create(**fields)
    return f"/groups/{group.pk}/candidates/A/"


def timed(url: str, *, rounds: int = ROUNDS) -> float:
    """Returns: median ms of wall time until the whole answer is made."""
    from django.test import Client

    from grading.models import User

    client, times_s = Client(SERVER_NAME="127.0.0.1"), []
    client.force_login(User.objects.get(is_superuser=True))
    for _ in range(rounds):
        start_s = time.perf_counter()
        answer = client.get(url)
        times_s.append(time.perf_counter() - start_s)
        if answer.status_code != 200:
            raise RuntimeError(f"{url} answered {answer.status_code}")
    return 1_000 * statistics.median(times_s)


def seen(short: str, large: str, many: str) -> list[dict]:
    """The same in Chromium, from the address to rows on the screen; nothing where there is no Chromium."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        return []
    from playwright.sync_api import sync_playwright

    server, cookie = Server(), session()
    with server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": 1640, "height": 1000})
        context.add_cookies([{"name": "sessionid", "value": cookie, "url": server.url}])
        page = context.new_page()
        floor, floor_event = painted(page, server.url + short), opened(page, 10)
        lines = []
        for what, url, event in ((f"{MEGABYTES} MB", large, 3), (f"{MANY:,} events", many, 60)):
            ours = painted(page, server.url + url)
            lines.append(_line(f"Chromium, {what}: rows on the screen", ours, floor, PAINT_GOAL))
            lines.append(_line(f"Chromium, {what}: an event open", opened(page, event), floor_event, EVENT_GOAL))
        lines += inspected(page, lines[0]["ours"])
        browser.close()
    return lines


def inspected(page, ours: float) -> list[dict]:
    """Inspect's viewer with the same text in the same browser: its figure stands where the floor does."""
    python = inspect_python()
    if python is None:
        return []
    with tempfile.TemporaryDirectory(prefix="gagar-bench-") as folder:
        with InspectViewer(python, Path(folder)) as viewer:
            start_s = time.perf_counter()
            page.goto(viewer.url, wait_until="commit")
            page.wait_for_selector("text=in answer: value", timeout=INSPECT_S * 1_000)
            page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
            peer = 1_000 * (time.perf_counter() - start_s)
    return [_line(f"the same beside {INSPECT}, {MEGABYTES} MB", ours, peer, "peer: Inspect's viewer, once")]


def _line(what: str, ours: float, floor: float, goal: str) -> dict:
    return {"what": what, "ours": ours, "floor": floor, "ratio": ours / floor, "goal": goal}


def painted(page, url: str) -> float:
    """Returns: median ms from asking for a page to its first row drawn."""
    times_ms = []
    for _ in range(ROUNDS):
        start_s = time.perf_counter()
        page.goto(url, wait_until="commit")
        page.wait_for_selector(".event-row")
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        times_ms.append(1_000 * (time.perf_counter() - start_s))
    page.wait_for_selector(".event-map")
    return statistics.median(times_ms)


def opened(page, index: int) -> float:
    """Returns: median ms from a click on a row to its body drawn."""
    times_ms = []
    for n in range(index, index + ROUNDS):
        page.locator(f"#e{n}").scroll_into_view_if_needed()
        times_ms.append(page.evaluate(CLICK, n))
    return statistics.median(times_ms)


CLICK = """(n) => new Promise((done) => {
  const row = document.getElementById(`e${n}`), start = performance.now();
  const stands = () => row.nextElementSibling.querySelector("pre");
  const look = () => stands() ? done(performance.now() - start) : requestAnimationFrame(look);
  row.querySelector(".event-line").click();
  look();
})"""


def session() -> str:
    from django.test import Client

    from grading.models import User

    client = Client()
    client.force_login(User.objects.get(is_superuser=True))
    return client.cookies["sessionid"].value


class Server:
    """The whole site in a thread, on a free port."""

    def __enter__(self):
        import asyncio

        import uvicorn

        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # Playwright's loop runs in the main thread
        from gagar_web.asgi import application

        config = uvicorn.Config(application, host="127.0.0.1", port=0, lifespan="off", log_level="error")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._server.serve()), daemon=True)
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        self.url = f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}"
        return self

    def __exit__(self, *_):
        self._server.should_exit = True
        self._thread.join(10)


if __name__ == "__main__":
    main()
