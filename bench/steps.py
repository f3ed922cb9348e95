"""What one update costs the server in processor time: decided by deadline, delivered, receipts noted; in one process.

python -m bench.steps [--json] [--groups N]. `bench.delivery` times the whole way; this depends less on a busy machine.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from bench.server import ROOT

GROUPS = 392
GOAL_MS = 2_000 / 1_568  # an update of 1,568 groups in two seconds, all three together


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON list instead of a table")
    parser.add_argument("--groups", type=int, default=GROUPS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gagar-bench-", ignore_cleanup_errors=True) as folder:
        env = os.environ | {"GAGAR_DATA_DIR": folder, "DJANGO_SETTINGS_MODULE": "gagar_web.settings"}
        code = f"import django; django.setup(); from bench.steps import measure; measure({options.groups})"
        said = subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, env=env | {"GAGAR_LOG_LEVEL": "ERROR"})
    lines = json.loads(said.splitlines()[-1])
    if options.json:
        print(json.dumps(lines))
        return
    print(f"{f'{options.groups:,} groups of 16, processor time':<66}{'ms a group':>10}  goal")
    for line in lines:
        print(f"{line['what']:<66}{line['ours']:>10.2f}  {line['goal']}")


def measure(many: int) -> None:
    """Print a JSON line; in a process whose data folder is fresh."""
    from django.utils import timezone

    from bench.rows import held_groups
    from gagar_web.setup import set_up
    from grading.models import Life, RolloutGroup, RubricVersion, Run, Team
    from grading.review import deadlines
    from training_bridge import delivery, intake
    from training_bridge.protocol.messages import Receipt

    set_up()
    team, rubric = Team.objects.get(slug="default"), RubricVersion.flash()
    run = Run.objects.create(team=team, public_id="bench", rubric=rubric, policy="manual", method="redistribute")
    life = Life.objects.create(run=run, n=1)
    groups = held_groups(run, life, step=2, many=many)
    RolloutGroup.objects.awaiting_review().update(review_by=timezone.now())
    receipts = [
        Receipt(n=place, life=1, group=group.key, version=1, status="applied", step=2)
        for place, group in enumerate(groups, start=1)
    ]
    took = {
        "decided, their deadline over": timed(deadlines.sweep, many),
        "delivered": timed(lambda: delivery.deliver(run), many),
        "receipts noted": timed(lambda: intake.note(life, receipts), many),
    }
    lines = [{"what": what, "ours": ms, "goal": "-"} for what, ms in took.items()]
    lines.append({"what": "together", "ours": sum(took.values()), "goal": f"< {GOAL_MS:.2f}"})
    print(json.dumps(lines))


def timed(step: Callable[[], int], many: int) -> float:
    """Milliseconds of processor time a group."""
    begun_s = time.process_time()
    if (done := step()) != many:
        raise RuntimeError(f"{done} of {many} groups went through")
    return 1_000 * (time.process_time() - begun_s) / many


if __name__ == "__main__":
    main()
