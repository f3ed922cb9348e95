"""A grader of the team's own reads patches and events, and hands in its verdict like any grader."""

import pytest

from grading.grader.job import GRADER_CHARS
from grading.models import MachineToken, RolloutGroup, Verdict
from tests.factories import PATCH
from tests.grading.ingest.conftest import Job, rollout
from tests.verdicts import reply_for

pytestmark = pytest.mark.django_db


@pytest.fixture
def job(db, bodies_folder):
    job = Job(grader="external", policy="auto")
    job.declare(group_size=3)
    patches = [PATCH.decode().replace("return 42", f"return {n}") for n in (1, 2, 3)]
    outcomes = ("passed", "passed", "failed")
    rollouts = zip("abc", outcomes, patches, strict=True)
    answer = job.hand_in(*[rollout(id, outcome, patch=patch) for id, outcome, patch in rollouts])
    assert answer.status_code == 200
    return job


def post(job, reply: dict, key="g"):
    return job.post(f"{job.at}/groups/{key}/verdicts", reply)


def test_its_verdict_decides_a_group_that_waits_for_it(job):
    assert job.reader.get(f"{job.at}/trajectories/a/patch").content.startswith(b"diff --git")
    answer = post(job, reply_for(RolloutGroup.objects.get()).to_json())
    assert answer.status_code == 201, answer.content
    assert (answer.json()["is_valid"], answer.json()["grader"]) == (True, "job")
    group = job.group()
    assert (group["state"], group["version"]) == ("decided", 1)
    assert job.reader.get(f"{job.at}/decisions").json()["items"][0]["kind"] == "verdict"
    assert job.reader.get(f"{job.at}/verdicts?group=g").json()["items"][0]["purpose"] == "training"
    assert post(job, reply_for(RolloutGroup.objects.get()).to_json()).json()["purpose"] == "extra"


def test_a_verdict_against_the_rules_is_kept_with_its_problems_and_the_group_falls_back(job):
    reply = reply_for(RolloutGroup.objects.get()).to_json()
    reply["candidates"].pop()
    answer = post(job, reply)
    assert answer.status_code == 201
    assert not answer.json()["is_valid"] and answer.json()["problems"]
    assert job.reader.get(f"{job.at}/decisions").json()["items"][0]["kind"] == "fallback"


def test_what_is_no_verdict_is_refused_and_nothing_moves(job):
    for reply, where in (({}, "candidates"), ({"candidates": [{"id": 7}]}, "candidates[0].id")):
        answer = post(job, reply)
        assert (answer.status_code, answer.json()["where"]) == (422, where)
    assert post(job, [1]).status_code == 422
    assert not Verdict.objects.exists()
    assert job.group()["state"] == "complete"


def test_a_verdict_before_all_rollouts_are_in_is_refused(job):
    job.declare("h")
    job.hand_in(rollout("x", group="h"))
    answer = post(job, reply_for(RolloutGroup.objects.get(key="h")).to_json(), "h")
    assert (answer.status_code, "still collecting" in answer.json()["what"]) == (409, True)


def test_a_token_with_a_long_name_signs_its_verdicts_with_the_beginning_of_it(job):
    MachineToken.objects.update(name="g" * 100)
    answer = post(job, reply_for(RolloutGroup.objects.get()).to_json())
    assert (answer.status_code, answer.json()["grader"]) == (201, "g" * GRADER_CHARS)
