"""No input makes the API fail, answer HTML, or store half of anything."""

import gzip
import json

import pytest
import zstandard

from grading.models import MachineToken, RolloutGroup, Task, Trajectory
from tests.factories import make_run, make_task, make_token
from tests.grading.ingest.conftest import client_with, rollout

pytestmark = pytest.mark.django_db

SHAPE = {"what", "got", "expected", "where"}


def item(**fields) -> bytes:
    return json.dumps({"life": 1, "trajectories": [rollout() | fields]}).encode()


def with_value(name: str, text: str) -> bytes:
    """One item whose field holds this JSON text, which `json` itself may not be able to say."""
    return item(**{name: "HERE"}).replace(b'"HERE"', text.encode())


DEEP = "[" * 20_000 + "]" * 20_000
BAD_JSON = {
    "not JSON": (b"{", 400, "the body"),
    "empty body": (b"", 415, "Content-Type"),
    "not UTF-8": (item(log="\xff").replace(b"\\u00ff", b"\xff"), 400, "the body"),
    "a list": (b"[]", 422, ""),
    "null": (b"null", 422, ""),
    "bare NaN": (with_value("reward", "NaN"), 400, "trajectories[0].reward"),
    "bare Infinity": (with_value("reward", "-Infinity"), 400, "trajectories[0].reward"),
    "1e999": (with_value("counts", '{"turns": 1e999}'), 400, "trajectories[0].counts.turns"),
    "NaN inside an event": (with_value("events", '[{"kind": "message", "args": {"x": NaN}}]'), 400, "events[0].args.x"),
    "a number of 5,000 digits": (with_value("reward", "1" * 5000), 400, "the body"),
    "a number of 400 digits": (with_value("reward", "1" * 400), 422, "reward"),
    "a key twice": (b'{"life": 1, "life": 2, "trajectories": []}', 400, "the body"),
    "a key twice, deep": (with_value("events", '[{"kind": "message", "text": "", "text": ""}]'), 400, "the body"),
    "nesting": (with_value("events", DEEP), 400, "the body"),
    "nesting in args": (with_value("events", f'[{{"args": {"[" * 80 + "]" * 80}}}]'), 400, "the body"),
    "NUL in an id": (item(external_id="a\0b"), 422, "external_id"),
    "a lone surrogate in an id": (item(external_id="a\udc80"), 422, "external_id"),
    "a lone surrogate in a group": (item(group="\ud800"), 422, "group"),
    "a lone surrogate in a patch": (item(patch="\ud800"), 422, "patch"),
    "a newline in an id": (item(external_id="a\nb"), 422, "external_id"),
    "an empty id": (item(external_id=""), 422, "external_id"),
    "a long id": (item(external_id="a" * 201), 422, "external_id"),
    "an id that is a number": (item(external_id=7), 422, "external_id"),
    "no outcome": (item(outcome=None), 422, "outcome"),
    "an unknown outcome": (item(outcome="won"), 422, "outcome"),
    "a reward in words": (item(reward="much"), 422, "reward"),
    "a reward that is true": (item(reward=True), 422, "reward"),
    "truncated in words": (item(truncated="yes"), 422, "truncated"),
    "counts that are a list": (item(counts=[1]), 422, "counts"),
    "a count in words": (item(counts={"turns": "many"}), 422, "counts"),
    "tests without a status": (item(tests=[{"name": "t"}]), 422, "tests[0].status"),
    "tests that are one object": (item(tests={"name": "t"}), 422, "tests"),
    "not base64": (item(patch_base64="*"), 422, "patch_base64"),
    "two patches": (item(patch="", patch_base64=""), 422, "patch"),
    "events that are text": (item(events="none"), 422, "events"),
    "an event that is text": (item(events=["hello"]), 422, "events[0]"),
    "an event of no kind": (item(events=[{"text": "hello"}]), 422, "events[0].kind"),
    "an event of an unknown kind": (item(events=[{"kind": "thought", "text": ""}]), 422, "events[0].kind"),
    "an event without text": (item(events=[{"kind": "message"}]), 422, "events[0].text"),
    "an event of another place": (item(events=[{"kind": "message", "text": "", "index": 4}]), 422, "events[0].index"),
    "an exit code in words": (item(events=[{"kind": "test", "text": "", "exit_code": "0"}]), 422, "exit_code"),
    "no life": (b'{"trajectories": [{}]}', 422, "life"),
    "a life that is true": (b'{"life": true, "trajectories": [{}]}', 422, "life"),
    "a life that is not there": (b'{"life": 99, "trajectories": [{}]}', 404, "life"),
    "no trajectories": (b'{"life": 1, "trajectories": []}', 422, "trajectories"),
    "a trajectory that is a number": (b'{"life": 1, "trajectories": [7]}', 422, "trajectories[0]"),
    "an unknown group": (item(group="h"), 404, "group"),
    "bodies of an unknown rollout": (item(log="l").replace(b'"outcome"', b'"unknown"'), 404, "external_id"),
    "over 8 MiB": (item(log="x" * 9_000_000), 413, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_JSON)
def test_bad_json_is_refused_with_the_place_and_stores_nothing(job, name):
    body, status, where = BAD_JSON[name]
    job.declare()
    answer = job.stream(body, content_type="application/json" if body else "")
    refused(answer, status, where)
    assert not Trajectory.objects.exists()


def refused(answer, status: int, where: str | None = None) -> dict:
    assert answer["Content-Type"] == "application/json", answer.content[:200]
    said = json.loads(answer.content)
    assert said.keys() >= SHAPE, said
    assert answer.status_code == status, said
    if where:
        assert where in said["where"], said
    return said


LINE = json.dumps({"type": "trajectory"} | rollout()).encode() + b"\n"
EVENT = b'{"type": "event", "kind": "message", "text": "hi"}\n'
END = b'{"type": "end"}\n'
BAD_LINES = {
    "cut after the first line": (LINE, 400, "the last line"),
    "cut between events": (LINE + EVENT, 400, "the last line"),
    "cut inside an event": (LINE + EVENT + EVENT[:20], 400, "line 3"),
    "no lines": (b"", 422, "the body"),
    "blank lines": (b"\n \n", 422, "the body"),
    "an event first": (EVENT + END, 422, "line 1"),
    "an unknown line": (LINE + b'{"type": "note"}\n' + END, 422, "line 2"),
    "a line without a type": (LINE + b"{}\n" + END, 422, "line 2"),
    "a line that is a list": (b"[]\n", 422, "line 1"),
    "NaN in an event": (LINE + EVENT.replace(b'"hi"', b'"hi", "duration_s": NaN') + END, 400, "duration_s"),
    "a bad event": (LINE + EVENT.replace(b"message", b"dream") + END, 422, "line 2"),
    "events twice": (LINE.replace(b'"group"', b'"events": [], "group"') + EVENT + END, 422, "events"),
    "not JSON": (b"hello\n", 400, "line 1"),
    "a line over 16 MiB": (LINE + EVENT.replace(b"hi", b"x" * 17_000_000) + END, 413, "line 2"),
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_bad_lines_are_refused_with_the_place_and_store_nothing(job, name, bodies_folder):
    body, status, where = BAD_LINES[name]
    job.declare()
    refused(job.stream(body), status, where)
    assert not Trajectory.objects.exists()
    assert not list(bodies_folder.glob("incoming/*"))


def gz(data: bytes) -> bytes:
    return gzip.compress(data, 9)


def zs(data: bytes) -> bytes:
    return zstandard.compress(data, 3)


BOMB = LINE + EVENT.replace(b"hi", b"0" * 15_000_000) * 20 + END
ENCODED = {
    "cut gzip": ("gzip", gz(LINE + END)[:30], 400),
    "cut zstd": ("zstd", zs(LINE + END)[:-3], 400),
    "no gzip": ("gzip", b"hello", 400),
    "no zstd": ("zstd", b"hello", 400),
    "a gzip bomb": ("gzip", gz(BOMB), 413),
    "a zstd bomb": ("zstd", zs(BOMB), 413),
    "brotli": ("br", b"hello", 415),
    "two encodings": ("gzip, zstd", b"hello", 415),
}


@pytest.mark.parametrize("name", ENCODED)
def test_what_does_not_decompress_is_refused(job, name):
    encoding, body, status = ENCODED[name]
    job.declare()
    refused(job.stream(body, HTTP_CONTENT_ENCODING=encoding), status)
    assert not Trajectory.objects.exists()


def test_what_was_whole_before_the_body_broke_is_kept_and_said(job):
    job.declare(group_size=9)
    for at, end in enumerate((b"trailing bytes", b"")):
        body = gz(LINE.replace(b'"a"', b'"%d"' % at) + END)
        answer = job.stream(body + end if end else body[:-6], HTTP_CONTENT_ENCODING="gzip")
        assert answer.status_code == 207
        assert [item["status"] for item in answer.json()["items"]] == ["created", "error"]
    assert Trajectory.objects.count() == 2


def test_a_bomb_of_one_json_document_is_too_large(job):
    for encoding, pack in (("gzip", gz), ("zstd", zs)):
        answer = job.stream(pack(b" " * 200_000_000), content_type="application/json", HTTP_CONTENT_ENCODING=encoding)
        refused(answer, 413)


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("text/plain", 415),
        ("multipart/form-data; boundary=x", 415),
        ("application/json; charset=utf-16", 415),
        ("", 415),
        ('application/json; charset="UTF-8"', 201),
    ],
)
def test_other_content_types_and_charsets_are_refused(job, content_type, status):
    job.declare()
    assert job.stream(item(), content_type=content_type).status_code == status


def test_text_that_only_says_something_is_stored_with_its_odd_letters_visible(job):
    job.declare(group_size=1)
    odd = "a\0b\udc80"
    body = item(log=odd, tests=[{"name": odd, "status": "passed"}], events=[{"kind": "message", "text": odd}])
    assert job.stream(body, content_type="application/json").status_code == 201
    seen = r"a\u0000b\udc80"
    row = Trajectory.objects.get()
    assert row.tests == [{"name": seen, "status": "passed"}]
    assert job.reader.get(f"{job.at}/trajectories/a/log").content.decode() == seen
    assert job.reader.get(f"{job.at}/trajectories/a/events").json()["events"][0]["text"] == seen


BAD_GROUPS = {
    "no task": ({"task": "unknown"}, 422, "task"),
    "a negative step": ({"step": -1}, 422, "step"),
    "a step in words": ({"step": "1"}, 422, "step"),
    "a huge step": ({"step": 2**31}, 422, "step"),
    "an empty group": ({"group_size": 0}, 422, "group_size"),
    "a group that no message holds": ({"group_size": 513}, 422, "group_size"),
    "eligible in words": ({"eligible": "yes"}, 422, "eligible"),
    "life 0": ({"life": 0}, 422, "life"),
    "a policy that is a list": ({"policy_version": []}, 422, "policy_version"),
}


@pytest.mark.parametrize("name", BAD_GROUPS)
def test_bad_groups_are_refused(job, name):
    fields, status, where = BAD_GROUPS[name]
    refused(job.declare(**fields), status, where)
    assert not RolloutGroup.objects.exists()


BAD_TASKS = {
    "no statement": ({}, 422, "statement"),
    "an unknown repository": ({"statement": "s", "repository": "0" * 64}, 422, "repository"),
    "a host that is not allowed": ({"statement": "s", "repository": "https://10.0.0.1/x.git"}, 422, "repository"),
    "a file on this machine": ({"statement": "s", "repository": "file:///etc/passwd"}, 422, "repository"),
    "a broken URL": ({"statement": "s", "repository": "https://[::1"}, 422, "repository"),
    "two patches": ({"statement": "s", "reference_patch": "", "reference_patch_base64": ""}, 422, "reference_patch"),
    "a commit with a NUL": ({"statement": "s", "base_commit": "\0"}, 422, "base_commit"),
}


@pytest.mark.parametrize("name", BAD_TASKS)
def test_bad_tasks_are_refused(job, name):
    fields, status, where = BAD_TASKS[name]
    refused(job.put("/api/v1/tasks/new", fields), status, where)
    assert not Task.objects.filter(key="new").exists()


ADDRESSES = [
    ("GET", "/api/v1/", 404),
    ("GET", "/api/v1/nothing/here", 404),
    ("DELETE", "/api/v1/runs/x/nothing", 404),
    ("GET", "{at}/nothing", 404),
    ("DELETE", "{at}/groups/g", 405),
    ("GET", "{at}/lives", 405),
    ("PATCH", "/api/v1/tasks/t", 405),
    ("GET", "{at}/groups/%00", 400),
    ("GET", "{at}/groups/%ff", 404),
    ("GET", "{at}/groups/" + "k" * 201, 400),
    ("GET", "{at}/groups/g?life=one", 422),
    ("GET", "{at}/groups/g?life=0", 422),
    ("GET", "{at}/groups/g?life=%00", 422),
    ("GET", "{at}/groups/g?life=99999999999999999999", 422),
    ("GET", "{at}/groups/g?life=%C2%B2", 422),
    ("PUT", "/api/v1/repositories/xyz", 422),
    ("GET", "/api/v1/runs/%00/groups/g", 404),
]


@pytest.mark.parametrize(("method", "path", "status"), ADDRESSES)
def test_wrong_addresses_and_methods_answer_in_json(job, method, path, status):
    refused(job.client.generic(method, path.format(at=job.at)), status)


def test_any_accept_header_gets_json(job):
    for accept in ("text/html", "image/png", "*/*", ""):
        assert job.client.get(f"{job.at}/groups/g", HTTP_ACCEPT=accept)["Content-Type"] == "application/json"
    refused(job.client.get(f"{job.at}/groups/g?format=html"), 404, "group")


def test_a_token_opens_its_own_run_and_purpose_only(job):
    job.declare()
    path = f"{job.at}/groups/g"
    anonymous = client_with("")
    anonymous.credentials()
    refused(anonymous.get(path), 401, "Authorization")
    assert anonymous.get(path)["WWW-Authenticate"] == "Bearer"
    refused(anonymous.get(f"{path}?token={job.secret}"), 401)
    for header in ("Bearer", "Bearer wrong", f"Basic {job.secret}", "Bearer \xff", "Bearer a b"):
        anonymous.credentials(HTTP_AUTHORIZATION=header)
        refused(anonymous.get(path), 401, "Authorization")
    anonymous.credentials(HTTP_AUTHORIZATION=f"Token {job.secret}")
    assert anonymous.get(path).status_code == 200
    refused(job.reader.put(path, {}, format="json"), 403, "Authorization")
    refused(job.reader.post(f"{job.at}/lives", {}, format="json"), 403)
    assert job.reader.get(path).status_code == 200
    refused(job.client.get(f"{job.at}/decisions"), 403)
    stranger = client_with(make_token(run=make_run())[1])
    refused(stranger.get(path), 404, "run")
    refused(stranger.get(f"/api/v1/tasks/{job.task.key}"), 404, "task")
    MachineToken.objects.get(pk=job.token.pk).revoke()
    refused(job.client.get(path), 401)


def test_a_key_of_another_team_is_free_to_use(job):
    other = make_task()
    assert job.put(f"/api/v1/tasks/{other.key}", {"statement": "mine"}).status_code == 201
