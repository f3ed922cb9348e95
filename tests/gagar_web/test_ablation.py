import asyncio
import sys
from dataclasses import replace

import pytest

from gagar_web.ablation import Jobs, Size, jobs_of, runs_of
from gagar_web.embedded import Child
from tests.factories import flash, make_team
from training_bridge.ablation.lines import ARMS
from training_bridge.models import MetricPoint

SIZE = Size(steps=5, seeds=2, groups=2, rollouts=4, rounds=2)


@pytest.fixture
def team(db):
    flash()
    return make_team(slug="default")


def child(name, code):
    return Child(name, [sys.executable, "-S", "-c", code], ends=True)


def ran(children, *, at_once):
    jobs = Jobs(iter(children), at_once)
    asyncio.run(jobs.supervise())
    assert jobs.has_ended and not jobs.running
    return jobs


def test_every_arm_has_a_run_a_seed_and_a_second_start_makes_no_more(team, tmp_path):
    runs = runs_of(SIZE)
    assert [(run.method, run.public_id) for run in runs[:5]] == [(arm, f"ablation-{arm}-0") for arm in ARMS]
    assert {run.pk for run in runs_of(SIZE)} == {run.pk for run in runs} and len(runs) == 10
    assert {(run.policy, run.grader, run.hold_budget, run.grading_deadline_s) for run in runs} == {
        ("auto", "static", 0, None)
    }


def test_two_of_the_methods_are_run_alone_and_every_arm_keeps_what_an_audit_pools(team):
    runs = runs_of(replace(SIZE, methods=("redistribute", "outcome")))
    assert [run.method for run in runs] == ["redistribute", "outcome"] * 2
    assert {run.bodies_share for run in runs} == {1.0}


def test_all_arms_reach_a_stage_before_one_goes_on_and_what_is_done_is_not_done_again(team, tmp_path):
    jobs = jobs_of(tmp_path, "http://127.0.0.1:1/", SIZE)
    assert [job.name.rpartition(" ")[2] for job in jobs] == ["3"] * 10 + ["5"] * 10
    first, second, *_ = runs_of(SIZE)
    for run, steps in ((first, 5), (second, 3)):
        for step in range(steps):
            MetricPoint.objects.create(run=run, n=step, step=step, name="pass_rate", value=0.5)
    left = [job.name for job in jobs_of(tmp_path, "http://127.0.0.1:1/", SIZE)]
    assert not any(name.startswith(first.public_id) for name in left)
    assert [name for name in left if name.startswith(second.public_id)] == [f"{second.public_id} to step 5"]
    # a token of an earlier start is no key any more
    assert second.tokens.filter(revoked_at=None).count() == 1


def test_a_failed_job_is_tried_again_and_given_up_by_name(tmp_path):
    tries = f"open({str(tmp_path / 'tries')!r}, 'a').write('x')"
    once = f"import os; p = {str(tmp_path / 'once')!r}; first = not os.path.exists(p); open(p, 'w'); os._exit(first)"
    jobs = ran([child("bad", f"{tries}; raise SystemExit(1)"), child("flaky", once)], at_once=2)
    assert jobs.failed == ["bad"] and (tmp_path / "tries").read_text() == "xxx"


def test_so_many_jobs_run_at_a_time(tmp_path):
    def waits_for(other, own):
        return (
            f"import os, time; open({str(tmp_path / own)!r}, 'w')\n"
            f"while not os.path.exists({str(tmp_path / other)!r}): time.sleep(0.01)"
        )

    ran([child("a", waits_for("b", "a")), child("b", waits_for("a", "b"))], at_once=2)  # one at a time would hang
