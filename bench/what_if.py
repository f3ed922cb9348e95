"""What-if: 10,000 stored verdicts of 16 candidates under other numbers, against a numpy floor of the same run.

python -m bench.what_if prints orders, tiers and factors, then advantages too; loading is said apart.
"""

import time

import numpy as np

from bench.redistribution import compare
from grading.calibration import replay as core
from grading.calibration.replay import Scored, replay
from grading.scoring.criteria import CRITERIA, FLASH
from training_bridge.what_if import Batch, paid

GROUPS, ROLLOUTS, GOAL_MS = 10_000, 16, 200


def main() -> None:
    scored, batch = verdicts()
    lines = [
        compare(
            f"what-if, orders and factors, {GROUPS:,} x {ROLLOUTS}",
            lambda: replay(scored, FLASH), lambda: floor(scored), goal=6, rounds=5,
        ),
        compare(
            f"what-if with advantages, {GROUPS:,} x {ROLLOUTS}",
            lambda: both(scored, batch), lambda: floor(scored), goal=10, rounds=5,
        ),
    ]  # fmt: skip
    print(f"{'what':<44}{'ours ms':>10}{'floor ms':>10}{'ratio':>8}{'CPU ms':>8}{'goal ms':>8}")
    for line, run in zip(lines, (lambda: replay(scored, FLASH), lambda: both(scored, batch)), strict=True):
        cpu_ms = _cpu_ms(run)
        print("{what:<44}{ours_ms:>10.1f}{floor_ms:>10.1f}{ratio:>8.2f}".format(**line) + f"{cpu_ms:>8.1f}{GOAL_MS:>8}")


def both(scored: Scored, batch: Batch):
    """Replay, then pay: what a what-if asks for once."""
    return paid(batch, replay(scored, FLASH).factor_BG, 1.5)


def verdicts() -> tuple[Scored, Batch]:
    """Random scores; half of the rollouts fail, and what failed is no candidate."""
    rng = np.random.default_rng(0)
    shape = (GROUPS, ROLLOUTS)
    passing_BG = rng.random(shape) < 0.5
    passing_BG[:, 0], passing_BG[:, 1] = True, False
    bare = Scored(
        scores_BGC=rng.choice(np.array([2, 3, 4, 4, 5], np.int8), (*shape, len(CRITERIA))),
        flags_BG=(rng.random(shape) < 0.03).astype(np.uint8),
        there_BG=passing_BG,
        revised_B=np.zeros(GROUPS, bool),
        own_tier_BG=np.full(shape, -1, np.int8),
        own_base_BG=np.full(shape, -1, np.int16),
        own_place_BG=np.full(shape, -1, np.int16),
    )
    tier_BG = core.tiers(bare, FLASH)
    place_BG = core.places(tier_BG, core.weighted(bare, FLASH)[0])
    parts = {name: getattr(bare, name) for name in ("scores_BGC", "flags_BG", "there_BG")}
    scored = Scored(
        **parts, revised_B=rng.random(GROUPS) < 0.02, own_tier_BG=tier_BG, own_base_BG=place_BG, own_place_BG=place_BG
    )
    batch = Batch(passing_BG.astype(float), passing_BG, np.ones(shape, bool), np.zeros(GROUPS, bool))
    return scored, batch


def floor(scored: Scored) -> np.ndarray:
    """What any replay must do: weigh in integers, sort each group once."""
    weighted_BG = np.zeros(scored.there_BG.shape, np.int64)
    for c, weight in enumerate((6, 5, 4, 3, 2)):
        weighted_BG += scored.scores_BGC[..., c] * np.int64(weight)
    weighted_BG.sort(axis=1)
    return weighted_BG


def _cpu_ms(run, rounds: int = 5) -> float:
    """The least CPU time of a few rounds: on a busy machine the wall says nothing."""
    samples = []
    for _ in range(rounds):
        start = time.process_time()
        run()
        samples.append(1000 * (time.process_time() - start))
    return min(samples)


if __name__ == "__main__":
    main()
