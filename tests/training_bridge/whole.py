"""What must hold of a run at rest, however it got there."""

import json

import pytest

from grading.models import Decision, RolloutGroup, Run
from grading.states import AWAITING_REVIEW, ENDED, MOVES, GroupState, Method
from tests.training_bridge.monitor.test_sums import sums_of
from training_bridge.models import Delivery, Payout, Stream
from training_bridge.monitor import step_sums
from training_bridge.payouts import NOT_COMPARED

REGIMES = {
    "verdict": {"exact", "bounded", "clipped", "fallback", "baseline"},
    "fallback": {"fallback"},
    "baseline": {"baseline"},
    "ineligible": {"ineligible"},
    "filtered": {"filtered"},
    "excluded": {"excluded"},
    "abandoned": {"excluded"},
}


def check_story(group: RolloutGroup) -> None:
    """Moves are of the table and follow one another; decisions are numbered; the group says what the newest says."""
    here = GroupState.COLLECTING
    for event in group.events.order_by("pk"):
        assert event.old == here, (group.key, event.pk, event.old, here)
        assert event.new == event.old or event.new in MOVES[GroupState(event.old)]
        here = event.new
    assert here == group.state
    made = list(group.decisions.order_by("version"))
    assert [decision.version for decision in made] == list(range(1, group.version + 1))
    if group.state in ENDED:
        assert bool(group.end_reason) == (made[-1].kind in ("filtered", "excluded", "abandoned"))
        assert (made[-1].verdict is not None) == (made[-1].kind == "verdict")
        assert made[-1].verdict is None or made[-1].verdict.is_valid
    assert not group.held or group.state in AWAITING_REVIEW


def check_rows(run: Run) -> None:
    stream = Stream.objects.get(run=run)
    rows = list(Delivery.objects.filter(stream=stream, epoch=stream.epoch).order_by("seq"))
    assert [row.seq for row in rows] == list(range(1, stream.head_seq + 1))
    for row in Delivery.objects.filter(stream=stream, kind=Delivery.Kind.ADVANTAGES).select_related("decision"):
        said = json.loads(row.text)
        assert said["regime"] in REGIMES[row.decision.kind], (row.decision.kind, said["regime"], said["reason"])
        assert said["train"] == (said["regime"] not in ("filtered", "excluded"))
        total = sum(entry["advantage"] for entry in said["rows"])
        assert total == pytest.approx(0, abs=1e-9) or run.method == Method.DOWNWEIGHT_ONLY
        assert all(entry["advantage"] <= 1e-9 for entry in said["rows"] if entry["integrity"]) or not said["train"]


def check_paid(run: Run) -> None:
    """The sums are of the newest rows, each counted once, whoever was killed before it counted what it had stored."""
    rows = {row.group_id: row for row in Delivery.objects.filter(stream__run=run, group__isnull=False).order_by("pk")}
    paid = {payout.group_id: payout for payout in Payout.objects.filter(run=run)}
    assert {key: row.version for key, row in rows.items()} == {key: payout.version for key, payout in paid.items()}
    for key, row in rows.items():
        entries = [entry for entry in json.loads(row.text)["rows"] if not entry["integrity"]]
        passes = [entry["advantage"] for entry in entries if entry["outcome"] == "passed"]
        assert paid[key].regime == row.regime
        assert row.regime in NOT_COMPARED or paid[key].credit_paid == pytest.approx(sum(passes), abs=1e-9)
        assert paid[key].decided_at == Decision.objects.get(group=key, version=1).at
    kept = sums_of(run)
    step_sums.add_up(run)
    for place, again in sums_of(run).items():
        # The largest of a step may be of a row that was corrected since.
        assert all(
            kept[place].get(name, 0) == pytest.approx(again[name], abs=1e-9) for name in again if "max_" not in name
        )
