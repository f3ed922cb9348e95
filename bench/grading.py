"""What gradings cost beside the model's own time, and how many graders keep up with a job.

python -m bench.grading [--json]: 64 groups at a scripted endpoint without latency; then a simulation.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

from bench.server import ROOT
from grading.grader import fleet

GROUPS, ROLLOUTS = 64, 16
STEPS, DEADLINE_S = 20, 900.0
TIMES = fleet.Times.parse("lognormal:400:0.5"), fleet.Times.parse("lognormal:200:0.5")  # of a rollout, of a grading
STEP = fleet.Step(GROUPS, ROLLOUTS, GROUPS * ROLLOUTS // 2, 0.6, *TIMES, 120.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON list instead of a table")
    options = parser.parse_args()
    lines = [overhead(), *fleet_lines(STEP)]
    if options.json:
        print(json.dumps(lines))
        return
    print(f"{'what':<78}{'ours':>10}  goal")
    for line in lines:
        print(f"{line['what']:<78}{line['ours']:>10.3f}  {line['goal']}")


def overhead() -> dict:
    """Seconds of ours for one group: claim, workspace, prompt, parse, rows; in a process and on a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="gagar-bench-") as folder:
        env = os.environ | {
            "GAGAR_DATA_DIR": folder, "DJANGO_SETTINGS_MODULE": "gagar_web.settings", "GAGAR_LOG_LEVEL": "ERROR",
            "CELERY_BROKER_URL": "memory://", "DATABASE_URL": "",
        }  # fmt: skip
        said = subprocess.check_output([sys.executable, "-m", "bench.grading_run"], cwd=ROOT, env=env, text=True)
    took_s = json.loads(said.splitlines()[-1])
    what = f"{GROUPS} groups of {ROLLOUTS}, model without latency: s of ours a group"
    return {"what": what, "ours": took_s, "goal": "< 0.5"}


def fleet_lines(step: fleet.Step, grow: float = 0.05) -> list[dict]:
    """The number of graders N at which a step grows by 5 %, and what fewer mean (as `manage.py simulate_grading`)."""
    steps = [fleet.draw(step, np.random.default_rng([0, n])) for n in range(STEPS)]
    floor, _ = fleet.growth(steps, step.groups, overlap=True)  # nobody waits but for the last grading itself
    n = fleet.graders_for(steps, floor + grow, overlap=True) or step.groups
    lines = [
        {"what": "a step with a grader for every group: growth", "ours": floor, "goal": "-"},
        {"what": f"graders N at which a step grows by {grow:.0%} more, with overlap", "ours": float(n), "goal": "-"},
    ]
    for graders in sorted({n, max(n // 2, 1), max(n // 4, 1)}, reverse=True):
        grown, late = fleet.growth(steps, graders, overlap=True, deadline_s=DEADLINE_S)
        lines.append(
            {"what": f"  with {graders}: growth of a step, deadline {DEADLINE_S:g} s", "ours": grown, "goal": "-"}
        )
        lines.append({"what": f"  with {graders}: fallback share", "ours": late, "goal": "-"})
    return lines


if __name__ == "__main__":
    main()
