"""A site of real processes on the tests' own database, and what must hold in it after whatever happened."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from itertools import count, groupby
from pathlib import Path

import httpx
from django.db import connection

from tests.chaos.faulty_wire import FaultyWire
from tests.chaos.trainer import digest_of, load
from tests.conftest import wait_for
from tests.factories import flash, make_run, make_token
from tests.real_processes import ROOT, free_port
from training_bridge.models import Delivery, JobCursor, MetricPoint, Receipt, Stream


class Forked:
    """One process of the site."""

    def __init__(self, pid: int, log: Path):
        self.pid, self.log = pid, log

    @property
    def said(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    @property
    def alive(self) -> bool:
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    @property
    def rss_mb(self) -> float:
        words = Path(f"/proc/{self.pid}/status").read_text()
        return int(words.partition("VmRSS:")[2].split()[0]) / 1024

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        if self.alive:
            os.kill(self.pid, signal.SIGKILL)
        wait_for(lambda: not self.alive)

    def ended(self, within_s: float = 120) -> None:
        """Wait for its end, which must be a good one."""
        wait_for(lambda: not self.alive, within_s=within_s)
        status = self.log.with_suffix(".status")
        assert status.exists() and status.read_text() == "0", f"ended badly:\n{self.said[-4000:]}"


class Forker:
    """The process that forks the others; one for all tests of a session."""

    def __init__(self, folder: Path, **env: str):
        self.folder, self._numbers = folder, count()
        said = {"CHAOS_DATABASE": str(connection.settings_dict["NAME"]), "DJANGO_SETTINGS_MODULE": "gagar_web.settings"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.forks"], cwd=ROOT, env=os.environ | said | env, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert self.process.stdout.readline() == "ready\n"

    def start(self, what: str, **order) -> Forked:
        log = self.folder / f"{next(self._numbers)}-{what}.log"
        self.process.stdin.write(json.dumps({"what": what, "log": str(log), **order}) + "\n")
        self.process.stdin.flush()
        return Forked(int(self.process.stdout.readline()), log)

    def stop(self) -> None:
        self.process.stdin.close()
        self.process.wait(30)


class ChaosSite:
    """One run, its web server behind a wire, and jobs."""

    def __init__(self, forker: Forker, folder: Path, *, ping_s: float = 20.0, **run):
        flash()
        self.forker, self.folder, self.ping_s = forker, folder, ping_s
        self.run = make_run(**({"method": "outcome", "policy": "auto", "bodies_share": 0.0} | run))
        self.token = make_token(run=self.run)[1]
        self.started: list[Forked] = []
        self.wire = FaultyWire(0)
        self.checkpoint = folder / f"{self.run.public_id}.json"
        self.serve()

    def start(self, what: str, **order) -> Forked:
        self.started.append(self.forker.start(what, **order))
        return self.started[-1]

    def serve(self) -> Forked:
        """A web server at a new port; the wire leads to it from now on."""
        port = free_port()
        self.web = self.start("web", port=port, ping_s=self.ping_s)

        def answers():
            assert self.web.alive, self.web.said
            try:
                return httpx.get(f"http://127.0.0.1:{port}/api/v1/", timeout=30).status_code
            except httpx.TransportError:
                return None

        wait_for(answers)
        self.wire.target = port
        return self.web

    def train(self, *, steps: int, groups: int, checkpoint: Path | None = None, **plan) -> Forked:
        said = {"url": self.wire.url, "run": self.run.public_id, "token": self.token}
        path = str(checkpoint or self.checkpoint)
        return self.start("trainer", **said, checkpoint=path, steps=steps, groups=groups, **plan)

    def listen(self, checkpoint: Path) -> Forked:
        checkpoint.with_suffix(".stay").touch()
        said = {"url": self.wire.url, "run": self.run.public_id, "token": self.token}
        return self.start("listener", **said, checkpoint=str(checkpoint))

    def stop(self) -> None:
        for one in self.started:
            one.kill()
        self.wire.close()

    @property
    def head(self) -> tuple[int, int]:
        return Stream.objects.filter(run=self.run).values_list("epoch", "head_seq").first() or (0, 0)

    def connected(self) -> bool:
        return JobCursor.objects.filter(life__run=self.run, connected=True).exists()


def parameters_and_lives(path: Path) -> list[tuple[int, str, int, int, str]]:
    """(life, group, version, step, digest) of what a checkpoint was trained with; its cursor says the same."""
    state = load(path)
    cursor = [tuple(entry) for entry in state["cursor"]["applied"]]
    trained = [tuple(row) for row in state["parameters"]]
    assert [entry[1:] for entry in cursor] == [row[:3] for row in trained], "the cursor tells what is in the parameters"
    return [(entry[0], *row) for entry, row in zip(cursor, trained, strict=True)]


def check_once(site: ChaosSite, *, steps: int, groups: int) -> Counter:
    """Each group of each step trained once, with the numbers of one stored row, and the server knows it.

    Returns:
        Counts: `trained`, and of these `local` ones (version 0), `rows` of the stream, `lost` and `doubled`.
    """
    trained = parameters_and_lives(site.checkpoint)
    times = Counter(group for _, group, *_ in trained)
    planned = {f"s{step}-{n}" for step in range(steps) for n in range(groups)}
    lost, doubled = planned - times.keys(), [key for key, n in times.items() if n > 1]
    assert not lost and not doubled and times.keys() == planned
    decided = [row for row in trained if row[2] > 0]
    rows = stored_rows(site)
    for life, group, version, _, digest in decided:
        assert rows[life, group, version] == {digest}, (life, group, version)
    wait_for(lambda: not missing_receipts(site, decided))
    check_stream(site)
    return Counter(
        trained=len(trained), local=len(trained) - len(decided), rows=len(rows), lost=len(lost), doubled=len(doubled)
    )


def stored_rows(site: ChaosSite) -> dict[tuple[int, str, int], set[str]]:
    """Digests of the numbers by (life, group, version); the same in every epoch, so one each."""
    found: dict[tuple[int, str, int], set[str]] = {}
    stored = Delivery.objects.filter(stream__run=site.run, kind="advantages")
    for text in stored.values_list("text", flat=True):
        row = json.loads(text)
        numbers = {entry["trajectory"]: entry["advantage"] for entry in row["rows"]}
        found.setdefault((row["life"], row["group"], row["version"]), set()).add(digest_of(numbers))
    return found


def missing_receipts(site: ChaosSite, decided) -> set:
    """What trained and is not the newest word on the server."""
    newest = {}
    receipts = Receipt.objects.filter(run=site.run).order_by("pk")
    for life, group, version, status, step in receipts.values_list(
        "group__life__n", "group__key", "version", "status", "step"
    ):
        newest[life, group, version] = (status, step)
    applied = {key for key, (status, _) in newest.items() if status == "applied"}
    assert max(Counter((life, group) for life, group, _ in applied).values(), default=1) == 1, "one version of a group"
    return {row for row in decided if newest.get(row[:3]) != ("applied", row[3])}


def check_stream(site: ChaosSite, *, forgetful: bool = False) -> None:
    """No gap in the stream, none in the numbered messages of any life, no row twice.

    Args:
        forgetful: words about groups that a restored database has forgotten are noted and not stored.
    """
    places = Delivery.objects.filter(stream__run=site.run).order_by("epoch", "seq").values_list("epoch", "seq")
    for _, rows in groupby(places, key=lambda row: row[0]):
        seqs = [seq for _, seq in rows]
        assert seqs == list(range(1, len(seqs) + 1))
    for cursor in JobCursor.objects.filter(life__run=site.run):
        numbered = set(Receipt.objects.filter(life=cursor.life).values_list("n", flat=True))
        numbered |= set(MetricPoint.objects.filter(life=cursor.life).values_list("n", flat=True))
        said = set(range(1, cursor.noted + 1))
        assert numbered <= said if forgetful else numbered == said, cursor.life.n
