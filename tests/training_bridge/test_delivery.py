import json
from threading import Barrier, Thread

import pytest
from django.db import connection

from grading.errors import Fenced
from grading.ingest import lives
from grading.models import RolloutGroup, Trajectory
from grading.review import decisions
from grading.states import DecisionKind, GroupState, Policy
from tests.factories import make_group, make_life, make_run
from tests.verdicts import add_verdict
from training_bridge import delivery, intake, pausing
from training_bridge.errors import NoStream, OutOfOrder
from training_bridge.models import Delivery, MetricPoint, Receipt, Stream
from training_bridge.protocol import messages
from training_bridge.protocol.wire import decode_from_job, decode_from_server, digest_of

pytestmark = pytest.mark.django_db


def decided_group(run, *, outcomes="PPF", kind=DecisionKind.VERDICT, scores=None, **fields) -> RolloutGroup:
    group = make_group(run=run, state=GroupState.GRADED, outcomes=outcomes, **fields)
    verdict = add_verdict(group, scores) if kind == DecisionKind.VERDICT else None
    decisions.decide(group, kind, by="test", verdict=verdict)
    return group


def rows_of(run) -> list[dict]:
    return [json.loads(text) for text in Delivery.objects.filter(stream__run=run).values_list("text", flat=True)]


def test_a_decision_becomes_one_row_with_both_spaces():
    run = make_run(policy=Policy.AUTO)
    group = decided_group(run, scores={"A": 5, "B": 4})
    assert delivery.deliver(run) == 1
    assert delivery.deliver(run) == 0, "twice delivers once"
    [row] = rows_of(run)
    # R = (1, 1, 0): A = (1/3, 1/3, -2/3). T1: f = (1, 0.9), lambda = 2 / 1.9 = 20/19.
    got = [entry["advantage"] for entry in row["rows"]]
    assert got == pytest.approx([20 / 57, 18 / 57, -2 / 3], abs=1e-12)
    assert [entry["equivalent_reward"] for entry in row["rows"]] == pytest.approx([20 / 57 + 2 / 3, 18 / 57 + 2 / 3, 0])
    assert (row["regime"], row["seq"], row["version"], row["train"]) == ("exact", 1, 1, True)
    group.refresh_from_db()
    assert group.state == GroupState.DELIVERED


def test_the_stored_text_is_what_the_client_reads_and_its_digest():
    run = make_run()
    decided_group(run)
    delivery.deliver(run)
    row = Delivery.objects.get()
    assert isinstance(decode_from_server(row.text), messages.Advantages)
    assert row.sha256 == digest_of(row.text)


@pytest.mark.parametrize(
    ("kind", "end", "regime", "train"),
    [
        (DecisionKind.FALLBACK, "", "fallback", True),
        (DecisionKind.BASELINE, "", "baseline", True),
        (DecisionKind.EXCLUDED, "excluded_broken_evaluation", "excluded", False),
        (DecisionKind.ABANDONED, "abandoned", "excluded", False),
    ],
)
def test_every_kind_of_decision_has_its_row(kind, end, regime, train):
    run = make_run()
    group = make_group(run=run, state=GroupState.GRADED, outcomes="PPF")
    decisions.decide(group, kind, by="test", end_reason=end)
    delivery.deliver(run)
    [row] = rows_of(run)
    assert (row["regime"], row["train"]) == (regime, train)
    if not train:
        assert {entry["advantage"] for entry in row["rows"]} == {0.0} and row["reason"] == end


def test_an_invalid_rollout_has_no_reward_and_no_advantage():
    run = make_run()
    decided_group(run, outcomes="PFI", kind=DecisionKind.FALLBACK)
    delivery.deliver(run)
    [row] = rows_of(run)
    assert row["rows"][2]["reward"] is None and row["rows"][2]["advantage"] == 0
    # two valid rows: R = (1, 0), A = (1/2, -1/2)
    assert [entry["advantage"] for entry in row["rows"][:2]] == [0.5, -0.5]


def test_an_older_undelivered_version_is_superseded():
    run = make_run()
    group = decided_group(run)
    decisions.decide(group, DecisionKind.FALLBACK, by="test", reason="skipped")
    delivery.deliver(run)
    assert [(row["version"], row["regime"]) for row in rows_of(run)] == [(2, "fallback")]


def test_a_correction_after_delivery_goes_out_as_a_new_version():
    run = make_run()
    group = decided_group(run, scores={"A": 5, "B": 4})
    delivery.deliver(run)
    group.refresh_from_db()
    better = add_verdict(group, {"A": 4, "B": 5})
    decisions.decide(group, DecisionKind.VERDICT, by="alice", verdict=better)
    delivery.deliver(run)
    first, second = rows_of(run)
    assert (first["version"], second["version"], second["seq"]) == (1, 2, 2)
    assert second["rows"][1]["factor"] == 1.0 and first["rows"][1]["factor"] == 0.9


def test_imported_runs_have_no_stream():
    run = make_run(kind="imported")
    decided_group(run)
    assert delivery.sweep() == 0
    with pytest.raises(NoStream, match="imported"):
        delivery.deliver(run)


def test_pausing_is_a_row_of_the_same_stream():
    run = make_run()
    pausing.switch(run, paused=True, reason="entropy rises", by="alice")
    run.refresh_from_db()
    [row] = rows_of(run)
    assert run.paused and row["type"] == "control" and row["mode"] == "outcome_only" and row["seq"] == 1


def test_a_new_epoch_starts_with_the_groups_the_job_may_still_use():
    run = make_run()
    life = make_life(run=run)
    used, waiting = decided_group(run, life=life), decided_group(run, life=life)
    delivery.deliver(run)
    intake.note(
        life,
        [messages.Receipt(n=1, life=life.n, group=used.key, version=1, status="applied", step=3)],
    )
    stream = delivery.open_epoch(run, reason="test")
    fresh = Delivery.objects.filter(epoch=2)
    assert (stream.epoch, stream.head_seq) == (2, 1)
    assert [(row.group, row.seq) for row in fresh] == [(waiting, 1)]


def test_numbered_messages_are_stored_once_and_in_order():
    run = make_run()
    life = make_life(run=run)
    group = decided_group(run, life=life)
    receipt = messages.Receipt(n=1, life=life.n, group=group.key, version=0, status="applied", step=4)
    metrics = messages.Metrics(n=2, step=4, values={"loss": 0.5, "entropy": "NaN"})
    assert intake.note(life, [receipt, metrics]) == 2
    assert intake.note(life, [receipt, metrics]) == 2
    assert Receipt.objects.count() == 1 and MetricPoint.objects.count() == 2
    assert MetricPoint.objects.get(name="entropy").non_finite == "NaN"
    with pytest.raises(OutOfOrder) as gap:
        intake.note(life, [messages.Metrics(n=4, step=5, values={})])
    assert (gap.value.got, gap.value.expected) == (4, 3)


def test_what_a_killed_process_had_said_is_not_noted_after_its_successor_began():
    run = make_run()
    old = make_life(run=run)
    group = decided_group(run, life=old)
    lives.issue_life(run)
    late = messages.Receipt(n=1, life=old.n, group=group.key, version=1, status="applied", step=4)
    with pytest.raises(Fenced):
        intake.note(old, [late])
    assert not Receipt.objects.exists()


def test_acknowledgements_only_grow():
    life = make_life()
    intake.acknowledge(life, epoch=1, received=5, durable=3)
    intake.acknowledge(life, epoch=1, received=2, durable=1)
    cursor = intake.cursor_of(life)
    assert (cursor.received_seq, cursor.durable_seq) == (5, 3)
    intake.acknowledge(life, epoch=2, received=1)
    cursor.refresh_from_db()
    assert (cursor.epoch, cursor.received_seq, cursor.durable_seq) == (2, 1, 0)


@pytest.mark.django_db(transaction=True)
def test_four_bridges_at_once_allot_a_dense_seq():
    run = make_run()
    Stream.objects.create(run=run)
    for _ in range(24):
        decided_group(run, kind=DecisionKind.FALLBACK)
    start = Barrier(4)

    def deliver():
        start.wait()
        delivery.deliver(run)
        connection.close()

    threads = [Thread(target=deliver) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(row["seq"] for row in rows_of(run)) == list(range(1, 25))
    assert len({row["group"] for row in rows_of(run)}) == 24


def test_a_row_too_large_for_a_message_says_so_and_holds_up_nobody():
    run = make_run()
    huge = decided_group(run, kind=DecisionKind.FALLBACK, outcomes="PF")
    Trajectory.objects.bulk_create(
        Trajectory(
            group=huge, run=run, life=huge.life, external_id=f"{n:0200}", outcome="failed", content_digest=str(n),
        )
        for n in range(900)
    )  # fmt: skip
    decided_group(run)
    assert delivery.deliver(run) == 2
    large, small = rows_of(run)
    assert (large["regime"], large["reason"], large["train"], large["rows"]) == ("excluded", "row_too_large", False, [])
    assert small["train"] and small["seq"] == 2


def test_a_step_that_no_database_holds_is_refused_before_it_is_stored():
    sent = '{"type": "receipt", "n": 1, "life": 1, "group": "g", "version": 1, "status": "applied", "step": 4294967296}'
    with pytest.raises(messages.ProtocolError, match="step"):
        decode_from_job(sent)
