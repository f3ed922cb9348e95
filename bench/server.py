"""A server of the benchmark's own: `manage.py serve` on a free port of this machine, with a data folder of its own."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx

ROOT = Path(__file__).resolve().parents[1]
START_WITHIN_S = 240  # a loaded machine migrates for minutes


class Served(NamedTuple):
    client: httpx.Client  # with the token of the run
    run: str
    process: subprocess.Popen
    folder: Path


@contextmanager
def served(**run_fields: str) -> Iterator[Served]:
    """Start it with one run. Args: run_fields, of the run's row."""
    with tempfile.TemporaryDirectory(prefix="gagar-bench-", ignore_cleanup_errors=True) as folder:
        port = str(_free_port())
        env = os.environ | {"GAGAR_DATA_DIR": folder, "GAGAR_LOG_LEVEL": "ERROR"}
        token = _set_up(env, run_fields)
        command = [sys.executable, "manage.py", "serve", "--port", port]
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            headers = {"Authorization": f"Bearer {token}"}
            with httpx.Client(base_url=f"http://127.0.0.1:{port}/api/v1", headers=headers, timeout=600) as client:
                _wait_for(client)
                yield Served(client, "bench", process, Path(folder))
        finally:
            process.terminate()
            process.wait()


def _set_up(env: dict[str, str], run_fields: dict[str, str]) -> str:
    """Make the tables, the run and its token in a process of their own. Returns: the token."""
    code = (
        "import sys; from gagar_web.setup import set_up; set_up();"
        "from grading.models import MachineToken, RubricVersion, Run, Team;"
        "team = Team.objects.get(slug='default'); fields = dict(pair.split('=') for pair in sys.argv[1:]);"
        "run = Run.objects.create(team=team, public_id='bench', rubric=RubricVersion.flash(), **fields);"
        "print(MachineToken.issue(run, name='bench', purposes=('ingest', 'train'))[1])"
    )
    boot = f"import django; django.setup(); {code}"
    env = env | {"DJANGO_SETTINGS_MODULE": "gagar_web.settings"}
    arguments = [f"{name}={value}" for name, value in run_fields.items()]
    said = subprocess.check_output([sys.executable, "-c", boot, *arguments], cwd=ROOT, env=env, text=True)
    return said.split()[-1]


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _wait_for(client: httpx.Client) -> None:
    deadline = time.monotonic() + START_WITHIN_S
    while True:
        try:
            client.post("/runs/bench/lives", json={}).raise_for_status()
            return
        except httpx.TransportError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
