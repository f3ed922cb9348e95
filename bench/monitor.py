"""The monitor: a run of a million points beside one of a thousand, and frames of its page beside bare uPlot.

python -m bench.monitor [--json] [--no-frames]. With DATABASE_URL the rows are in that database, which must be empty.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time

from bench import frames
from bench.pages import start_django

NAMES = ("pass_rate", "turns", "tokens", "response_tokens", "pg_loss", "entropy", "kl", "grad_norm", "lr", "clip_share")
LONG, SHORT = 100_000, 100  # steps: times ten names, a million points and a thousand
ROUNDS = 5


def apart() -> None:
    """In a process of its own: Django takes its data folder once."""
    subprocess.run([sys.executable, "-m", "bench.monitor"], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON list instead of a table")
    parser.add_argument("--no-frames", action="store_true", help="leave Chromium out")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gagar-bench-", ignore_cleanup_errors=True) as folder:
        start_django(folder)
        found = []
        if not options.json:
            print(f"{'what':<66}{'ours ms':>10}{'floor ms':>10}{'ratio':>8}  goal")
        for measure in (long_runs, *(() if options.no_frames else (frames.in_chromium,))):
            for row in measure():  # told as it is found: the whole takes minutes
                found.append(line(*row))
                if not options.json:
                    print("{what:<66}{ours:>10.1f}{floor:>10.1f}{ratio:>8.2f}  {goal}".format(**found[-1]), flush=True)
    if options.json:
        print(json.dumps(found))


def line(what: str, ours: float, floor: float, goal: str) -> dict:
    return {"what": what, "ours": ours, "floor": floor, "ratio": ours / floor, "goal": goal}


def long_runs() -> list[tuple]:
    """Processor time of the page and of its numbers; the floor is the same of the short run."""
    from bench.pages import timed
    from grading.models import RubricVersion, Run, Team

    team = Team.objects.get(slug="default")
    runs = {}
    for name, steps in (("short", SHORT), ("long", LONG)):
        runs[name] = Run.objects.create(team=team, public_id=name, name=name, rubric=RubricVersion.flash())
        start_s = time.process_time()
        _put(runs[name], steps)
        taken_s = time.process_time() - start_s
    bare_s = _bare_insert(Run.objects.create(team=team, public_id="bare", name="bare", rubric=RubricVersion.flash()))
    found = [("a million points stored, a point (us); floor: rows alone", taken_s * 1e3, bare_s * 1e3, "< 3x")]
    middle = LONG // 2
    for what, path, goal in (
        ("page of a run of 1,000,000 points; floor: of 1,000", "", "< 1.5x"),
        ("its numbers, whole", "series.json?width=1200", "< 200 ms"),
        ("its numbers, zoomed into 500 steps", f"series.json?width=1200&from={middle}&to={middle + 500}", "< 200 ms"),
        ("its numbers, the newest 100 steps", f"series.json?width=1200&from={LONG - 100}", "< 1.5x"),
    ):
        ours, floor = timed(f"/runs/long/{path}"), timed(f"/runs/short/{path.partition('&')[0]}")
        found.append((f"{what} ({ours['queries']} queries, {floor['queries']})", ours["ms"], floor["ms"], goal))
    return [*found, _as_csv(runs["long"])]


def _as_csv(run) -> tuple:
    """All ten series, 100,000 lines; the floor reads the same rows one by one and writes nothing."""
    from training_bridge.models import MetricPoint
    from training_bridge.monitor import export

    start_s = time.process_time()
    lines = sum(1 for _ in export.csv_lines(run, NAMES, 0, LONG))
    ours_s, start_s = time.process_time() - start_s, time.process_time()
    points = MetricPoint.objects.filter(run=run).values_list("step", "name", "value", "non_finite")
    read = sum(1 for _ in points.iterator(chunk_size=export.AT_ONCE))
    if (lines, read) != (LONG + 1, LONG * len(NAMES)):
        raise RuntimeError(f"{lines} lines of CSV and {read} rows, expected {LONG + 1} and {LONG * len(NAMES)}")
    return "a million points as CSV; floor: the rows read", 1e3 * ours_s, 1e3 * (time.process_time() - start_s), "< 5x"


def _values(steps: int):
    import numpy as np

    return np.random.default_rng(1).normal(size=(steps, len(NAMES)))


def _put(run, steps: int) -> None:
    from django.db import transaction

    from training_bridge.monitor import store

    numbers = _values(steps)
    for first in range(0, steps, 500):
        with transaction.atomic():
            points = [
                store.point(name, step, float(numbers[step, n]), run=run.pk)
                for step in range(first, min(first + 500, steps))
                for n, name in enumerate(NAMES)
            ]
            store.add(run.pk, points)


def _bare_insert(run) -> float:
    """The same rows without anything around them, a tenth of them: seconds for all."""
    from training_bridge.models import MetricPoint
    from training_bridge.monitor import store

    numbers, steps = _values(LONG // 10), LONG // 10
    start_s = time.process_time()
    for first in range(0, steps, 500):
        MetricPoint.objects.bulk_create(
            store.point(name, step, float(numbers[step, n]), run=run.pk)
            for step in range(first, first + 500)
            for n, name in enumerate(NAMES)
        )
    return 10 * (time.process_time() - start_s)


if __name__ == "__main__":
    main()
