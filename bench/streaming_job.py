"""A job of `bench.watching`, in a thread: it logs a step every half second and has a group every few steps."""

import math
import threading
import time
from collections import Counter

from training_bridge.client import GagarClient

STEP_S = 0.5
GROUP_EVERY, ROLLOUTS, HOLD_STEPS = 10, 8, 1000
FLUSH_S = 80
NAMES = ("entropy", "pg_loss", "turns", "response_tokens", "kl", "grad_norm", "lr", "clip_share")
PATCH = "--- a/app.py\n+++ b/app.py\n@@ -1,2 +1,{lines} @@\n def f():\n-    return 1\n{added}"


def number(name: str, step: int) -> float:
    """What the job says of a step; known to whoever counts afterwards."""
    return round(math.sin(step / 50 + NAMES.index(name)), 6)


class StreamingJob(threading.Thread):
    """Steps until told to stop.

    Attributes:
        steps: that were logged, from 1 on.
        used: group -> how often an optimiser step got it; 1 is right.
    """

    def __init__(self, url: str, run: str, token: str):
        super().__init__(name=run, daemon=True)
        self.url, self.run_id, self.token = url, run, token
        self.told, self.steps, self.used, self.waiting = threading.Event(), 0, Counter(), []
        self.problems: list[str] = []

    def run(self) -> None:
        with GagarClient(self.url, self.run_id, self.token) as gagar:
            gagar.task("t", statement="f returns 1 and should return 2")
            due = time.monotonic()
            while not self.told.wait(max(0.0, due - time.monotonic())):
                due = max(due + STEP_S, time.monotonic())
                self._step(gagar)
            deadline = time.monotonic() + FLUSH_S
            while len(gagar._shared.outbox) and time.monotonic() < deadline:  # what is counted shall have been told
                time.sleep(0.1)
        self.problems = list(gagar.problems)

    def _step(self, gagar: GagarClient) -> None:
        step = self.steps + 1
        gagar.log(step, {name: number(name, step) for name in NAMES})
        self.steps = step
        if step % GROUP_EVERY:
            return
        group = gagar.declare(f"{step}", task="t", step=step, group_size=ROLLOUTS)
        for n in range(ROLLOUTS):
            outcome = "passed" if n < ROLLOUTS // 2 else "failed"
            group.submit(f"{step}/{n}", outcome=outcome, patch=_patch(n), counts={"turns": 3, "tokens": 100 + n})
        batch = gagar.freeze(step, [group, *self.waiting], within_s=STEP_S, hold_steps=HOLD_STEPS)
        self.waiting = batch.waiting
        self.used.update(chosen.group for chosen in batch.sets)
        gagar.applied(batch)


def _patch(n: int) -> str:
    """The n-th rollout adds n lines that nobody asked for."""
    added = "".join(f"+    unused_{i} = {i}\n" for i in range(n)) + "+    return 2\n"
    return PATCH.format(lines=n + 2, added=added)
