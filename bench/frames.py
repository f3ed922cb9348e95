"""The real monitor page in Chromium beside bare uPlot on a page of the same site: frames while points stream in."""

import statistics
import threading
import time

PANELS, LINES, POINTS, FRAMES = 6, 4, 3_000, 240
FEED = """async ([frames, names]) => {
  const deltas = [], spent = [];
  let step = POINTS, last = 0;
  await new Promise((done) => requestAnimationFrame(function frame(now) {
    if (last) deltas.push(now - last);
    last = now;
    const start = performance.now();
    step += 1;
    OURS_OR_BARE
    queueMicrotask(() => spent.push(performance.now() - start)); // uPlot draws in one, which stands before this
    deltas.length < frames ? requestAnimationFrame(frame) : done();
  }));
  return [deltas, spent];
}"""
OURS = """gagarMonitor.feed({ cursor: "0.1", grids: [[step]],
  series: Object.fromEntries(names.map((name, i) => [name, [0, [Math.sin(step / 50 + i) + Math.random() / 5]]])) });"""
BARE = """window.bare.forEach(({ plot, data }, p) => {
  data[0].push(step);
  for (let i = 1; i < data.length; i++) data[i].push(Math.sin(step / 50 + p * 4 + i) + Math.random() / 5);
  plot.setData(data);
});"""
BUILD_BARE = """([panels, lines, points]) => {
  const boxes = [...document.querySelectorAll("[data-panel] .chart-plot")];
  const size = boxes.slice(0, panels).map((box) => [box.clientWidth, box.clientHeight]);
  document.getElementById("charts").replaceChildren();
  window.bare = size.map(([width, height], p) => {
    const box = document.body.appendChild(document.createElement("div"));
    const data = [Array.from({ length: points }, (_, s) => s)];
    for (let i = 0; i < lines; i++) data.push(data[0].map((s) => Math.sin(s / 50 + p * 4 + i) + Math.random() / 5));
    const inks = ["#2b49c4", "#0b6b66", "#a0421b", "#6b665a"];
    const series = [{}, ...Array.from({ length: lines }, (_, i) => ({ stroke: inks[i] }))];
    const plot = new uPlot({ width, height, series, scales: { x: { time: false } }, legend: { show: false },
      cursor: { sync: { key: "bare" } } }, data, box);
    return { plot, data };
  });
  scrollTo(0, document.body.scrollHeight);
}"""
FILL = """([names, points]) => gagarMonitor.feed({ cursor: "0.1",
  grids: [Array.from({ length: points }, (_, s) => s + 1)],
  series: Object.fromEntries(names.map((name, i) =>
    [name, [0, Array.from({ length: points }, (_, s) => Math.sin(s / 50 + i) + Math.random() / 5)]])) })"""


def in_chromium() -> list[tuple]:
    """Frames of the real page with panels of the size and number that bare uPlot gets, and a point's way to it."""
    import shutil

    from playwright.sync_api import sync_playwright

    from bench.rows import session_of_admin
    from grading.models import Life, RubricVersion, Run, Team

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        return []
    run = Run.objects.create(
        team=Team.objects.get(slug="default"), public_id="live", name="live", rubric=RubricVersion.flash()
    )
    life = Life.objects.create(run=run, n=1)
    names = _few_panels()
    _say(life, 1, 0, dict.fromkeys(names, 0.5))
    cookies = session_of_admin()  # before Playwright's loop runs here: Django refuses rows beside one
    with _site() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"])
        page = browser.new_page(viewport={"width": 1640, "height": 1000})
        page.context.add_cookies([{"name": name, "value": value, "url": url} for name, value in cookies.items()])
        page.goto(f"{url}/runs/live/")
        page.wait_for_function("() => window.gagarMonitor?.count('entropy') === 1")
        page.evaluate(FILL, [names, POINTS])
        feed = FEED.replace("POINTS", str(POINTS))
        ours, ours_spent = page.evaluate(feed.replace("OURS_OR_BARE", OURS), [FRAMES, names])
        page.reload()
        page.wait_for_function("() => window.gagarMonitor?.count('entropy') === 1")
        page.evaluate(BUILD_BARE, [PANELS, LINES, POINTS])
        bare, bare_spent = page.evaluate(feed.replace("OURS_OR_BARE", BARE), [FRAMES, names])
        page.reload()
        lags_ms = _lags(page, life, names)
        browser.close()
    what = f"{PANELS} panels x {LINES} lines x {POINTS:,} points, a point a frame"
    return [
        (f"{what}: frame, median; floor: bare uPlot", statistics.median(ours), statistics.median(bare), "17 ms"),
        ("the same, 95 % of the frames", _p95(ours), _p95(bare), ""),
        (
            "the same, script and drawing calls, median",
            statistics.median(ours_spent),
            statistics.median(bare_spent),
            "< 16 ms",
        ),
        ("point to screen, 95 %; floor: median", _p95(lags_ms), statistics.median(lags_ms), "< 250 ms"),
    ]


def _p95(values: list[float]) -> float:
    return sorted(values)[int(0.95 * (len(values) - 1))]


def _few_panels() -> list[str]:
    """The page gets as many panels and lines as the floor, by its own template and scripts."""
    from training_bridge.monitor import panels

    names = ["entropy", *(f"line_{n}" for n in range(1, PANELS * LINES))]
    made = [
        panels.other_panel(f"p{p}") | {"lines": panels._lines(*((n, n) for n in names[p * LINES : (p + 1) * LINES]))}
        for p in range(PANELS)
    ]
    panels.of_run = lambda *_: made
    return names


def _say(life, n: int, step: int, values: dict) -> None:
    from training_bridge import intake
    from training_bridge.protocol import messages

    intake.note(life, [messages.Metrics(n=n, step=step, values=values)])


def _say_and_close(*said) -> None:
    from django.db import connection

    _say(*said)
    connection.close()


def _lags(page, life, names: list[str]) -> list[float]:
    """From before a message is stored until the page has its point, ms; Playwright's own way is in it."""
    page.wait_for_function("() => window.gagarMonitor?.count('entropy') === 1")
    page.wait_for_timeout(1500)
    lags_ms = []
    for step in range(1, 41):
        start_s = time.perf_counter()
        done = threading.Thread(target=_say_and_close, args=(life, step + 1, step, dict.fromkeys(names, 0.5)))
        done.start()
        page.wait_for_function(f"() => gagarMonitor.count('entropy') === {step + 1}", polling="raf")
        lags_ms.append(1e3 * (time.perf_counter() - start_s))
        done.join()
    return lags_ms


def _site():
    """The whole site in a thread of this process, as the tests have it."""
    import asyncio
    from contextlib import contextmanager

    import uvicorn

    from gagar_web.asgi import application
    from gagar_web.relay import ThreadSafeInMemoryChannelLayer

    @contextmanager
    def serving():
        server = uvicorn.Server(
            uvicorn.Config(application, host="127.0.0.1", port=0, lifespan="off", log_level="error")
        )

        async def serve():
            ThreadSafeInMemoryChannelLayer.home = asyncio.get_running_loop()
            await server.serve()

        thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.05)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        server.should_exit = True
        thread.join(10)

    return serving()
