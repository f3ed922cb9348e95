"""Rollouts that arrive together: stored together, answered one by one, and no two uploads wait crosswise."""

import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from grading import bodies, wake
from grading.errors import Conflict
from grading.ingest.adding import Added, Item, add_all
from grading.ingest.rollout import Rollout, store_bodies
from grading.models import GroupEvent, Life, RolloutGroup, Trajectory
from grading.shelf import Shelf
from grading.states import GroupState
from tests.factories import make_run
from tests.grading.ingest.conftest import rollout
from tests.grading.ingest.test_assemble import both, declared

EVENT = {"kind": "message", "text": "hello"}


def lines(external_id, *events, outcome="passed", **fields) -> bytes:
    head = {"type": "trajectory"} | rollout(external_id, outcome, **fields)
    every = [head, *({"type": "event"} | event for event in events), {"type": "end"}]
    return b"".join(json.dumps(line).encode() + b"\n" for line in every)


def items(*pairs) -> list[Item]:
    rollouts = [(group, Rollout(external_id, "passed")) for group, external_id in pairs]
    return [Item(group, said, store_bodies(said)) for group, said in rollouts]


def test_a_batch_that_fills_its_group_makes_the_rest_of_it_late(job):
    job.declare(group_size=2)
    answer = job.hand_in(*(rollout(name, "failed" if name == "a" else "passed") for name in "bac"))
    assert [item["status"] for item in answer.json()["items"]] == ["created", "created", "late"]
    group = RolloutGroup.objects.get()
    assert group.state == GroupState.COMPLETE
    assert list(group.trajectories.counted().values_list("external_id", flat=True)) == ["b", "a"]
    assert list(group.events.values_list("reason", flat=True))[1:] == ["all rollouts are in", "late rollout c"]


def test_an_id_twice_in_one_batch_is_one_row(job):
    job.declare(group_size=5)
    body = lines("a") + lines("a") + lines("a", EVENT) + lines("a", EVENT) + lines("a", outcome="failed")
    answer = job.stream(body)
    assert [item["status"] for item in answer.json()["items"]] == ["created", "exists", "filled", "exists", "conflict"]
    [row] = Trajectory.objects.all()
    assert row.event_count == 1 and bodies.read_events(row.event_body) == [EVENT]


@pytest.mark.django_db(transaction=True)
def test_the_bodies_of_groups_come_as_one_stream_and_ring_the_worker_once(job, monkeypatch):
    rings = []
    monkeypatch.setattr(wake, "_ring_worker", lambda: rings.append(1))
    for key in "gh":
        job.declare(key)
        job.hand_in(rollout(f"{key}a", group=key), rollout(f"{key}b", "failed", group=key))
    pairs = [(key, name) for key in "gh" for name in ("a", "b")]
    body = b"".join(
        lines(key + name, EVENT | {"text": key + name}, outcome="passed" if name == "a" else "failed", group=key)
        for key, name in pairs
    )
    rings.clear()
    answer = job.stream(body)
    assert [item["status"] for item in answer.json()["items"]] == ["filled"] * 4
    assert [group.bodies_ready for group in RolloutGroup.objects.all()] == [True, True]
    assert GroupEvent.objects.filter(reason="all wanted bodies are in").count() == 2
    assert rings == [1]


def test_a_batch_costs_few_queries_whatever_its_length(job):
    counts = []
    for key, many in (("g", 4), ("h", 40)):
        job.declare(key, group_size=50)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            job.hand_in(*(rollout(f"{key}{n}", group=key) for n in range(many)))
        counts.append(len(queries))
    assert counts[0] == counts[1] < 20


def test_what_breaks_in_the_middle_leaves_the_others_and_no_temporary_file(job, bodies_folder):
    job.declare(group_size=9)
    broken = lines("b", EVENT | {"kind": "dream"}, patch="two")
    answer = job.stream(lines("a", EVENT, patch="one") + broken + lines("c", EVENT, patch="three") + lines("d")[:-5])
    assert [item["status"] for item in answer.json()["items"]] == ["created", "error", "created", "error"]
    assert set(Trajectory.objects.values_list("external_id", flat=True)) == {"a", "c"}
    assert not list(bodies_folder.glob("incoming/*"))


@pytest.mark.django_db(transaction=True)
def test_two_uploads_that_name_the_same_groups_in_opposite_order_both_go_in(bodies_folder):
    first = declared(group_size=50)
    second = declared(run=first.run, key="h", group_size=50)
    pairs = [(group, n) for n in range(20) for group in (first, second)]
    one = items(*((group, f"one {group.key} {n}") for group, n in pairs))
    other = items(*((group, f"other {group.key} {n}") for group, n in reversed(pairs)))
    results = both(lambda: add_all(one, by="test"), lambda: add_all(other, by="test"))
    assert all(isinstance(added, Added) for result in results for added in result)
    assert Trajectory.objects.count() == 80


@pytest.mark.django_db(transaction=True)
def test_the_same_ids_in_two_groups_crosswise_are_each_in_one_of_them(bodies_folder):
    first = declared(group_size=50)
    second = declared(run=first.run, key="h", group_size=50)
    ids = [str(n) for n in range(10)]
    one, other = items(*((first, name) for name in ids)), items(*((second, name) for name in reversed(ids)))
    results = both(lambda: add_all(one, by="test"), lambda: add_all(other, by="test"))
    kinds = [type(added) for result in results for added in result]
    assert (kinds.count(Added), kinds.count(Conflict)) == (10, 10)
    assert Trajectory.objects.count() == 10


@pytest.mark.django_db
def test_a_fenced_life_refuses_its_items_only(bodies_folder):
    run = make_run()
    old = declared(run=run)
    Life.objects.filter(pk=old.life_id).update(fenced_at="2026-01-01T00:00:00Z")
    fresh = declared()
    refused, added = add_all(items((old, "a"), (fresh, "a")), by="test")
    assert type(refused).__name__ == "Fenced" and added.is_new


def test_a_shelf_names_nothing_before_it_keeps_and_drops_what_it_did_not(bodies_folder, settings):
    with Shelf() as shelf:
        key = bodies.write_bytes(b"kept", shelf=shelf)
        assert bodies.write_bytes(b"kept", shelf=shelf) == key
        assert not bodies.exists(key)
        shelf.keep()
        assert bodies.read_bytes(key) == b"kept"
        lost = bodies.write_events([EVENT], shelf=shelf)
    assert not bodies.exists(lost.sha256)
    assert not list(bodies_folder.glob("incoming/*"))
