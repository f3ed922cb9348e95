"""Groups declared together: each is answered as it would be alone, in one transaction."""

import pytest

from grading.models import GroupEvent, Life, RolloutGroup
from tests.factories import make_life, make_token
from tests.grading.ingest.conftest import client_with

pytestmark = pytest.mark.django_db


def said(job, key: str, **fields) -> dict:
    return {"key": key, "task": job.task.key, "step": 1, "group_size": 2} | fields


def declare(job, *groups, life: int | None = None):
    return job.post(f"{job.at}/groups", {"life": life or job.life.n, "groups": list(groups)})


def statuses(answer) -> list[tuple[str, str]]:
    return [(item["key"], item["status"]) for item in answer.json()["items"]]


def test_groups_are_declared_in_one_request_as_they_are_one_by_one(job):
    assert job.declare("alone", policy_version="7").status_code == 201
    answer = declare(job, said(job, "a/b", policy_version=7), said(job, "c", eligible=False))
    assert (answer.status_code, statuses(answer)) == (200, [("a/b", "created"), ("c", "created")])
    alone, first, second = RolloutGroup.objects.order_by("pk")
    assert (first.key, second.key, second.eligible) == ("a/b", "c", False)
    for name in ("run_id", "life_id", "task_id", "step", "policy_version", "group_size", "state"):
        assert getattr(alone, name) == getattr(first, name), name
    assert abs((alone.collect_by - first.collect_by).total_seconds()) < 60
    said_of = GroupEvent.objects.order_by("pk").values_list("group__key", "old", "new", "by", "reason")
    assert list(said_of) == [(key, "collecting", "collecting", "life:1", "declared") for key in ("alone", "a/b", "c")]


def test_the_same_again_changes_nothing_and_one_refusal_leaves_the_others(job):
    declare(job, said(job, "a"))
    answer = declare(job, said(job, "a"), said(job, "a", step=2), said(job, "b", task="none"), said(job, "c"), "text")
    assert answer.status_code == 207
    found = [(item["key"], item["status"]) for item in answer.json()["items"]]
    assert found == [("a", "exists"), ("a", "conflict"), ("b", "error"), ("c", "created"), (None, "error")]
    refused = [item["error"]["where"] for item in answer.json()["items"] if "error" in item]
    assert refused[:2] == ["step", "task"] and refused[2].startswith("groups[4]")
    assert sorted(RolloutGroup.objects.values_list("key", "step")) == [("a", 1), ("c", 1)]


def test_a_key_twice_in_one_request_is_one_group(job):
    answer = declare(job, said(job, "a"), said(job, "a"), said(job, "a", group_size=3))
    assert statuses(answer) == [("a", "created"), ("a", "exists"), ("a", "conflict")]
    assert RolloutGroup.objects.get().group_size == 2


def test_a_fenced_or_unknown_life_declares_nothing(job):
    make_life(run=job.run, n=2)
    Life.objects.filter(n=1).update(fenced_at="2026-01-01T00:00Z")
    assert [declare(job, said(job, "a"), life=n).status_code for n in (1, 3)] == [409, 404]
    assert declare(job, said(job, "a"), life=3).json()["where"] == "life"
    assert not RolloutGroup.objects.exists()


def test_a_request_has_some_groups_and_not_too_many(job):
    assert declare(job).status_code == 422
    answer = declare(job, *(said(job, f"g{n}") for n in range(1_001)))
    assert (answer.status_code, answer.json()["expected"]) == (422, "1000 groups at most")


def test_a_token_without_the_purpose_declares_nothing(job):
    reader = client_with(make_token(run=job.run, purposes=["read"])[1])
    body = {"life": job.life.n, "groups": [said(job, "a")]}
    assert reader.post(f"{job.at}/groups", body, format="json").status_code == 403
    assert reader.get(f"{job.at}/groups").status_code == 200


def test_a_whole_step_needs_as_many_queries_as_two_groups(job, django_assert_max_num_queries):
    with django_assert_max_num_queries(12):
        answer = declare(job, *(said(job, f"g{n}") for n in range(60)))
    assert len(statuses(answer)) == 60
