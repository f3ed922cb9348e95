"""Bodies are addressed by content, read event by event, and never half there."""

import hashlib
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import zstandard
from django.core.files.storage import storages

from grading import bodies
from grading.errors import BadInput, BodyCorrupt, NotFound, TooLarge
from grading.event_frames import FRAME_BYTES

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def folder(settings, tmp_path) -> Path:
    where = tmp_path / "bodies"
    disk = {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": str(where)}}
    settings.STORAGES = {**settings.STORAGES, "bodies": disk}
    return where


def stored_files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def some_events(n: int) -> list[dict]:
    return [{"kind": "action", "text": f"{i} " + "abc é\r\n\u2028" * (i % 700), "args": {"i": i}} for i in range(n)]


def test_any_range_of_events_equals_the_same_slice_of_the_list():
    events = some_events(1500)
    body = bodies.write_events(events)
    assert body.events == 1500 == bodies.count(body.sha256)
    assert body.bytes > 8 * FRAME_BYTES > body.stored_bytes
    assert bodies.read_events(body.sha256) == events
    for start, stop in [(0, 1), (1499, 1500), (700, 703), (0, 0), (5, 2), (1400, 9999), (-3, None), (123, 1100)]:
        assert bodies.read_events(body.sha256, start, stop) == events[start:stop]
    assert [bodies.read_events(body.sha256, i, i + 1)[0] for i in range(0, 1500, 37)] == events[::37]


def test_one_event_is_read_from_one_frame(folder):
    events = some_events(1500)
    body = bodies.write_events(events)
    path = folder / "events" / body.sha256[:2] / f"{body.sha256}.zst"
    broken = bytearray(path.read_bytes())
    broken[200] ^= 0xFF  # the first frame, of which the last event needs nothing
    path.write_bytes(broken)
    assert bodies.read_events(body.sha256, 1499) == events[1499:]
    with pytest.raises(BodyCorrupt, match="frame at byte 0"):
        bodies.read_events(body.sha256, 0, 1)


def test_the_key_is_the_digest_of_the_plain_ndjson_and_zstd_alone_can_read_it(folder):
    body = bodies.write_events([{"b": 1, "a": "é"}, b'{ "text": "x" }'])
    plain = '{"a":"é","b":1}\n{"text":"x"}\n'.encode()
    assert body.sha256 == hashlib.sha256(plain).hexdigest()
    assert body.bytes == len(plain)
    stored = stored_files(folder)[0].read_bytes()
    reader = zstandard.ZstdDecompressor().stream_reader(stored, read_across_frames=True)
    assert reader.read(1000) == plain


def test_the_same_events_are_written_once_whatever_the_order_of_their_keys(folder):
    first = bodies.write_events([{"kind": "action", "text": "x"}])
    before = stored_files(folder)[0].stat()
    assert bodies.write_events(['{"text": "x", "kind": "action"}']) == first
    assert [path.stat().st_ino for path in stored_files(folder)] == [before.st_ino]
    assert stored_files(folder)[0].stat().st_mtime_ns == before.st_mtime_ns


def test_a_body_may_hold_no_event_at_all():
    body = bodies.write_events([])
    assert body[:3] == (hashlib.sha256(b"").hexdigest(), 0, 0)
    assert bodies.read_events(body.sha256) == []


def test_what_no_database_takes_is_kept_in_visible_form():
    nasty = {"nul": "a\0b", "half\ud83d": "\udcff", "n": [math.nan, math.inf, -math.inf, 1.5], "fine": "😀 \\u0000"}
    got = bodies.read_events(bodies.write_events([nasty]).sha256)[0]
    assert got == {
        "nul": "a\\u0000b",
        "half\\ud83d": "\\udcff",
        "n": ["NaN", "Infinity", "-Infinity", 1.5],
        "fine": "😀 \\u0000",
    }
    lines = [b'{"text": "\\ud800 \\u0000 caf\xe9", "x": NaN, "y": 1e999}']
    got = bodies.read_events(bodies.write_events(lines).sha256)[0]
    assert got == {"text": "\\ud800 \\u0000 caf\\udce9", "x": "NaN", "y": "Infinity"}


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (b"[1]", "event 1 is not an object"),
        (b'{"a": 1', "event 1 is not JSON"),
        (b'{"a": 1, "a": 2}', "key 'a' twice"),
        (b'{"a": ' + b"[" * 70 + b"]" * 70 + b"}", "event 1 is nested too deep"),
        (b'{"a": ' + b"[" * 20_000 + b"]" * 20_000 + b"}", "event 1 is nested too deep"),
        (b'{"a": ' + b"9" * 5000 + b"}", "event 1 is not JSON"),
        ({"a": b"bytes"}, "event 1 is not JSON"),
    ],
)
def test_a_bad_event_is_refused_by_number_and_leaves_nothing(folder, event, words):
    with pytest.raises(BadInput, match=words):
        bodies.write_events([{"a": 1}, event])
    assert stored_files(folder) == []


def test_limits_refuse_one_giant_event_and_too_many_of_them(folder):
    with pytest.raises(TooLarge, match="event 0 is too long"):
        bodies.write_events([{"text": "x" * 2000}], event_limit=1000)
    with pytest.raises(TooLarge, match="too long together"):
        bodies.write_events(({"text": os.urandom(50_000).hex()} for _ in range(100)), limit=5_000_000)
    assert stored_files(folder) == []


def test_an_event_larger_than_a_frame_has_a_frame_of_its_own():
    events = [{"text": "a"}, {"text": "x" * (3 * FRAME_BYTES)}, {"text": "b"}]
    body = bodies.write_events(events)
    assert bodies.read_events(body.sha256) == events
    assert bodies.read_events(body.sha256, 2) == events[2:]


@pytest.mark.parametrize("damage", ["cut", "empty", "foreign", "flipped index"])
def test_a_damaged_body_says_so(folder, damage):
    body = bodies.write_events(some_events(50))
    path = stored_files(folder)[0]
    whole = path.read_bytes()
    flipped = whole[:-40] + bytes([whole[-40] ^ 1]) + whole[-39:]
    path.write_bytes({"cut": whole[:-9], "empty": b"", "foreign": b"x" * 500, "flipped index": flipped}[damage])
    for read in (bodies.count, bodies.read_events):
        with pytest.raises(BodyCorrupt, match=f"event body events/{body.sha256[:2]}/{body.sha256}.zst"):
            read(body.sha256)


def test_bytes_come_back_as_they_were(folder):
    for data in (b"", b"\xff\x00 no text", b"log\r\n" * 100_000):
        key = bodies.write_bytes(data)
        assert key == hashlib.sha256(data).hexdigest() == bodies.write_bytes(data)
        assert bodies.read_bytes(key) == data
        assert bodies.exists(key)
    path = folder / "plain" / key[:2] / f"{key}.zst"
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(BodyCorrupt, match=key):
        bodies.read_bytes(key)
    path.write_bytes(zstandard.compress(b"something else"))
    with pytest.raises(BodyCorrupt, match="other bytes than its key names"):
        bodies.read_bytes(key)


def test_a_stream_is_stored_only_under_the_key_it_has(folder):
    pieces = [os.urandom(300_000) for _ in range(10)]
    key = hashlib.sha256(b"".join(pieces)).hexdigest()
    with pytest.raises(BadInput, match="not those of this key"):
        bodies.write_stream(pieces, expected="0" * 64)
    assert stored_files(folder) == []
    stored = (key, sum(map(len, pieces)))
    assert bodies.write_stream(iter(pieces), expected=key) == stored == bodies.write_stream(pieces)
    assert bodies.read_bytes(key) == b"".join(pieces)
    assert len(stored_files(folder)) == 1


def test_a_body_that_was_written_before_is_taken_as_it_is():
    body = bodies.write_events([{"text": "x"}])
    assert bodies.write_events(body) is body


def test_a_missing_body_and_a_key_that_is_none_are_named():
    with pytest.raises(NotFound, match="no body events/00/0000"):
        bodies.read_events("0" * 64)
    assert not bodies.exists("0" * 64)
    for key in ("../../etc/passwd", "", "A" * 64, "0" * 63 + "\n"):
        with pytest.raises(BadInput, match="not the key of a body"):
            bodies.exists(key)


def test_a_source_that_fails_midway_leaves_nothing_under_a_key(folder):
    def events():
        yield from ({"text": os.urandom(100_000).hex()} for _ in range(30))
        raise ConnectionError("the job hung up")

    with pytest.raises(ConnectionError):
        bodies.write_events(events())
    assert stored_files(folder) == []


def run_in_child(script: str, folder: Path, **kwargs) -> subprocess.Popen:
    head = (
        "import os, resource, sys, time; from django.conf import settings\n"
        "settings.configure(STORAGES={'bodies': {'BACKEND': 'django.core.files.storage.FileSystemStorage',"
        f" 'OPTIONS': {{'location': {str(folder)!r}}}}}}})\n"
        "from grading import bodies\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", head + script], cwd=ROOT, stdout=subprocess.PIPE, text=True, **kwargs
    )


def test_a_killed_writer_leaves_a_temporary_file_that_nobody_takes_for_a_body(folder):
    script = (
        "def events():\n"
        "    for _ in range(40): yield {'text': os.urandom(100_000).hex()}\n"
        "    print('written', flush=True); time.sleep(60)\n"
        "bodies.write_events(events())"
    )
    with run_in_child(script, folder) as child:
        assert child.stdout.readline() == "written\n"
        child.send_signal(signal.SIGKILL)
    leftovers = stored_files(folder)
    assert [path.parent.name for path in leftovers] == ["incoming"]
    assert leftovers[0].suffix == ".part"
    body = bodies.write_events(some_events(10))
    assert bodies.count(body.sha256) == 10
    assert bodies.sweep_incoming() == 0  # it may be a writer that still runs
    os.utime(leftovers[0], (time.time() - 90_000, time.time() - 90_000))
    assert bodies.sweep_incoming() == 1
    assert [path.parent.parent.name for path in stored_files(folder)] == ["events"]


def test_a_body_of_60_mb_is_never_in_memory(folder):
    script = (
        "rss = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "bodies.write_events([{'text': 'warm'}]); before = rss()\n"
        "filler = os.urandom(4000).hex()\n"
        "body = bodies.write_events({'n': n, 'text': filler + os.urandom(500).hex()} for n in range(7000))\n"
        "last = bodies.read_events(body.sha256, 6999)[0]['n']\n"
        "total = sum(1 for _ in bodies.iter_events(body.sha256))\n"
        "print(body.bytes, last, total, rss() - before)"
    )
    with run_in_child(script, folder) as child:
        size, last, total, growth_kib = map(int, child.communicate(timeout=60)[0].split())
    assert size > 60_000_000
    assert (last, total) == (6999, 7000)
    assert growth_kib < 20_000


def test_a_storage_that_is_no_disk_holds_bodies_too(settings):
    memory = {"BACKEND": "django.core.files.storage.InMemoryStorage"}
    settings.STORAGES = {**settings.STORAGES, "bodies": memory}
    events = some_events(1500)
    body = bodies.write_events(events)
    assert bodies.write_events(events) == body
    assert bodies.read_events(body.sha256, 1000, 1003) == events[1000:1003]
    assert bodies.read_bytes(bodies.write_bytes(b"log")) == b"log"
    assert len(storages["bodies"].listdir(f"events/{body.sha256[:2]}")[1]) == 1
    assert bodies.sweep_incoming() == 0


def test_the_plain_form_is_one_json_object_a_line(folder):
    body = bodies.write_events([{"text": "a\nb\r\u2028\x85"}] * 3)
    plain = zstandard.ZstdDecompressor().decompressobj().decompress(stored_files(folder)[0].read_bytes())
    assert [json.loads(line) for line in plain.split(b"\n")[:-1]] == bodies.read_events(body.sha256)
