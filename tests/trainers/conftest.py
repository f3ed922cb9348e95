"""Real trainers on the CPU against a real server; `make test-trainers` has an environment of its own for them."""

import json
import os
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).resolve().parents[2]
SERVER_PYTHON = ROOT / ".venv" / "bin" / "python"
START_S, STOP_S = 300, 60  # on a loaded machine; else seconds
NEW_RUN = """
from grading.models import MachineToken, RubricVersion, Run, Team
run = Run.objects.create(team=Team.objects.first(), public_id={name!r}, name={name!r}, policy={policy!r},
                         rubric=RubricVersion.flash(), grader="static")
print("token", MachineToken.issue(run, name="job", purposes=["ingest", "train", "read"])[1])
"""

APPROVE = """
from grading.models import RolloutGroup, User
from grading.review import decisions
group = RolloutGroup.objects.filter(run__public_id={run!r}, state="graded").order_by("pk").first()
if group:
    user = User.objects.filter(is_superuser=True).first()
    decisions.approve(group, seen_verdict=group.verdicts.latest("pk").pk, user=user)
print("approved", group.key if group else "")
"""


@dataclass(frozen=True)
class Server:
    url: str
    env: dict

    def new_run(self, name: str, policy: str = "auto") -> tuple[str, str]:
        """A run; under `auto` valid verdicts count at once. Returns: its id and a token."""
        return name, self.run(NEW_RUN.format(name=name, policy=policy)).split("token ")[-1].strip()

    def approve(self, run: str) -> str:
        """A person approves the first graded group of a run. Returns: its key, or nothing while none is graded."""
        return self.run(APPROVE.format(run=run)).split("approved ")[-1].strip()

    def run(self, script: str) -> str:
        """Run a script in the server's environment. Returns: what it printed."""
        command = [SERVER_PYTHON, "manage.py", "shell", "--no-imports", "-c", script]
        done = subprocess.run(command, cwd=ROOT, env=self.env, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-1000:]
        return done.stdout

    def rows(self, run: str, token: str) -> list[dict]:
        """Every row of the run's stream."""
        answer = httpx.get(
            f"{self.url}/api/v1/runs/{run}/advantages",
            params={"after": 0},
            headers={"Authorization": f"Bearer {token}"},
        )
        answer.raise_for_status()
        found = [json.loads(row) if isinstance(row, str) else row for row in answer.json()["rows"]]
        return [row for row in found if row.get("type", "advantages") == "advantages"]


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    if not SERVER_PYTHON.exists():
        pytest.skip("the server's environment is missing: make test-trainers makes it")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    env = os.environ | {"GAGAR_DATA_DIR": str(tmp_path_factory.mktemp("gagar")), "GAGAR_LOG_LEVEL": "WARNING"}
    env.pop("CELERY_BROKER_URL", None)
    process = subprocess.Popen([SERVER_PYTHON, "manage.py", "serve", "--port", str(port)], cwd=ROOT, env=env)
    url = f"http://127.0.0.1:{port}"
    for _ in range(START_S * 10):
        try:
            if httpx.get(f"{url}/api/v1/schema/", timeout=5).status_code == 200:
                break
        except httpx.TransportError:
            assert process.poll() is None, "the server ended while it started"
        time.sleep(0.1)
    yield Server(url, env)
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:  # its own processes end with it
        process.kill()
        process.wait()
