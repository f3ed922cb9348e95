"""Lists on PostgreSQL after many steps, as a reviewer sees them; the floor is the same page of an empty database.

python -m bench.explorer [--json] [--long] works in a database of its own beside the one GAGAR_TEST_DATABASE_URL names.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg

from bench.pages import FILTERS, start_django
from tests.on_services import SERVICES

STEPS, LONG_STEPS = 10, 100
NAME = "gagar_bench_explorer"
ROUNDS = 5
MORE = {
    "newest first": "",
    "lowest step first": "sort=step",
    "T1 only": "tier=only1",
    "any hint": "signal=any",
    "strong hints, most influence first": "signal=strong&sort=influence",
    "confirmed findings": "finding=any",
    "corrected by a person": "people=corrected",
    "regime exact": "regime=exact",
}
LISTS = {
    "queue": "/queue/",
    "tasks": "/tasks/",
    "a task": "/tasks/{task}/",
    "runs": "/runs/",
    "gradings of the run": "/runs/bench/grader",
    "reviews of the run": "/runs/bench/reviews",
    "alerts": "/alerts/",
    "my finished reviews": "/reviewers/{user}/",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON list instead of a table")
    parser.add_argument("--long", action="store_true", help="100 steps: 156,800 groups, 2.5 million rollouts")
    options = parser.parse_args()
    variable, usual, _ = SERVICES["DATABASE_URL"]
    server = os.environ.get(variable, usual)
    try:
        psycopg.connect(server, connect_timeout=3).close()
    except psycopg.OperationalError as failure:
        print(f"explorer on PostgreSQL: skipped, {server} does not answer ({str(failure).strip().splitlines()[0]})")
        return
    with _database(server) as own, tempfile.TemporaryDirectory(prefix="gagar-bench-") as folder:
        os.environ["DATABASE_URL"] = own
        start_django(folder)
        lines = measure(LONG_STEPS if options.long else STEPS)
    if options.json:
        print(json.dumps(lines))
        return
    print(f"{'what':<66}{'ours ms':>10}{'floor ms':>10}{'ratio':>8}{'queries':>9}  goal")
    for line in lines:
        print("{what:<66}{ours:>10.1f}{floor:>10.1f}{ratio:>8.2f}{queries:>9}  {goal}".format(**line))


@contextmanager
def _database(server: str) -> Iterator[str]:
    """An empty database of the benchmark's own, dropped at the end."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {NAME}")
        try:
            yield urlsplit(server)._replace(path=f"/{NAME}").geturl()
        finally:
            connection.execute(f"DROP DATABASE {NAME} WITH (FORCE)")


def measure(steps: int) -> list[dict]:
    """Return a line of the table for each look at a list: what, ours, floor, ratio, queries, goal."""
    from bench import many_rows
    from grading.models import Life, Membership, Role, RubricVersion, Run, Task, Team, User

    team = Team.objects.get(slug="default")
    run = Run.objects.create(team=team, public_id="bench", rubric=RubricVersion.flash())
    user = User.objects.create_user("rita", "rita@example.org")
    Membership.objects.create(team=team, user=user, role=Role.REVIEWER)
    life, task = Life.objects.create(run=run, n=1), Task.objects.create(team=team, key="few", statement="a task")
    lists = {what: path.format(task=task.pk, user=user.pk) for what, path in LISTS.items()}
    floors = {what: timed(url, user)["ms"] for what, url in {**lists, "groups": "/groups/"}.items()}
    many_rows.make(run, life, steps=steps)
    many = f"{steps * many_rows.A_STEP:,} groups"
    looks = {**MORE, **FILTERS, "last page": "page=9999"}
    lines = [line(f"{many}, {what}", f"/groups/?{q}", user, floors["groups"]) for what, q in looks.items()]
    task = Task.objects.exclude(pk=task.pk).first()
    lists["a task"] = LISTS["a task"].format(task=task.pk)
    return lines + [line(f"{many}, {what}", url, user, floors[what]) for what, url in lists.items()]


def line(what: str, url: str, user, floor_ms: float) -> dict:
    found = timed(url, user)
    said = {"what": what, "ours": found["ms"], "floor": floor_ms, "ratio": found["ms"] / floor_ms}
    return said | {"queries": found["queries"], "goal": "< 200 ms, within 2 x of the floor"}


def timed(url: str, user) -> dict:
    """Median ms until the whole answer is made, on the clock: the database works in processes of its own."""
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(user)
    with CaptureQueriesContext(connection):
        status = client.get(url).status_code
        asked = len(connection.queries_log)
    if status != 200:
        raise RuntimeError(f"{url} answered {status}")
    times_s = []
    for _ in range(ROUNDS):
        start_s = time.perf_counter()
        client.get(url)
        times_s.append(time.perf_counter() - start_s)
    return {"ms": 1_000 * statistics.median(times_s), "queries": asked}


if __name__ == "__main__":
    main()
