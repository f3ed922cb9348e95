"""Numbers out: CSV and JSON of any series, the history of a step, and what Prometheus scrapes."""

import pytest
from asgiref.sync import async_to_sync
from prometheus_client.parser import text_string_to_metric_families

from tests.factories import make_life, make_run, make_token, make_user
from tests.training_bridge.monitor.rows import Job, deliver_group
from training_bridge.monitor import export

pytestmark = pytest.mark.django_db


@pytest.fixture
def run():
    made = make_run()
    job = Job(make_life(run=made))
    job.metrics(0, entropy=2.0, kl=0.1)
    job.metrics(1, entropy="NaN", kl="-Infinity")
    job.metrics(3, entropy=1.0)
    job.metrics(0, entropy=2.5)
    deliver_group(made, step=3, outcomes="PPF")
    return made


@pytest.fixture
def reader(client, run):
    token = make_token(run=run, purposes=("read",))[1]
    return lambda path: client.get(f"/api/v1/runs/{run.public_id}/{path}", headers={"authorization": f"Bearer {token}"})


def test_a_table_has_a_line_a_step_and_words_where_a_number_is_none(reader):
    answer = reader("series/csv?name=entropy&name=kl&name=pass_rate")
    lines = async_to_sync(whole)(answer).decode().splitlines()
    assert lines == ["step,entropy,kl,pass_rate", "0,2.5,0.1,", "1,NaN,-Infinity,", f"3,1.0,,{2 / 3}"]
    assert "attachment" in answer["Content-Disposition"]


async def whole(answer) -> bytes:
    """As ASGI sends it."""
    return b"".join([piece async for piece in answer.streaming_content])


def test_a_long_table_is_sent_while_it_is_read(reader, monkeypatch):
    made = []
    told = ((step, {"entropy": 1 / 3}) for step in range(30_000) if made.append(step) is None)
    monkeypatch.setattr(export, "rows", lambda *_: told)

    async def first_piece(answer) -> bytes:
        return await anext(aiter(answer.streaming_content))

    piece = async_to_sync(first_piece)(reader("series/csv?name=entropy"))
    assert len(piece) < 300_000 and len(made) < 15_000


def test_a_table_of_more_steps_than_are_read_at_once_is_whole(run, monkeypatch):
    monkeypatch.setattr(export, "AT_ONCE", 2)
    monkeypatch.setattr(export, "STEPS_AT_ONCE", 2)
    for step in (4, 5, 6, 7):
        deliver_group(run, step=step)
    steps = [step for step, _ in export.rows(run, ["entropy", "kl", "groups", "regime_exact"], 0, 99)]
    assert steps == [0, 1, 3, 4, 5, 6, 7]


def test_a_name_that_is_a_formula_is_made_harmless():
    made = make_run()
    Job(make_life(run=made)).metrics(0, **{"=1+1": 1.0})
    assert next(export.csv_lines(made, ["=1+1"], 0, 9)) == "step,'=1+1\r\n"


def test_rows_come_in_pages(reader):
    first = reader("series/rows?name=entropy&limit=2").json()
    assert first == {
        "items": [{"step": 0, "values": {"entropy": 2.5}}, {"step": 1, "values": {"entropy": "NaN"}}], "next": 3
    }  # fmt: skip
    assert reader("series/rows?name=entropy&from=3").json() == {
        "items": [{"step": 3, "values": {"entropy": 1.0}}], "next": None
    }  # fmt: skip
    assert reader("series/rows?from=-1").status_code == 422


def test_names_and_history_of_a_step(reader):
    names = reader("series").json()
    assert [row["name"] for row in names["reported"]] == ["entropy", "kl"] and "credit_kept" in names["derived"]
    told = reader("series/history?name=entropy&step=0").json()["history"]
    assert [(row["value"], row["counts"]) for row in told] == [(2.5, True), (2.0, False)]


def test_prometheus_reads_the_newest_numbers_and_what_the_rows_say(reader, run):
    page = reader("prometheus").content.decode()
    found = {family.name: family.samples for family in text_string_to_metric_families(page)}
    newest = {sample.labels["name"]: sample.value for sample in found["gagar_metric"]}
    assert newest["entropy"] == 1.0 and newest["kl"] == float("-inf")
    assert {sample.labels["name"] for sample in found["gagar_recent"]} >= {"pass_rate", "credit_kept", "regime_exact"}
    assert found["gagar_step"][0].value == 3


def test_only_a_token_of_the_run_reads(client, run):
    other = make_token(run=make_run(), purposes=("read",))[1]
    paths = ("series", "series/curves", "series/rows", "series/csv", "series/history?name=a&step=1", "prometheus")
    for path in paths:
        url = f"/api/v1/runs/{run.public_id}/{path}"
        assert client.get(url).status_code == 401
        assert client.get(url, headers={"authorization": f"Bearer {other}"}).status_code == 404
    client.force_login(make_user(role="viewer"))
    for path in ("series.json", "series.csv", "points.json?name=entropy&step=0"):
        assert client.get(f"/runs/{run.public_id}/{path}").status_code == 404
