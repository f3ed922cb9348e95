"""The delivery ledger: every row at one place of its way, counted by hand."""

import pytest
from django.utils import timezone

from grading.review import decisions
from tests.factories import make_life, make_run, make_user
from tests.training_bridge.monitor.rows import Job, deliver_group
from training_bridge import delivery, intake, pausing
from training_bridge.models import Delivery
from training_bridge.monitor.ledger import ledger

pytestmark = pytest.mark.django_db


def counted(stream) -> dict[str, int]:
    return {count["words"]: count["n"] for count in ledger(stream)["counts"]}


def test_each_row_stands_at_one_place_of_its_way():
    run = make_run()
    life = make_life(run=run)
    groups = [deliver_group(run, step=step, life=life) for step in range(1, 10)]
    stream, job = run.stream, Job(life)
    # seq 1..9: 7 are sent, 6 received, 5 durable; five of them have receipts
    Delivery.objects.filter(seq__lte=7).update(sent_at=timezone.now())
    intake.acknowledge(life, epoch=1, received=6, durable=5)
    for group, status in zip(groups, ("applied", "superseded", "too_late", "expired"), strict=False):
        job.receipt(group, status, step=11)
    others = ("sent", "received", "durable", "applied", "superseded", "too late", "expired")
    assert counted(stream) == {"waiting": 2} | dict.fromkeys(others, 1)
    shown = ledger(stream)
    assert [row["seq"] for row in shown["rows"]] == list(range(9, 0, -1)), "the newest first"
    words = ["waiting", "waiting", "sent", "received", "durable", "expired", "too_late", "superseded", "applied"]
    assert [row["receipt"] for row in shown["rows"]] == words
    assert shown["rows"][-1]["used_at"] == 11 and (shown["received"], shown["durable"]) == (6, 5)
    for name, n in counted(stream).items():
        rows = ledger(stream, status=name.replace(" ", "_"))["rows"]
        assert len(rows) == n and {row["receipt"].replace("_", " ") for row in rows} == {name}


def test_the_newest_receipt_of_a_version_counts_and_the_older_one_stays_in_the_history():
    run = make_run()
    group = deliver_group(run, step=1)
    job = Job(group.life)
    job.receipt(group, "applied", step=3)
    job.receipt(group, "not_used", step=5)
    [row] = ledger(run.stream)["rows"]
    assert (row["receipt"], row["used_at"]) == ("not_used", 5)
    assert group.receipts.count() == 2


def test_a_receipt_marks_only_its_own_version():
    run = make_run()
    group = deliver_group(run, step=1)
    decisions.fall_back(group, user=make_user(), reason="skipped")
    delivery.deliver(run)
    Job(group.life).receipt(group, "superseded", step=2, version=1)
    assert [(row["version"], row["receipt"]) for row in ledger(run.stream)["rows"]] == [
        (2, "waiting"),
        (1, "superseded"),
    ]


def test_only_the_epoch_of_now_is_shown_and_old_acknowledgements_do_not_count_for_it():
    run = make_run()
    life = make_life(run=run)
    deliver_group(run, step=1, life=life)
    intake.acknowledge(life, epoch=1, received=1, durable=1)
    stream = delivery.open_epoch(run, reason="test")
    shown = ledger(stream)
    assert (shown["received"], shown["durable"], len(shown["rows"])) == (0, 0, 1)
    assert counted(stream) == {"waiting": 1}


def test_a_control_row_stands_in_the_ledger_with_its_words():
    run = make_run()
    pausing.switch(run, paused=True, reason="entropy rises", by="alice")
    [row] = ledger(run.stream)["rows"]
    assert (row["group"], row["words"], row["receipt"]) == (None, "entropy rises", "waiting")


def test_a_long_ledger_comes_in_pages_for_a_constant_number_of_queries(django_assert_num_queries):
    run = make_run()
    life = make_life(run=run)
    for step in range(30):
        deliver_group(run, step=step, life=life)
    with django_assert_num_queries(4):
        first = ledger(run.stream)
    assert len(first["rows"]) == 25 and first["page"].paginator.num_pages == 2
    assert [row["seq"] for row in ledger(run.stream, page="2")["rows"]] == [5, 4, 3, 2, 1]
    assert len(ledger(run.stream, page="99")["rows"]) == 5, "beyond the end is the last page"


def test_an_imported_run_has_an_empty_ledger():
    assert ledger(None)["rows"] == []
