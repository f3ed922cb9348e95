"""Runs to compare, with names that must not leak, and audits of them."""

from itertools import count

from grading.audit.pooling import Arm, open_audit
from grading.models import Audit
from tests.factories import PATCH, make_group, make_life, make_run, make_task, make_team, make_trajectory

CLEAN = PATCH
MESSY = b"""\
diff --git a/app.py b/app.py
--- a/app.py
+++ b/app.py
@@ -1,2 +1,9 @@
 def answer():
-    return 41
+    # first try
+    print("debug")
+    value = 42
+    print("debug again")
+    value = value + 0
+    value = value - 0
+    value = value * 1
+    return value
"""
NUMBER = count(1)
SECRETS = ("ironwood", "sapling", "redistribute", "outcome-only", "policy-v77", "xid-", "gkey-")


def make_runs(*, team=None, tasks: int = 2, patches=(CLEAN, MESSY), outcomes=("PPF", "PFP"), steps=(1,), **fields):
    """Two runs of a team on the same tasks: the first writes `patches[0]`, the other `patches[1]`."""
    team = team or make_team()
    batch = next(NUMBER)
    made = [make_task(team=team, key=f"task-{batch}-{n}") for n in range(tasks)]
    runs = []
    for name, patch, outcome in zip(("ironwood", "sapling"), patches, outcomes, strict=True):
        run = make_run(team=team, name=f"{name} run", public_id=f"{name}-redistribute-{next(NUMBER)}", **fields)
        life = make_life(run=run)
        for step in steps:
            for n, task in enumerate(made):
                group = make_group(
                    run=run, life=life, task=task, state="decided", step=step, key=f"gkey-{name}-{step}-{n}",
                    policy_version="policy-v77",
                )  # fmt: skip
                for k, letter in enumerate(outcome):
                    make_trajectory(
                        group=group, outcome=letter, patch=patch, letter="QRSTUV"[k],
                        external_id=f"xid-{name}-{step}-{n}-{k}",
                        events=[{"kind": "message", "text": f"{run.public_id}, {run.name} of policy-v77, try {k}."}],
                    )  # fmt: skip
        runs.append(run)
    return runs


def make_audit(*, runs=None, grader: str = "person", **fields) -> Audit:
    runs = runs or make_runs()
    return open_audit(
        team=runs[0].team, name="which is better", arms=[Arm(run) for run in runs], grader=grader, **fields
    )
