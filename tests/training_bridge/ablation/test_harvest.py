import pytest

from grading.grader import afterwards, gather, job, static
from grading.models import Verdict
from grading.states import EndReason, GroupState
from tests.factories import PATCH, make_group, make_run
from training_bridge.ablation.harvest import lines_of
from training_bridge.monitor import store

pytestmark = pytest.mark.django_db
DEBUG = PATCH.replace(b"+1,2 @@", b"+1,3 @@").replace(b"+    return 42\n", b'+    print("here")\n+    return 42\n')


def told(run, step, n, **values):
    store.add(run.pk, [store.point(name, step, value, run=run.pk, n=n) for name, value in values.items()])


def ended(run, step, **fields):
    fields = {"outcomes": "PPF", "patches": [PATCH, DEBUG, PATCH]} | fields
    return make_group(run=run, step=step, state=GroupState.DELIVERED, **fields)


def test_the_arm_without_grades_is_audited_once_and_nothing_moves():
    run = make_run(public_id="ablation-outcome-2", method="outcome")
    group = ended(run, 0)
    ended(run, 0, outcomes="PP", patches=[PATCH, DEBUG], end_reason=EndReason.FILTERED_ALL_PASSED)
    assert afterwards.audit(run) == 1
    assert afterwards.audit(run) == 0
    verdict = Verdict.objects.get()
    assert (verdict.group, verdict.purpose, verdict.grader, verdict.is_valid) == (group, "audit", "static", True)
    group.refresh_from_db()
    assert group.state == GroupState.DELIVERED and group.graded_at is None and not group.decisions.exists()


def test_a_line_joins_what_the_job_said_with_what_the_grader_found():
    run = make_run(public_id="ablation-outcome-2", method="outcome")
    ended(run, 0)
    told(run, 0, 1, pass_rate=0.5, entropy=1.0)
    told(run, 0, 2, pass_rate=0.6)  # said again after a restart: the last word counts
    told(run, 1, 3, pass_rate=1.0)
    first, second = lines_of(run)
    assert (first["method"], first["seed"], first["step"], first["pass_rate"]) == ("outcome", 2, 0, 0.6)
    # the small patch is T1; the debug line costs the other one consistency and precision
    assert (first["ranked"], first["t1_share"]) == (2, 0.5) and 4 < first["mean_w"] < 5
    assert (second["pass_rate"], second["entropy"], second["mean_w"], second["ranked"]) == (1.0, None, None, 0)


def test_a_graded_arm_is_read_from_the_verdicts_that_trained_it():
    run = make_run(public_id="ablation-redistribute-0")
    group = make_group(run=run, step=0, state=GroupState.COMPLETE, outcomes="PPF", patches=[PATCH, PATCH, PATCH])
    assert group.claim(by="me", lease_s=60)
    job.store_verdict(group, static.grade(gather.material_of(group)), fencing=group.fencing)
    told(run, 0, 1, pass_rate=2 / 3)
    (line,) = lines_of(run)
    assert (line["t1_share"], line["ranked"]) == (1.0, 2)
    assert not Verdict.objects.filter(purpose="audit").exists()
