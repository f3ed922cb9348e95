"""One group walks through every room, as in the README: job, ingest, grader, person, bridge, job, monitor. No mocks.

Where this test stops, the room whose assertion failed is the one to look into.
"""

import json

import pytest
from django.test import Client
from django.urls import reverse

from grading.grader import job
from grading.models import RolloutGroup
from grading.review import decisions
from grading.scoring.criteria import CRITERIA
from grading.states import GroupState, Policy
from tests.conftest import wait_for
from tests.factories import PASSWORD, make_run, make_token, make_user
from training_bridge.client import GagarClient
from training_bridge.models import Delivery, MetricPoint, Receipt

pytestmark = pytest.mark.django_db(transaction=True)

LEAN = b"""\
diff --git a/shop/cart.py b/shop/cart.py
--- a/shop/cart.py
+++ b/shop/cart.py
@@ -1,3 +1,3 @@
 def total(items):
-    return sum(items[1:])
+    return sum(items)
 # end
"""
MESSY = b"""\
diff --git a/shop/cart.py b/shop/cart.py
--- a/shop/cart.py
+++ b/shop/cart.py
@@ -1,3 +1,8 @@
 def total(items):
-    return sum(items[1:])
+    result = 0
+    for item in items:
+        print("adding", item)
+        result = result + item
+    print("done", result)
+    return result
 # end
diff --git a/shop/notes.bak b/shop/notes.bak
new file mode 100644
--- /dev/null
+++ b/shop/notes.bak
@@ -0,0 +1,2 @@
+tried the loop first
+then the sum
"""
WRONG = LEAN.replace(b"sum(items)", b"sum(items[:1])")
EVENTS = [
    {"kind": "message", "text": "The first item is left out."},
    {"kind": "edit", "tool": "edit", "text": "shop/cart.py"},
    {"kind": "test", "tool": "run_tests", "text": "4 passed", "exit_code": 0},
    {"kind": "submit", "text": "done"},
]
ROLLOUTS = {
    "lean": ("passed", LEAN),
    "messy": ("passed", MESSY),
    "wrong": ("failed", WRONG),
    "broken-sandbox": ("infra_invalid", b""),
}


def the_group() -> RolloutGroup | None:
    return RolloutGroup.objects.filter(key="step-7/cart").first()


def test_one_group_through_every_room(server):
    run = make_run(policy=Policy.MANUAL, review_deadline_s=600)
    _, token = make_token(run=run)
    alice = make_user(username="alice", role="reviewer", team=run.team)

    with GagarClient(server, run.public_id, token) as gagar:
        # the job: outcomes first, then the bodies that the server wants
        gagar.task("cart", statement="total() leaves out the first item.")
        handle = gagar.declare("step-7/cart", task="cart", step=7, policy_version="v6", group_size=4)
        for name, (outcome, patch) in ROLLOUTS.items():
            tests = [{"name": "test_total", "status": outcome}]
            handle.submit(
                name, outcome=outcome, patch=patch, tests=tests, counts={"turns": 4, "response_tokens": 40},
                events=EVENTS, log=b"1 test\n",
            )  # fmt: skip
        wait_for(lambda: (group := the_group()) and group.bodies_ready)
        group = the_group()
        assert (group.state, group.bodies_wanted) == (GroupState.COMPLETE, True)
        assert all(t.event_count == len(EVENTS) for t in group.trajectories.exclude(outcome="infra_invalid"))

        # the grader: lean above messy, each low score with its line
        assert job.drain() == 1
        group = the_group()
        verdict = decisions.newest_verdict(group)
        placed = {p.trajectory.external_id: p for p in verdict.candidates.all()}
        assert verdict.is_valid and group.held and set(placed) == {"lean", "messy"}
        assert placed["lean"].factor > placed["messy"].factor
        assert {e.state for e in verdict.evidence.all()} == {"exact"}

        # the job does not wait for the person
        assert gagar.freeze(7, [handle], within_s=0.1, hold_steps=5).sets == []

        # the person: sees it in the queue, corrects with a reason and a citation, approves
        browser = Client()
        signed_in = browser.post(reverse("login"), {"username": "alice", "password": PASSWORD})
        assert signed_in.status_code == 302
        assert group.task.statement.encode() in browser.get(reverse("queue")).content
        corrected = correct_through_the_form(browser, group, verdict, placed)
        assert corrected.parent == verdict and corrected.author == alice
        answer = browser.post(reverse("group-approve", args=[group.pk]), {"verdict": verdict.pk})
        assert answer.status_code == 409, "the page they approved from is stale now"
        panel = browser.get(reverse("advantage-panel", args=[group.pk])).content.decode()
        answer = browser.post(reverse("group-approve", args=[group.pk]), {"verdict": corrected.pk})
        assert answer.status_code == 302
        wait_for(lambda: the_group().state == GroupState.DELIVERED)

        # the bridge and back in the job: the corrected numbers, exactly once
        batch = wait_for(lambda: (b := gagar.freeze(8, [handle], within_s=1, hold_steps=5)).sets and b)
        [ours] = batch.sets
        # valid: pass, pass, fail. A = (1/3, 1/3, -2/3). The messy one is T3 now: f = (1, 0.2), lambda = 2/1.2 > 1.5:
        # B = (1/2, 1/10, -2/3), mean -1/45, A_train = (47/90, 11/90, -58/90); infra-invalid 0.
        want = {"lean": 47 / 90, "messy": 11 / 90, "wrong": -58 / 90, "broken-sandbox": 0.0}
        assert ours.advantage == pytest.approx(want, abs=1e-12)
        assert (ours.version, ours.regime) == (1, "bounded")
        assert "+0.522" in panel and "+0.122" in panel, "what the person saw is what training got"
        gagar.applied(batch)
        gagar.log(8, {"pass_rate": 0.5, "entropy": float("nan")})
        with gagar.checkpoint() as cursor:
            assert [(life, key) for life, key, *_ in json.loads(json.dumps(cursor))["applied"]] == [(1, "step-7/cart")]
        wait_for(lambda: Receipt.objects.filter(group=group, version=1, status="applied", step=8).exists())
        wait_for(lambda: MetricPoint.objects.filter(run=run, name="pass_rate").exists())

    # watched live, and complete afterwards
    series = browser.get(reverse("run-series", args=[run.public_id])).json()
    curves = series["series"].items()
    at = {name: dict(zip(series["grids"][grid], values, strict=True)) for name, (grid, values) in curves}
    assert at["pass_rate"] == {8: 0.5} and at["entropy"] == {8: None}
    assert browser.get(reverse("monitor", args=[run.public_id])).status_code == 200
    states = [event.new for event in group.events.all() if event.old != event.new]
    assert states == ["complete", "grading", "graded", "decided", "delivered"]
    assert Delivery.objects.filter(group=group).count() == 1


def correct_through_the_form(browser, group, verdict, placed):
    """Score the messy candidate 2 on minimality and side effects: T3. Every other field as the page shows it."""
    fields = {"verdict": verdict.pk, "reason": "rewrites the loop and leaves prints and a backup file behind"}
    for candidate in placed.values():
        letter = candidate.trajectory.letter
        fields |= {f"score-{letter}-{c}": candidate.scores[c] for c in CRITERIA}
        fields[f"place-{letter}"] = candidate.rank + 1
        if candidate.flags:
            fields[f"flag-{letter}"] = candidate.flags
    messy = placed["messy"].trajectory.letter
    for number, criterion in enumerate(("minimality", "side_effects"), 1):
        fields[f"score-{messy}-{criterion}"] = 2
        cite = {"letter": messy, "about": criterion, "kind": "new", "place": "shop/cart.py:4", "quote": ""}
        fields |= {f"cite-{number}-{name}": value for name, value in cite.items()}
    answer = browser.post(reverse("group-correct", args=[group.pk]), fields)
    assert answer.status_code == 302, answer.content.decode()[:2000]
    return decisions.newest_verdict(RolloutGroup.objects.get(pk=group.pk))
