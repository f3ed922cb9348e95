"""Redistribution and token broadcast against a floor measured in the same run, on one thread.

python -m bench.redistribution [--json] [--long] prints ours, the floor, their ratio and the goal.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable

import numpy as np

from training_bridge.redistribution.baselines import downweight_only
from training_bridge.redistribution.outcome import outcome_advantages
from training_bridge.redistribution.safeguards import bounded_shaped
from training_bridge.redistribution.sum_preserving import redistribute

GROUPS, ROLLOUTS, LAMBDA_MAX = 1_568, 16, 1.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON list instead of a table")
    parser.add_argument("--long", action="store_true", help="also 25,088 x 8,192 tokens (3 GB of memory)")
    options = parser.parse_args()
    lines = measure(long=options.long)
    if options.json:
        print(json.dumps(lines))
        return
    print(f"{'what':<44}{'ours ms':>10}{'floor ms':>10}{'ratio':>8}{'goal':>8}")
    for line in lines:
        print("{what:<44}{ours_ms:>10.3f}{floor_ms:>10.3f}{ratio:>8.2f}{goal:>8}".format(**line))


def measure(*, long: bool = False) -> list[dict]:
    """Return a line of the table for each comparison: what, ours_ms, floor_ms, ratio, goal."""
    return [redistribution(), *(tokens(length) for length in ((1_024, 8_192) if long else (1_024,)))]


def redistribution() -> dict:
    """Time Eq. 1 to 8 with masks, checks, lambda and cap against the same formulas, dense and unchecked."""
    rng = np.random.default_rng(0)
    passing_BG = rng.random((GROUPS, ROLLOUTS)) < rng.random((GROUPS, 1))
    passing_BG[:, 0], passing_BG[:, 1] = True, False
    valid_BG = np.ones_like(passing_BG)
    rewards_BG = passing_BG.astype(np.float32)
    factors_BG = rng.choice(np.array([1, 0.9, 0.85, 0.625, 0.4, 0.2], np.float32), (GROUPS, ROLLOUTS))

    def ours():
        advantages_BG = outcome_advantages(rewards_BG, valid_BG)
        downweighted_BG = downweight_only(advantages_BG, factors_BG, passing_BG)
        exact_BG = redistribute(advantages_BG, factors_BG, passing_BG)
        return downweighted_BG, exact_BG, bounded_shaped(advantages_BG, factors_BG, passing_BG, valid_BG, LAMBDA_MAX)[0]

    def floor():
        return dense(rewards_BG, factors_BG, rewards_BG)

    for got, expected in zip(ours(), floor(), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-5)
    return compare(f"redistribution, {GROUPS:,} x {ROLLOUTS}, float32", ours, floor, goal=1.5, rounds=400)


def dense(rewards_BG: np.ndarray, factors_BG: np.ndarray, passes_BG: np.ndarray) -> tuple[np.ndarray, ...]:
    """Write Eq. 1, 2, 7 and 8 down for groups without masked rows, in as few passes as numpy needs."""
    advantages_BG = rewards_BG - rewards_BG.mean(-1, keepdims=True)
    kept_BG = np.maximum(advantages_BG, 0) * passes_BG
    failing_BG = advantages_BG * (1 - passes_BG)
    weighted_BG = factors_BG * kept_BG
    lambda_B1 = kept_BG.sum(-1, keepdims=True) / weighted_BG.sum(-1, keepdims=True)
    bounded_BG = failing_BG + np.minimum(lambda_B1, LAMBDA_MAX) * weighted_BG
    train_BG = bounded_BG - bounded_BG.mean(-1, keepdims=True)
    return failing_BG + weighted_BG, failing_BG + lambda_B1 * weighted_BG, train_BG


def tokens(length: int) -> dict:
    """Time the broadcast to response tokens against `copy_` of as many bytes."""
    import torch

    from training_bridge.redistribution.tokens import token_advantages

    torch.set_num_threads(1)
    sequences = GROUPS * ROLLOUTS
    generator = torch.Generator().manual_seed(0)
    advantages_B = torch.randn(sequences, generator=generator)
    mask_BT = (torch.rand((sequences, length), generator=generator) < 0.5).float()
    out_BT = torch.empty_like(mask_BT)
    return compare(
        f"advantage -> response tokens, {sequences:,} x {length:,}",
        lambda: token_advantages(advantages_B, mask_BT, out=out_BT),
        lambda: out_BT.copy_(mask_BT),
        goal=1.15,
        rounds=15,
    )


def compare(what: str, ours: Callable, floor: Callable, *, goal: float, rounds: int) -> dict:
    """Take both in turns, so that a noisy neighbour hits both, and return their medians."""
    # glibc hands the top of a fresh heap back after each call until a large block was freed once.
    np.empty(1 << 23, np.int8)
    times_s = {ours: [], floor: []}
    for _ in range(rounds + 2):
        for function, samples_s in times_s.items():
            start_s = time.perf_counter()
            function()
            samples_s.append(time.perf_counter() - start_s)
    ours_ms, floor_ms = (1_000 * statistics.median(samples_s[2:]) for samples_s in times_s.values())
    ratio = ours_ms / floor_ms
    goal_text = f"{goal:.2f}"
    return {"what": what, "ours_ms": ours_ms, "floor_ms": floor_ms, "ratio": ratio, "goal": goal_text}


if __name__ == "__main__":
    main()
