"""Uploads: outcomes first, bodies when wanted, everything again until it is there, and nothing lost in silence."""

import pytest

from training_bridge.client.spool import Spool, SpoolFull
from training_bridge.client.trajectory import text_or_base64, to_json, trajectory_fields


def submit(gagar, key="g", *, size=2, **body):
    group = gagar.declare(key, task="t", step=1, group_size=size)
    for i in range(size):
        group.submit(f"{key}-{i}", outcome="passed" if i else "failed", patch=b"--- a\n", **body)
    return group


def test_bodies_travel_when_the_server_wants_them(server, connect):
    server.bodies_answer = "wanted"
    events = [{"kind": "action", "text": "ls", "tool": "bash"}, {"kind": "observation", "text": "a\nb"}]
    with connect() as gagar:
        submit(gagar, events=events, log=b"\xff raw")
        server.wait(lambda: len(server.bodies) == 2)
    assert server.bodies[1, "g-0"] == [
        {"type": "event", "kind": "action", "text": "ls", "tool": "bash"},
        {"type": "event", "kind": "observation", "text": "a\nb"},
        {"log": b"\xff raw"},
    ]
    assert "events" not in server.trajectories[1, "g-0"] and gagar.problems == []


def test_bodies_stay_at_home_when_nobody_wants_them(server, connect):
    called = []
    with connect() as gagar:
        submit(gagar, events=lambda: called.append(1) or [], log=lambda: called.append(1) or b"")
        server.wait(lambda: server.calls["GET groups"])
        server.wait(lambda: not gagar._waiting.bodies.groups)
    assert server.bodies == {} and called == []


def test_a_callable_is_called_once_the_server_wants_its_events_and_not_before(server, connect):
    server.bodies_answer = "undecided"
    called = []

    def events():
        called.append(1)
        yield {"kind": "message", "text": "thinking"}

    with connect() as gagar:
        submit(gagar, size=1, events=events)
        server.wait(lambda: server.calls["GET groups"] > 1)
        assert called == []
        server.bodies_answer = "wanted"
        server.wait(lambda: server.bodies)
    assert called == [1] and server.bodies[1, "g-0"][0]["text"] == "thinking"


def test_an_answer_that_is_no_group_settles_nothing(server, connect):
    server.bodies_answer = "undecided"
    with connect() as gagar:
        submit(gagar, size=1, events=[{"kind": "message", "text": "thinking"}])
        server.wait(lambda: server.calls["GET groups"])
        with server.lock:
            server.statuses, server.bodies_answer = [200], "wanted"
        server.wait(lambda: server.bodies)
    assert server.statuses == [] and gagar.problems == []


def test_a_callable_that_fails_is_a_problem_and_the_others_still_travel(server, connect):
    server.bodies_answer = "wanted"
    with connect() as gagar:
        group = gagar.declare("g", task="t", step=1, group_size=2)
        group.submit("bad", outcome="failed", events=lambda: 1 / 0)
        group.submit("good", outcome="passed", events=[{"kind": "message", "text": "hi"}])
        server.wait(lambda: server.bodies)
    assert list(server.bodies) == [(1, "good")] and "bad" in gagar.problems[0]


def test_small_bodies_travel_together_and_a_large_one_alone(server, connect):
    server.bodies_answer = "undecided"
    small, large = [{"kind": "message", "text": "hi"}], [{"kind": "message", "text": "x" * 2**20}]
    with connect() as gagar:
        group = gagar.declare("g", task="t", step=1, group_size=5)
        for i in range(5):
            group.submit(f"g-{i}", outcome="passed", events=large if i == 2 else small)
        server.wait(lambda: server.calls["GET groups"])
        posts = server.calls["POST trajectories"]
        server.bodies_answer = "wanted"
        server.wait(lambda: len(server.bodies) == 5)
    assert server.calls["POST trajectories"] == posts + 2 and gagar.problems == []


def test_a_rollout_without_a_body_says_that_none_will_follow(server, connect):
    with connect() as gagar:
        submit(gagar)
        server.wait(lambda: len(server.trajectories) == 2)
    assert server.trajectories[1, "g-0"]["events"] == []


def test_a_busy_server_is_asked_again_and_nothing_is_doubled(server, connect):
    with connect() as gagar:
        server.statuses = [503, 429, 500]
        submit(gagar)
        server.wait(lambda: len(server.trajectories) == 2)
        server.wait(lambda: not server.statuses)
    assert gagar.problems == []


def test_one_bad_rollout_does_not_take_its_batch_along(server, connect):
    server.poison = "g-1"
    with connect() as gagar:
        server.wait(lambda: gagar.online)
        with server.lock:  # holds the upload back, so that the four go as one batch
            submit(gagar, size=4)
        server.wait(lambda: len(server.trajectories) == 3)
    assert server.posts[0] == ["g-0", "g-1", "g-2", "g-3"]
    assert len(gagar.problems) == 1 and "'g-1' was refused" in gagar.problems[0]


def test_a_conflict_is_told_with_the_servers_words(server, connect):
    with connect() as gagar:
        group = submit(gagar)
        server.wait(lambda: len(server.trajectories) == 2)
        server.statuses = [409]
        group.submit("late", outcome="passed")
        server.wait(lambda: gagar.problems)
    assert "late" in gagar.problems[0] and "409" in gagar.problems[0] and "expected e" in gagar.problems[0]


def test_many_rollouts_travel_in_few_posts(server, connect):
    with connect() as gagar:
        server.wait(lambda: gagar.online)
        with server.lock:
            submit(gagar, size=200)
        server.wait(lambda: len(server.trajectories) == 200)
    assert len(server.posts) <= 6


def test_a_large_rollout_goes_as_lines(server, connect):
    with connect() as gagar:
        group = gagar.declare("g", task="t", step=1, group_size=1)
        group.submit("big", outcome="passed", patch=b"x" * 7_000_000)
        server.wait(lambda: server.trajectories)
    assert len(server.trajectories[1, "big"]["patch"]) == 7_000_000 and server.posts == []


def test_a_full_spool_gives_up_bodies_first_and_says_so(server, connect, tmp_path):
    with connect(spool=tmp_path) as gagar:
        gagar._spool.limit_bytes = 3000
        group = gagar.declare("g", task="t", step=1, group_size=1)
        group.submit("r", outcome="passed", events=[{"kind": "message", "text": "x" * 4000}])
        server.wait(lambda: server.trajectories)
        assert "body of rollout 'r' is lost" in gagar.problems[0]
    assert server.trajectories[1, "r"]["events"] == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("on_disk", [False, True])
def test_the_spool_keeps_what_it_was_given_and_counts_its_room(tmp_path, on_disk):
    spool = Spool(tmp_path if on_disk else None, limit_bytes=10)
    first, second = spool.put(b"12345"), spool.put(b"6789")
    assert (spool.get(first), spool.get(second), spool.used_bytes) == (b"12345", b"6789", 9)
    with pytest.raises(SpoolFull):
        spool.put(b"ab")
    spool.drop(first)
    spool.drop(first)
    assert spool.get(spool.put(b"abcdef")) == b"abcdef"
    spool.close()
    assert list(tmp_path.iterdir()) == []


def test_text_of_any_kind_becomes_json_that_every_reader_takes():
    assert to_json({"a": "\ud800x", "b": "\0", "c": float("nan")}) == rb'{"a":"\\ud800x","b":"\\x00","c":null}'
    assert text_or_base64("patch", b"\xff") == {"patch_base64": "/w=="}
    assert text_or_base64("patch", "a\0") == {"patch_base64": "YQA="}
    fields = trajectory_fields(
        "g",
        "r",
        outcome="passed",
        reward=float("-inf"),
        patch=None,
        tests=[{"name": "t", "status": "passed"}],
        counts={"turns": 3, "cost_usd": float("nan")},
        truncated=True,
        policy_version=7,
    )
    assert fields["reward"] == "-Infinity" and fields["counts"] == {"turns": 3} and "patch" not in fields
