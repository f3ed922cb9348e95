"""Redistribution and token broadcast beside verl's and TRL's own functions, in one process and one run.

python -m bench.trainers [--json]; it needs the environment of `make test-trainers` and says so without.
"""

import argparse
import ast
import inspect
import json
import subprocess
import textwrap
import uuid
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from bench.redistribution import GROUPS, LAMBDA_MAX, ROLLOUTS, compare
from training_bridge.redistribution.baselines import downweight_only
from training_bridge.redistribution.outcome import outcome_advantages
from training_bridge.redistribution.reward_space import equivalent_rewards
from training_bridge.redistribution.safeguards import bounded_shaped
from training_bridge.redistribution.sum_preserving import redistribute

ROOT = Path(__file__).resolve().parents[1]
PYTHON = ROOT / ".venv-trainers" / "bin" / "python"
LENGTH = 1_024


def main() -> None:
    if not PYTHON.exists():
        print("beside verl and TRL: not installed, make test-trainers makes their environment")
        return
    done = subprocess.run(
        [PYTHON, "-m", "bench.trainers", "--json"], cwd=ROOT, check=False, capture_output=True, text=True
    )
    if done.returncode:
        print(f"beside verl and TRL: their environment does not run: {done.stderr.strip().splitlines()[-1:]}")
        return
    print(f"{'what':<64}{'ours ms':>10}{'theirs ms':>11}{'times':>8}{'goal':>8}")
    for line in json.loads(done.stdout.splitlines()[-1]):
        print("{what:<64}{ours_ms:>10.3f}{floor_ms:>11.3f}{times:>8.1f}{goal:>8}".format(**line))


def measure() -> list[dict]:
    """Return a line of the table for each peer: what, ours_ms, floor_ms (theirs), times, goal."""
    import torch
    from verl.trainer.ppo import core_algos

    torch.set_num_threads(1)
    ours, rewards_BG = _ours()
    lines = []
    for length, name, goal in ((1, "sequences", 20), (LENGTH, f"tokens x {LENGTH:,}", 8)):
        to_tokens, rewards_BT, mask_BT, index_B = _batch(ours, rewards_BG, length)
        mine = ours if length == 1 else to_tokens
        for function, wanted, rounds in (
            (core_algos.compute_grpo_vectorized_outcome_advantage, f">{goal}", 9),
            (core_algos.compute_grpo_outcome_advantage, f">{goal}", 5),
        ):
            theirs = _verl(function, rewards_BT, mask_BT, index_B)
            np.testing.assert_allclose(theirs()[:, -1], mine().reshape(len(index_B), -1)[:, -1], atol=1e-5)
            what = f"Eq. 1-8 to {name}, {GROUPS:,} x {ROLLOUTS}, verl {function.__name__.split('_outcome')[0][8:]}"
            lines.append(_line(what, mine, theirs, wanted, rounds))
    trl = _trl(torch.tensor(rewards_BG.reshape(-1, 1)))
    np.testing.assert_allclose(trl().reshape(GROUPS, ROLLOUTS), ours(), atol=1e-5)
    lines.append(_line(f"Eq. 1-8, {GROUPS:,} x {ROLLOUTS}, TRL's centring alone", ours, trl, ">1", 40))
    return lines


def _ours() -> tuple[Callable[[], np.ndarray], np.ndarray]:
    """Eq. 1 to 8 on one industrial step, and the equivalent rewards that trainers centre to the same numbers."""
    rng = np.random.default_rng(0)
    passing_BG = rng.random((GROUPS, ROLLOUTS)) < rng.random((GROUPS, 1))
    passing_BG[:, 0], passing_BG[:, 1] = True, False
    valid_BG = np.ones_like(passing_BG)
    rewards_BG = passing_BG.astype(np.float32)
    factors_BG = rng.choice(np.array([1, 0.9, 0.85, 0.625, 0.4, 0.2], np.float32), (GROUPS, ROLLOUTS))

    def ours() -> np.ndarray:
        advantages_BG = outcome_advantages(rewards_BG, valid_BG)
        downweight_only(advantages_BG, factors_BG, passing_BG)
        redistribute(advantages_BG, factors_BG, passing_BG)
        return bounded_shaped(advantages_BG, factors_BG, passing_BG, valid_BG, LAMBDA_MAX)[0]

    return ours, equivalent_rewards(ours(), rewards_BG, valid_BG).astype(np.float32)


def _batch(ours: Callable, rewards_BG: np.ndarray, length: int) -> tuple:
    import torch

    from training_bridge.redistribution.tokens import token_advantages

    rows = GROUPS * ROLLOUTS
    rewards_BT = torch.zeros((rows, length))
    rewards_BT[:, -1] = torch.from_numpy(rewards_BG.reshape(-1))
    mask_BT = torch.ones((rows, length), dtype=torch.int64)  # as verl has it
    floats_BT, out_BT = mask_BT.float(), torch.empty((rows, length))

    def to_tokens():
        advantages_B = torch.from_numpy(ours().astype(np.float32, copy=False).reshape(-1))
        return token_advantages(advantages_B, floats_BT, out=out_BT)

    return to_tokens, rewards_BT, mask_BT, np.repeat(np.arange(GROUPS), ROLLOUTS)


def _verl(function: Callable, rewards_BT, mask_BT, index_B: np.ndarray) -> Callable:
    uids = [str(uuid.uuid4()) for _ in range(GROUPS)]  # as verl names a group
    names_B = np.array([uids[i] for i in index_B], dtype=object)
    return lambda: function(rewards_BT, mask_BT, names_B, norm_adv_by_std_in_grpo=False)[0]


def _trl(rewards_per_func) -> Callable:
    """TRL computes advantages in the middle of a long method: its own lines are cut out of the installed source."""
    import torch
    from trl.trainer import grpo_trainer

    method = textwrap.dedent(inspect.getsource(grpo_trainer.GRPOTrainer._generate_and_score_completions))
    branch = next(
        node
        for node in ast.walk(ast.parse(method))
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("== 'sum_then_normalize'")
    )
    code = compile(ast.Module(branch.body, []), "trl", "exec")
    names = vars(grpo_trainer) | {
        "self": SimpleNamespace(reward_weights=torch.ones(1), scale_rewards="none"), "device": torch.device("cpu"),
        "rewards_per_func": rewards_per_func, "num_generations": ROLLOUTS,
        "unscorable_mask": torch.zeros(len(rewards_per_func), dtype=torch.bool),
    }  # fmt: skip

    def centre():
        exec(code, names)  # noqa: S102  TRL's own lines
        return names["advantages"]

    return centre


def _line(what: str, ours: Callable, theirs: Callable, goal: str, rounds: int) -> dict:
    line = compare(what, ours, theirs, goal=0.0, rounds=rounds)
    return line | {"times": 1 / line["ratio"], "goal": goal}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="measure in this process and print one JSON list")
    if parser.parse_args().json:
        print(json.dumps(measure()))
    else:
        main()
