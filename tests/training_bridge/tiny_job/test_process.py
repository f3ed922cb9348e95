import os
import signal
import subprocess
import sys
import time

import pytest

torch = pytest.importorskip("torch")

from training_bridge.client import GagarClient  # noqa: E402
from training_bridge.tiny_job import checkpoint, loop  # noqa: E402

PLAN = loop.Plan(advantages="redistribute", seed=0, groups=3, rollouts=4)


NOBODY = ("--url", "http://127.0.0.1:9", "--wait-s", "0.2", "--hold-steps", "0")


@pytest.fixture
def begun(tmp_path, runner):
    """A checkpoint at step 0, so that no start has to warm up."""
    job = loop.Job(PLAN, runner, tmp_path / "job.pt")
    with GagarClient("http://127.0.0.1:9", "r", "token") as gagar:
        job.save(gagar)
    return job.path


def start(path, *more):
    arguments = ["--checkpoint", str(path), "--groups", "3", "--rollouts", "4", "--run", "r", *NOBODY, *more]
    return subprocess.Popen(
        [sys.executable, "-m", "training_bridge.tiny_job", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"GAGAR_TOKEN": "token"},
    )


def applied_once(path):
    rows = checkpoint.applied_groups(checkpoint.load(path))
    assert {(row["version"], row["regime"]) for row in rows} <= {(0, "fallback"), (0, "filtered")}
    groups = [(row["life"], row["group"]) for row in rows]
    assert len(groups) == len(set(groups))
    return groups


def wait_for_step(path, step):
    deadline = time.monotonic() + 60
    while checkpoint.load(path)["step"] < step:
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_without_a_server_a_killed_job_goes_on_from_its_checkpoint_and_ctrl_c_ends_it_cleanly(begun):
    killed = start(begun)
    wait_for_step(begun, 2)
    killed.kill()
    killed.communicate()
    before = checkpoint.load(begun)["step"]
    assert len(applied_once(begun)) == 3 * before
    stopped = start(begun, "--min-step-s", "30")
    wait_for_step(begun, before + 1)
    stopped.send_signal(signal.SIGINT)
    said, _ = stopped.communicate(timeout=60)
    assert stopped.returncode == 0, said
    assert f"stopped: step {before + 1} saved in" in said
    lives = [life for life, _ in applied_once(begun)]
    assert len(lives) == 3 * (before + 1)
    assert len(set(lives)) == 2
