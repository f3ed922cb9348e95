"""The messages as JSON text: what is written can be read, what is bad is refused with its place."""

import json
import math
from collections import Counter

import pytest

from training_bridge.protocol.messages import (
    FATAL,
    LIMIT_BYTES,
    AdvantageRow,
    Advantages,
    CloseCode,
    Control,
    Durable,
    Error,
    Estimator,
    Metrics,
    Noted,
    ProtocolError,
    Receipt,
    Received,
    Resume,
    Want,
    Welcome,
)
from training_bridge.protocol.wire import (
    decode_from_job,
    decode_from_server,
    digest_of,
    encode,
    encode_row,
    metric_values,
)


def make_row(*, trajectory="t0", reward=1.0, advantage=0.5) -> AdvantageRow:
    return AdvantageRow(
        trajectory=trajectory,
        outcome="passed",
        reward=reward,
        equivalent_reward=reward,
        advantage=advantage,
        factor=0.4,
    )


def make_advantages(*, seq=1, rows=None, lambda_=1.5) -> Advantages:
    rows = (make_row(),) if rows is None else rows
    return Advantages(
        seq=seq, group="g", life=1, version=1, step=3, regime="exact", train=True, lambda_=lambda_, rows=rows
    )


JOB = [
    Resume(life=2, epoch=1, after_seq=7, digest="a" * 64, estimator=Estimator(loss="token mean")),
    Want(life=2, groups=("g1", "g2"), within_s=4.5),
    Received(seq=9),
    Durable(seq=9),
    Receipt(n=1, life=1, group="g", version=0, status="applied", step=3),
    Metrics(n=2, step=3, values={"loss": 0.1, "entropy": "NaN", "kl": "-Infinity"}),
    Error(code=4411, message="gap"),
]
SERVER = [
    Welcome(epoch=1, head_seq=7, estimator=Estimator(), window=256, mode="normal"),
    make_advantages(),
    Control(seq=2, mode="outcome_only", reason="paused by alice"),
    Noted(n=2),
    Error(code=4411, message="gap"),
]


@pytest.mark.parametrize("message", JOB, ids=lambda m: type(m).__name__)
def test_what_a_job_sends_is_read_back_the_same(message):
    assert decode_from_job(encode(message)) == message


@pytest.mark.parametrize("message", SERVER, ids=lambda m: type(m).__name__)
def test_what_the_server_sends_is_read_back_the_same(message):
    assert decode_from_server(encode(message)) == message


def test_the_wire_calls_it_lambda_and_writes_null_where_there_is_none():
    wire = json.loads(encode(make_advantages()))
    assert wire["type"] == "advantages" and wire["lambda"] == 1.5
    assert wire["history_head"] is None and wire["rows"][0]["integrity"] is None


def test_a_row_is_encoded_once_to_text_and_digest():
    text, digest = encode_row(make_advantages(rows=(make_row(trajectory="täst"),)))
    assert digest == digest_of(text) and len(digest) == 64
    assert decode_from_server(text.encode()).rows[0].trajectory == "täst"


def test_fields_we_do_not_know_are_ignored_and_counted():
    unknown = Counter()
    text = '{"type":"resume","life":1,"epoch":1,"after_seq":0,"shoe":1,"estimator":{"lace":1}}'
    assert decode_from_job(text, unknown).life == 1
    row = json.loads(encode(make_advantages()))
    row["rows"][0]["rank"] = 1
    decode_from_server(json.dumps(row), unknown)
    assert unknown == {"resume.shoe": 1, "resume.lace": 1, "advantages.rank": 1}


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("{", "not JSON"),
        ("[]", "expected `object`"),
        ("[" * 100_000, "not JSON"),
        (b"\xff", "not JSON"),
        ("\ud800", "not JSON"),
        ('{"type":"received","seq":NaN}', "not JSON"),
        ('{"type":"metrics","n":1,"step":1,"values":{"a":1e999}}', "not JSON"),
        ('{"type":"nope"}', "nope"),
        ('{"seq":1}', "type"),
        ('{"type":"noted","n":1}', "noted"),
        ('{"type":"received"}', "seq"),
        ('{"type":"received","seq":"1"}', "$.seq: got `str`, expected `int`"),
        ('{"type":"received","seq":1.5}', "$.seq: got `float`, expected `int`"),
        ('{"type":"received","seq":true}', "$.seq: got `bool`, expected `int`"),
        ('{"type":"received","seq":-1}', "`int` >= 0"),
        ('{"type":"received","seq":9223372036854775808}', "$.seq"),
        ('{"type":"want","life":1,"groups":[""],"within_s":1}', "$.groups[0]"),
        ('{"type":"want","life":1,"groups":["a\\u0000"],"within_s":1}', "$.groups[0]"),
        ('{"type":"receipt","n":1,"life":1,"group":"g","version":1,"status":"lost","step":1}', "lost"),
        ('{"type":"metrics","n":1,"step":1,"values":{"a":"nan"}}', "nan"),
        ('{"type":"received","seq":1,"x":"' + "x" * LIMIT_BYTES + '"}', "too large"),
    ],
)
def test_a_bad_message_is_refused_with_what_got_and_expected(text, part):
    with pytest.raises(ProtocolError) as refused:
        decode_from_job(text)
    assert part in str(refused.value)
    assert refused.value.code == CloseCode.BAD_MESSAGE
    assert len(refused.value.reason.encode()) <= 123


@pytest.mark.parametrize(
    "row",
    [
        make_advantages(rows=(make_row(reward=math.nan),)),
        make_advantages(rows=(make_row(advantage=math.inf),)),
        make_advantages(lambda_=math.inf),
        make_advantages(seq=0),
        make_advantages(rows=tuple(make_row(trajectory=f"{i:0200d}") for i in range(2000))),
    ],
    ids=["reward", "advantage", "lambda", "seq", "size"],
)
def test_a_row_the_job_could_not_read_is_never_written(row):
    with pytest.raises(ProtocolError):
        encode_row(row)


def test_metrics_travel_as_numbers_and_words_and_come_back_as_floats():
    values = metric_values({"a": 1, "b": math.nan, "c": -math.inf, "d": math.inf})
    assert values == {"a": 1.0, "b": "NaN", "c": "-Infinity", "d": "Infinity"}
    sent = decode_from_job(encode(Metrics(n=1, step=0, values=values))).values
    assert float(sent["a"]) == 1.0 and math.isnan(float(sent["b"])) and float(sent["d"]) > 0
    with pytest.raises((TypeError, ValueError)):
        metric_values({"a": "many"})


@pytest.mark.parametrize("name", ["", "x" * 81])
def test_a_metric_whose_name_no_server_keeps_is_refused_by_name_on_both_sides(name):
    with pytest.raises(ProtocolError, match=f"name of metric '{name}'"):
        metric_values({name: 1.0})
    with pytest.raises(ProtocolError, match="values"):
        decode_from_job(json.dumps({"type": "metrics", "n": 1, "step": 0, "values": {name: 1.0}}))
    assert metric_values({"x" * 80: 1.0})


def test_the_close_code_table_is_whole_and_says_what_it_means():
    assert {int(code) for code in CloseCode} == {4400, 4401, 4403, 4404, 4409, 4410, 4411, 4412, 4429, 1012}
    assert all(code.meaning for code in CloseCode)
    assert {int(code) for code in FATAL} == {4401, 4403, 4404, 4409, 4410}


def test_the_largest_group_that_may_be_declared_fits_a_message():
    long = -0.1234567890123456e-100
    rows = tuple(make_row(trajectory=f"{n:0200}", reward=long, advantage=long) for n in range(512))
    text, _ = encode_row(make_advantages(rows=rows))
    assert len(text) < LIMIT_BYTES
