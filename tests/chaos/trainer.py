"""A small trainer that keeps checkpoints: its parameters are the table of what it was trained with."""

import hashlib
import json
import os
import time
from pathlib import Path
from random import Random

from training_bridge.client import GagarClient


def digest_of(advantages: dict[str, float]) -> str:
    """What one group's numbers were, bit for bit."""
    return hashlib.sha256(json.dumps(sorted(advantages.items())).encode()).hexdigest()


def load(path: Path) -> dict:
    """The checkpoint: `step`, `parameters` as [group, version, step, digest] each, and the cursor."""
    return json.loads(path.read_text()) if path.exists() else {"step": 0, "parameters": [], "cursor": None}


def save(path: Path, state: dict) -> None:
    """Written and synced whole, or not at all; the one before is kept beside it."""
    fresh = path.with_suffix(".new")
    with fresh.open("w") as out:
        json.dump(state, out)
        out.flush()
        os.fsync(out.fileno())
    if path.exists():
        path.with_suffix(".older").unlink(missing_ok=True)
        os.link(path, path.with_suffix(".older"))
    os.replace(fresh, path)  # at no moment there is none


def roll_out(gagar: GagarClient, key: str, step: int, draw: Random):
    """One group with numbers of its own: a pass, a failure, and one of any kind, with shaped rewards."""
    group = gagar.declare(key, task="t", step=step, group_size=3)
    for place, outcome in enumerate(("passed", "failed", draw.choice(["passed", "failed", "infra_invalid"]))):
        group.submit(f"{key}-{place}", outcome=outcome, reward=round(draw.uniform(-1, 1), 6))
    return group


def train(*, url: str, run: str, token: str, checkpoint: str, steps: int, groups: int, within_s: float = 60.0) -> None:
    """Train to the step given: every group in one batch, a checkpoint after each step."""
    path, draw = Path(checkpoint), Random()
    state = load(path)
    with GagarClient(url, run, token, cursor=state["cursor"]) as gagar:
        print(f"begins as life {gagar.life} at step {state['step']}", flush=True)
        gagar.task("t", statement="Return 2.")
        for step in range(state["step"], steps):
            batch = gagar.freeze(
                step, [roll_out(gagar, f"s{step}-{n}", step, draw) for n in range(groups)], within_s=within_s
            )
            used = [[one.group, one.version, step, digest_of(one.advantage)] for one in batch.sets]
            gagar.applied(batch)
            gagar.log(step, {"loss": 1.0 / (1 + step)})
            with gagar.checkpoint() as cursor:
                state = {"step": step + 1, "parameters": state["parameters"] + used, "cursor": cursor}
                save(path, state)
            print(f"step {step} {used}", flush=True)
        if path.with_suffix(".stay").exists():
            print("done", flush=True)
            _until_told(path)
    print("\n".join(gagar.problems), flush=True)


def listen(url: str, run: str, token: str, checkpoint: str) -> None:
    """A job that only holds its stream and says a number now and then, until it is told to end or is fenced."""
    path = Path(checkpoint)
    with GagarClient(url, run, token, cursor=load(path)["cursor"]) as gagar:
        print(f"begins as life {gagar.life}", flush=True)
        said = 0
        while path.with_suffix(".stay").exists() and not any("4409" in words for words in gagar.problems):
            gagar.log(said, {"loss": 0.5})
            said += 1
            time.sleep(0.05)
        for words in gagar.problems:
            print(f"problem: {words}", flush=True)
    print("ended", flush=True)


def _until_told(path: Path) -> None:
    while path.with_suffix(".stay").exists():
        time.sleep(0.05)
