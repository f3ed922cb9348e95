"""Anchors that a grader orders otherwise than before raise alerts of the run; what is no drift of it raises none."""

from datetime import timedelta

import pytest
from django.urls import reverse

from grading import clock
from grading.calibration import anchors
from grading.models import Grading, RolloutGroup
from grading.states import Purpose
from tests.factories import make_run, make_user
from tests.grading.calibration.said import answered, blind
from tests.training_bridge.monitor.steps import Steps
from tests.verdicts import add_verdict
from training_bridge import intake
from training_bridge.models import Alert, AlertDesk, AlertMessage
from training_bridge.monitor import alerting
from training_bridge.monitor.alert_rules import change_rule
from training_bridge.monitor.alert_signs import Rule

pytestmark = pytest.mark.django_db

UP, DOWN, SHAKEN = {"A": 5, "B": 4, "C": 3}, {"A": 3, "B": 4, "C": 5}, {"A": 5, "B": 3, "C": 4}


def live_run(**fields):
    run = make_run(grader="static", **fields)
    steps = Steps(run, groups=1, size=2)
    steps.add(1)
    intake.acknowledge(steps.life, epoch=1, connected=True)
    return run


@pytest.fixture
def run():
    return live_run()


@pytest.fixture
def ann(run):
    return make_user(role="admin", team=run.team)


@pytest.fixture
def groups(run, ann):
    """Six anchors of the run's team, ordered A, B, C by its grader."""
    made = [answered(run, UP) for _ in range(6)]
    for group in made:
        anchors.choose(group, user=ann)
    return made


def graded_round(run, *scores: dict[str, int]) -> None:
    """A round of anchors as the grading job leaves it: each anchor in turn gets the next scores."""
    round = anchors.start(run, why="asked for", by="ann")
    for n, grading in enumerate(round.gradings.order_by("pk")):
        verdict = add_verdict(grading.group, scores[n % len(scores)], purpose=Purpose.ANCHOR)
        Grading.objects.filter(pk=grading.pk).update(state=Grading.State.VALID, verdict=verdict)


@pytest.fixture
def seen_twice(monkeypatch):
    """A look, and another after the time for which a sign must hold."""

    def look(seconds: float = 11) -> None:
        alerting.watch()
        now = clock.now()
        monkeypatch.setattr(clock, "now", lambda: now + timedelta(seconds=seconds))
        alerting.watch()

    return look


def open_signs(run) -> list[str]:
    return sorted(Alert.objects.filter(run=run).exclude(state="resolved").values_list("sign", flat=True))


def test_a_grader_that_turns_the_anchors_round_fires_and_a_policy_that_changes_does_not(run, groups, seen_twice):
    graded_round(run, UP)
    graded_round(run, UP)
    answered(run, DOWN)  # a new group of another kind: the anchors are graded as before
    seen_twice()
    assert open_signs(run) == []
    graded_round(run, DOWN, DOWN, SHAKEN)
    seen_twice()
    assert open_signs(run) == ["anchor_order"]
    alert = Alert.objects.get()
    # four anchors at -1 and two at 1/3: the mean is -0.56
    assert alert.n == 6 and alert.value < 0.6 and "-0.56" in alert.words and "on 6 anchors" in alert.words


def test_a_grader_that_turns_every_anchor_round_needs_no_interval(run, groups, seen_twice):
    graded_round(run, UP)
    graded_round(run, DOWN)
    seen_twice()
    assert open_signs(run) == ["anchor_order"] and Alert.objects.get().value == -1


def test_a_grader_that_leaves_the_people_fires_and_one_that_comes_to_them_does_not(run, groups, ann, seen_twice):
    for group in groups:
        blind(group, "A", "B", "C")
    graded_round(run, SHAKEN)
    graded_round(run, UP)  # nearer to the people; each tau-b is 1/3
    seen_twice()
    assert open_signs(run) == ["anchor_order"]
    change_rule(run, "anchor_order", Rule(-1.1, least=5), user=ann)
    graded_round(run, SHAKEN)
    seen_twice()
    seen_twice(61)
    assert open_signs(run) == ["anchor_accuracy"]
    # one pair of three is lost in each anchor
    alert = Alert.objects.get(sign="anchor_accuracy")
    assert alert.is_danger and alert.value == pytest.approx(1 / 3) and alert.words.startswith("33.3 points")


def test_an_alert_of_anchors_has_its_rule_history_end_and_webhook(run, groups, ann, seen_twice, client):
    run.webhook_url = "http://hooks.example.org/gagar"
    run.save()
    graded_round(run, UP)
    graded_round(run, DOWN)
    seen_twice()
    graded_round(run, DOWN)
    seen_twice(61)
    assert open_signs(run) == []
    told = Alert.objects.get().events.values_list("new", flat=True)
    assert list(told) == ["firing", "resolved"] and AlertMessage.objects.count() == 2
    client.force_login(ann)
    page = client.get(reverse("alert", args=[Alert.objects.get().pk])).content.decode()
    assert f'href="/calibration/drift?run={run.public_id}"' in page and "The groups of its window" not in page
    page = client.get(reverse("run-alerts", args=[run.public_id])).content.decode()
    assert 'id="rule-anchor_order"' in page and "τ-b, -1 to 1" in page


def test_two_runs_with_two_graders_differ_and_nothing_drifted(run, groups, seen_twice):
    other = live_run(team=run.team, grading={"model": "openai:another"})
    other.grader = "single_pass"
    other.save()
    graded_round(run, UP)
    graded_round(other, DOWN)
    seen_twice()
    assert open_signs(run) == open_signs(other) == []


def test_a_run_with_the_same_grader_hears_of_it_though_another_run_had_the_rounds(run, groups, seen_twice):
    same = live_run(team=run.team)
    graded_round(run, UP)
    graded_round(run, DOWN)
    seen_twice()
    assert open_signs(run) == open_signs(same) == ["anchor_order"]


def test_few_anchors_and_a_round_under_way_say_nothing(run, ann, seen_twice):
    for _ in range(4):
        anchors.choose(answered(run, UP), user=ann)
    graded_round(run, UP)
    graded_round(run, DOWN)
    seen_twice()
    assert open_signs(run) == []
    anchors.choose(answered(run, UP), user=ann)
    graded_round(run, UP)
    assert RolloutGroup.objects.filter(anchor__isnull=False).count() == 5
    anchors.start(run, why="asked for", by="ann")
    seen_twice()
    assert open_signs(run) == []


def test_two_rounds_are_compared_once_and_again_when_people_ordered_an_anchor(
    run, groups, seen_twice, django_assert_max_num_queries
):
    graded_round(run, SHAKEN)
    graded_round(run, UP)
    seen_twice()
    read = AlertDesk.objects.get().memory["anchor_accuracy"]["read"]
    assert read["n"] == 0
    with django_assert_max_num_queries(30):
        alerting.watch()
    for group in groups:
        blind(group, "A", "B", "C", ranked_at=clock.now())
    alerting.watch()
    assert AlertDesk.objects.get().memory["anchor_accuracy"]["read"]["n"] == 6
