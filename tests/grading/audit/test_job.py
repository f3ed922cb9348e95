"""Graders of ours judge what an audit pooled: every candidate, failures too, and no word tells who made it."""

from datetime import timedelta

import pytest

from grading import clock
from grading.audit import job, sessions
from grading.audit.reading import result_of
from grading.models import AuditGroup, AuditVerdict, Trajectory
from grading.tasks import drain
from tests.grading.audit.rooms import SECRETS, make_audit, make_runs
from tests.model_scripts import Say
from tests.model_server import ModelServer

pytestmark = pytest.mark.django_db


@pytest.fixture
def server(settings):
    with ModelServer("good") as server:
        settings.GAGAR_GRADER_MODEL, settings.GAGAR_GRADER_URL = "openai:another", server.url
        settings.GAGAR_GRADER_KEY = "secret"
        yield server


def static_audit(**fields):
    return make_audit(runs=make_runs(method="outcome", **fields), grader="static")


def test_the_static_grader_judges_everybody_and_knows_of_failures():
    audit = static_audit()
    assert job.drain() == 2
    verdict = AuditVerdict.objects.filter(group__audit=audit).first()
    assert verdict.is_valid, verdict.problems
    placed = {letter for tied in verdict.ranking.values() for same in tied for letter in same}
    assert placed == set(verdict.group.candidates.values_list("letter", flat=True))
    clean = verdict.group.candidates.get(arm__number=0, passed=False)
    entry = next(one for one in verdict.reply["candidates"] if one["id"] == clean.letter)
    twin_passed = verdict.group.candidates.filter(arm__number=0, passed=True).exists()
    assert twin_passed and entry["scores"]["precision"] == 5  # the same bytes passed twice: the failure is the test's


def test_a_patch_that_always_fails_is_no_first_tier():
    audit = static_audit(outcomes=("FFF", "PPP"))
    job.drain()
    sessions.reveal(audit, by="ann")
    found = result_of(audit := type(audit).objects.get(pk=audit.pk)).overall
    assert found["T1"][0].value == 0 and found["precision"][0].value == 2
    assert found["win_rate"][0].value is None


def test_the_cleaner_method_wins_and_the_result_says_so():
    audit = static_audit(tasks=6, outcomes=("PPP", "PPP"))
    drain()
    sessions.reveal(audit, by="ann")
    result = result_of(type(audit).objects.get(pk=audit.pk))
    assert result.overall["W"][0].value > result.overall["W"][1].value
    assert [e.value for e in result.overall["win_rate"]] == [1, 0]
    assert [e.value for e in result.overall["group_first"]] == [1, 0]
    assert result.against_first["W"][1].value < 0
    assert "all 6 tasks say the same" in result.against_first["W"][1].why


@pytest.mark.parametrize("grader", ["single_pass", "agentic"])
def test_a_model_judges_failures_too_and_is_told_no_name(server, grader):
    audit = make_audit(runs=make_runs(tasks=1), grader=grader)
    assert job.drain() == 1
    verdict = AuditVerdict.objects.get(group__audit=audit)
    assert verdict.is_valid, verdict.problems
    assert verdict.prompt.startswith(f"audit_{grader}@1") and verdict.model and verdict.event_count
    said = str([request.body for request in server.requests])
    assert "its tests failed" in said or "(failed)" in said
    for word in SECRETS:
        assert word not in said, word
    assert all(id not in said for id in Trajectory.objects.values_list("external_id", flat=True))


def test_an_answer_that_is_no_verdict_is_kept_with_why_and_may_be_tried_again(server):
    audit = make_audit(runs=make_runs(tasks=1), grader="single_pass")
    server.play(Say("I like them all."))
    job.drain()
    verdict = AuditVerdict.objects.get()
    assert not verdict.is_valid and verdict.problems
    assert audit.groups.get().state == AuditGroup.State.FAILED
    assert sessions.is_finished(audit)
    server.play("good")
    assert sessions.try_again(audit) == 1
    job.drain()
    assert [v.is_valid for v in AuditVerdict.objects.all()] == [False, True]


def test_without_an_endpoint_a_group_fails_and_says_why(settings):
    settings.GAGAR_GRADER_URL, settings.GAGAR_GRADER_KEY = "", ""
    make_audit(runs=make_runs(tasks=1), grader="single_pass", model="openai:another")
    drain()
    assert "GAGAR_GRADER" in str(AuditVerdict.objects.get().problems)


def test_a_worker_that_died_leaves_nothing_stuck_and_a_late_one_is_refused():
    static_audit(tasks=1)
    late = job.next_claim(networked=False)
    assert job.next_claim(networked=False) is None
    AuditGroup.objects.update(claimed_until=clock.now() - timedelta(seconds=1))
    again = job.next_claim(networked=False)
    assert again.fencing == late.fencing + 1
    assert job.grade(late) is None and not AuditVerdict.objects.exists()
    assert job.grade(again).is_valid


def test_a_group_that_kills_its_workers_is_given_up():
    static_audit(tasks=1)
    for _ in range(job.ATTEMPTS):
        assert job.next_claim(networked=False)
        AuditGroup.objects.update(claimed_until=clock.now() - timedelta(seconds=1))
    job.drain()
    assert "died" in str(AuditVerdict.objects.get().problems)


def test_nothing_is_judged_after_the_reveal():
    audit = static_audit(tasks=1)
    claimed = job.next_claim(networked=False)
    sessions.reveal(audit, by="ann", reason="out of time", may_early=True)
    assert job.grade(claimed) is None
    AuditGroup.objects.update(state="waiting")
    assert job.drain() == 0
