"""The REST twins of the job's socket."""

import json

import pytest

from grading.ingest.lives import issue_life
from grading.review import decisions
from grading.states import DecisionKind, GroupState
from tests.factories import make_group, make_run, make_token
from training_bridge import delivery
from training_bridge.models import JobCursor, MetricPoint, Receipt
from training_bridge.monitor.standing import standings
from training_bridge.protocol.wire import digest_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def run():
    return make_run()


@pytest.fixture
def life(run):
    return issue_life(run)


@pytest.fixture
def call(client, run):
    """POST of JSON or GET as the run's job, to a path below the run."""
    headers = {"Authorization": f"Bearer {make_token(run=run, purposes=('train',))[1]}"}

    def send(path: str, body: dict | None = None):
        url = f"/api/v1/runs/{run.public_id}/{path}"
        if body is None:
            return client.get(url, headers=headers)
        return client.post(url, json.dumps(body), content_type="application/json", headers=headers)

    return send


def delivered(run, life, key: str = "g"):
    group = make_group(run=run, life=life, key=key, state=GroupState.UNGRADED, outcomes="PF")
    decisions.decide(group, DecisionKind.FALLBACK, by="policy:deadline", reason="deadline")
    delivery.deliver(run)
    return group


def test_rows_come_byte_for_byte_after_the_cursor_and_from_the_start_of_another_epoch(run, life, call):
    for key in ("g1", "g2"):
        delivered(run, life, key)
    texts = list(run.stream.deliveries.order_by("seq").values_list("text", flat=True))
    said = call("advantages?after=1").json()
    assert (said["epoch"], said["head_seq"], said["mode"], said["rows"]) == (1, 2, "normal", texts[1:])
    assert call("advantages?after=1&epoch=7").json()["rows"] == texts


def test_acks_are_kept_and_those_of_rows_or_epochs_that_are_not_there_are_refused(run, life, call):
    delivered(run, life)
    assert call("acks", {"life": 1, "epoch": 1, "received": 1}).json() == {"epoch": 1, "head_seq": 1}
    beyond, foreign = (
        call("acks", {"life": 1, **said}) for said in ({"epoch": 1, "durable": 2}, {"epoch": 2, "received": 1})
    )
    assert (beyond.status_code, beyond.json()["where"]) == (422, "durable")
    assert (foreign.status_code, foreign.json()["where"]) == (422, "epoch")
    cursor = JobCursor.objects.get(life=life)
    assert (cursor.epoch, cursor.received_seq, cursor.durable_seq) == (1, 1, 0)


def test_receipts_and_metrics_share_one_numbering_and_are_stored_once(run, life, call):
    delivered(run, life)
    receipt = {"n": 1, "life": 1, "group": "g", "version": 1, "status": "applied", "step": 4}
    for _ in range(2):
        assert call("receipts", {"life": 1, "receipts": [receipt]}).json() == {"noted": 1}
    metrics = {"n": 2, "step": 4, "values": {"loss": 0.5, "entropy": "NaN"}}
    assert call("metrics", {"life": 1, "metrics": [metrics]}).json() == {"noted": 2}
    assert Receipt.objects.count() == 1 and run.stream.deliveries.get().receipt == "applied"
    assert set(MetricPoint.objects.values_list("name", "value")) == {("loss", 0.5), ("entropy", None)}
    gap = call("metrics", {"life": 1, "metrics": [metrics | {"n": 4}]})
    assert (gap.status_code, gap.json()["expected"]) == (409, 3)


ESTIMATOR = {"name": "ours", "baseline": "mean", "std": "none", "space": "advantage"}


def test_a_resume_by_rest_is_welcomed_as_on_the_socket(run, life, call):
    delivered(run, life)
    text = run.stream.deliveries.get().text
    said = {"life": 1, "epoch": 1, "after_seq": 1, "digest": digest_of(text), "estimator": ESTIMATOR | {"shaped": True}}
    welcome = call("resume", said).json()
    assert (welcome["epoch"], welcome["head_seq"], welcome["after_seq"], welcome["noted"]) == (1, 1, 1, 0)
    assert welcome["estimator"]["cap"] == 1.5 and JobCursor.objects.get().estimator["shaped"] is True
    anew = call("resume", said | {"digest": "0" * 64}).json()
    assert (anew["epoch"], anew["head_seq"], anew["after_seq"]) == (2, 1, 0)
    later = call("resume", said | {"epoch": 7}).json()  # a job that outlived a restored database
    assert (later["epoch"], later["after_seq"]) == (8, 0)


@pytest.mark.parametrize(
    ("estimator", "where"),
    [
        ({"std": "ddof1"}, "estimator.std"),
        ({"baseline": "leave_one_out"}, "estimator.baseline"),
        ({"clip": 1.0}, "estimator.clip"),
        ({"eps": 1e-6}, "estimator.eps"),
        ({"cap": 3.0}, "estimator.cap"),
    ],
)
def test_an_estimator_that_breaks_the_numbers_is_refused_by_name(run, life, call, estimator, where):
    said = {"life": 1, "epoch": 0, "after_seq": 0, "estimator": ESTIMATOR | estimator}
    refused = call("resume", said)
    assert (refused.status_code, refused.json()["where"]) == (422, where)
    assert not JobCursor.objects.filter(life=life).exclude(estimator={}).exists()


def test_a_resume_of_a_life_that_is_not_the_newest_is_fenced_or_unknown(run, life, call):
    said = {"life": 2, "epoch": 0, "after_seq": 0, "estimator": ESTIMATOR}
    unknown = call("resume", said)
    assert (unknown.status_code, unknown.json()["where"]) == (404, "life")
    issue_life(run)
    assert call("resume", said | {"life": 1}).status_code == 409


def test_a_job_that_says_goodbye_has_ended_and_a_newer_life_begins_anew(run, life, call):
    assert standings([run])[0].state == "live"
    for _ in range(2):
        assert call("lives/1/end", {}).status_code == 204
    assert standings([run])[0].state == "ended"
    assert run.events.filter(by="life:1").get().changes == {"life": [1, "ended"]}
    issue_life(run)
    assert standings([run])[0].state == "live"
    assert call("lives/1/end", {"why": "KeyError"}).status_code == 409
    assert call("lives/2/end", {"why": "KeyError"}).status_code == 204
    assert run.events.filter(by="life:2").get().changes == {"life": [2, "failed: KeyError"]}


def test_a_fenced_life_and_a_wrong_shape_are_refused_in_words(run, life, call):
    issue_life(run)
    assert call("receipts", {"life": 1, "receipts": []}).status_code == 409
    long = call("metrics", {"life": 2, "metrics": [{"n": 1, "step": 1, "values": {"x" * 81: 1.0}}]})
    assert (long.status_code, "80" in long.json()["got"]) == (422, True)
    wrong = call("metrics", {"life": 2, "metrics": [{"n": 0}]})
    assert wrong.status_code == 422 and "Expected" in wrong.json()["got"]
