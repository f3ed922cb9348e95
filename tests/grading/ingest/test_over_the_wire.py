"""The same API behind the real server: large bodies, odd headers, hosts that are not ours."""

import json
import resource
from itertools import count

import httpx
import pytest
import zstandard

from gagar_web import body_guard
from grading.models import Trajectory
from tests.grading.ingest.conftest import Job, rollout

MIB = 2**20


@pytest.fixture
def wire(server, bodies_folder):
    job = Job()
    headers = {"Authorization": f"Bearer {job.secret}"}
    with httpx.Client(base_url=server, headers=headers, timeout=120) as client:
        job.wire = client
        yield job


def long_trajectory(megabytes: int):
    """NDJSON of one trajectory, made as it is sent."""
    yield json.dumps({"type": "trajectory"} | rollout()).encode() + b"\n"
    sent = 0
    for n in count():
        if sent > megabytes * MIB:
            break
        line = (
            json.dumps({"type": "event", "kind": "observation", "text": f"{n} " + f"{n:x}" * 10_000}).encode() + b"\n"
        )
        sent += len(line)
        yield line
    yield b'{"type": "end"}\n'


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def test_a_long_trajectory_streams_through_a_bounded_memory(wire):
    wire.declare(group_size=1)
    url = f"{wire.at}/trajectories?life={wire.life.n}"
    headers = {"Content-Type": "application/x-ndjson"}
    wire.wire.post(url, content=long_trajectory(1), headers=headers)
    Trajectory.objects.all().update(external_id="before")
    before = peak_mib()
    answer = wire.wire.post(url, content=long_trajectory(60), headers=headers)
    assert answer.status_code == 201, answer.text
    assert peak_mib() - before < 40
    row = Trajectory.objects.get(external_id="a")
    assert row.event_count > 1000
    start = row.event_count - 1
    page = wire.reader.get(f"{wire.at}/trajectories/a/events?start={start}").json()
    assert page["events"][0]["text"].startswith(f"{start} ")


def test_zstd_and_gzip_travel(wire):
    wire.declare()
    plain = b"".join(long_trajectory(1))
    packed = zstandard.ZstdCompressor().compressobj()
    headers = {"Content-Type": "application/x-ndjson", "Content-Encoding": "zstd"}
    body = packed.compress(plain) + packed.flush()
    answer = wire.wire.post(f"{wire.at}/trajectories?life=1", content=body, headers=headers)
    assert (answer.status_code, answer.json()["items"][0]["status"]) == (201, "created")


def test_a_charset_that_is_no_text_is_refused(wire):
    headers = {"Content-Type": "application/json; charset=bz2_codec"}
    answer = wire.wire.post(f"{wire.at}/lives?x=%C3", content=b"{}", headers=headers)
    assert (answer.status_code, answer.json()["where"]) == (415, "Content-Type")


def test_a_body_over_every_limit_is_refused_before_it_is_stored(wire, monkeypatch):
    monkeypatch.setattr(body_guard, "STREAM_LIMIT", 2 * MIB)
    headers = {"Content-Type": "application/x-ndjson"}
    for content in (b"x" * 3 * MIB, (b"x" * MIB for _ in range(4))):
        answer = wire.wire.post(f"{wire.at}/trajectories?life=1", content=content, headers=headers)
        assert (answer.status_code, answer.json()["what"]) == (413, "the body is too large")


@pytest.mark.parametrize("authorization", ["", "Bearer gagar_guessed", "Basic YTpi"])
def test_a_large_body_without_a_token_that_works_is_refused_before_it_is_stored(wire, authorization):
    headers = {"Content-Type": "application/x-ndjson", "Authorization": authorization}
    sent = []

    def endless():
        for n in range(64):
            sent.append(n)
            yield b"x" * MIB

    for content in (b"x" * 2 * MIB, endless()):
        answer = wire.wire.post(f"{wire.at}/trajectories?life=1", content=content, headers=headers)
        assert (answer.status_code, answer.json()["where"]) == (401, "Authorization")
    assert len(sent) < 64


def test_a_host_that_is_not_ours_is_told_in_json(wire):
    answer = wire.wire.get(f"{wire.at}/groups/g", headers={"Host": "evil.example"})
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/json"
