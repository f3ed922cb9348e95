"""Rollouts are pooled by task, failures included, under drawn letters; the online grader is refused."""

from collections import Counter

import pytest

from grading.audit.pooling import Arm, open_audit
from grading.errors import BadInput
from grading.models import AuditCandidate, Trajectory
from tests.factories import make_group, make_run, make_task, make_team, make_trajectory
from tests.grading.audit.rooms import make_audit, make_runs

pytestmark = pytest.mark.django_db


def test_a_group_pools_up_to_three_rollouts_of_each_run_with_failures():
    audit = make_audit(runs=make_runs(outcomes=("PPFFP", "PFI")))
    for group in audit.groups.all():
        arms = Counter(group.candidates.values_list("arm__number", flat=True))
        assert arms == {0: 3, 1: 2}  # the invalid one is no failure
    assert audit.groups.count() == 2
    assert {False, True} == set(AuditCandidate.objects.values_list("passed", flat=True))


def test_letters_places_and_row_keys_say_nothing_of_the_arm():
    """Over many groups the first letter is each arm's about as often, and so is the lowest key."""
    audit = make_audit(runs=make_runs(tasks=40, outcomes=("P", "P")), seed=7)
    first = Counter(audit.groups.filter(candidates__letter="A").values_list("candidates__arm__number", flat=True))
    assert min(first.values()) >= 10
    lowest = Counter(group.candidates.order_by("pk").first().arm.number for group in audit.groups.all())
    assert min(lowest.values()) >= 10
    keys = [int(group.task.key.rpartition("-")[2]) for group in audit.groups.order_by("place")]
    assert keys != sorted(keys)


def test_the_same_seed_draws_the_same_audit():
    runs = make_runs(tasks=4, outcomes=("PPPPP", "PPPPP"))
    drawn = [
        list(audit.groups.order_by("place").values_list("task", "candidates__letter", "candidates__trajectory"))
        for audit in (make_audit(runs=runs, seed=3), make_audit(runs=runs, seed=3), make_audit(runs=runs, seed=4))
    ]
    assert sorted(drawn[0]) == sorted(drawn[1]) != sorted(drawn[2])


def test_only_tasks_that_all_runs_tried_are_in_it_and_what_is_left_out_is_counted():
    runs = make_runs()
    alone = make_group(run=runs[0], task=make_task(team=runs[0].team), state="decided")
    make_trajectory(group=alone, letter="A")
    bare = make_group(run=runs[1], task=alone.task, state="decided")
    make_trajectory(group=bare, patch=b"", letter="A")
    audit = make_audit(runs=runs)
    assert audit.groups.count() == 2
    assert audit.left_out["tasks without a rollout of every arm"] == 1
    assert audit.left_out["rollouts whose bodies were not kept"] == 1


def test_checkpoints_are_windows_of_steps_and_tasks_a_fixed_sample_over_them():
    runs = make_runs(tasks=5, steps=(1, 2, 11))
    audit = make_audit(runs=runs, windows=[(0, 9), (10, 19)], task_count=3)
    assert Counter(audit.groups.values_list("window", flat=True)) == {0: 3, 1: 3}
    assert audit.groups.values("task").distinct().count() == 3
    steps = Trajectory.objects.filter(pk__in=AuditCandidate.objects.filter(group__window=1).values("trajectory"))
    assert set(steps.values_list("group__step", flat=True)) == {11}


def test_one_run_is_compared_with_itself_at_other_steps():
    run, _ = make_runs(steps=(1, 30))
    arms = [Arm(run, "early", last_step=10), Arm(run, "late", first_step=20)]
    audit = open_audit(team=run.team, name="", arms=arms, grader="person")
    assert [arm.name for arm in audit.arms.all()] == ["early", "late"]
    with pytest.raises(BadInput, match="same name"):
        open_audit(team=run.team, name="", arms=[Arm(run), Arm(run)], grader="person")


@pytest.mark.parametrize(
    "wrong, says",
    [
        ({"windows": [(5, 2)]}, "first-last"),
        ({"windows": [(0, 5), (5, 9)]}, "overlap"),
        ({"per_arm": 4}, "1 to 3"),
        ({"task_keys": ["nobodys"]}, "no task"),
    ],
)
def test_what_makes_no_audit_is_refused_in_words(wrong, says):
    with pytest.raises(BadInput, match=says):
        make_audit(**wrong)


def test_runs_of_two_teams_are_not_compared():
    run, other = make_runs()[0], make_run(team=make_team())
    with pytest.raises(BadInput, match="one team"):
        open_audit(team=run.team, name="", arms=[Arm(run), Arm(other)], grader="person")


def test_the_online_grader_is_refused_by_name_and_by_model(settings):
    with pytest.raises(BadInput, match="online grader"):
        make_audit(grader="static")  # the runs' own
    settings.GAGAR_GRADER_MODEL = "openai:house-1"
    model_runs = make_runs(grader="agentic", grading={"model": "openai:house-1"})
    for grader, model in (("single_pass", ""), ("agentic", "anthropic:vendor/House-1")):
        with pytest.raises(BadInput, match="online grader"):
            make_audit(runs=model_runs, grader=grader, model=model)
    assert make_audit(runs=model_runs, grader="single_pass", model="openai:another-2")
    assert make_audit(runs=model_runs, grader="static")
    assert make_audit(runs=make_runs(method="outcome"), grader="static")  # nothing was graded there


def test_a_model_grader_without_a_model_is_refused(settings):
    settings.GAGAR_GRADER_MODEL = ""
    with pytest.raises(BadInput, match="no model"):
        make_audit(grader="agentic")
