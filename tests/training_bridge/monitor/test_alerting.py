"""What becomes of an alert: history, rules, acknowledgement, catching up, and two watchers at once."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from grading.errors import BadInput, Conflict
from grading.models import RunEvent
from grading.review import decisions
from grading.states import DecisionKind, GroupState
from tests.factories import make_group, make_life, make_run, make_user
from tests.training_bridge.monitor.steps import Steps
from training_bridge import delivery, intake
from training_bridge.models import Alert, AlertDesk, AlertEvent, StepReading
from training_bridge.monitor import alerting
from training_bridge.monitor.alert_looks import look
from training_bridge.monitor.alert_rules import change_rule, rules_of
from training_bridge.monitor.alert_signs import SIGNS, Rule
from training_bridge.monitor.standing import standings

pytestmark = pytest.mark.django_db


def ill_run(**fields):
    """A run whose cap binds everywhere, and its steps."""
    run = make_run(**fields)
    steps = Steps(run, groups=2, size=2)
    steps.add(6, bounded=1.0)
    alerting.watch()
    return run, steps


def test_an_alert_keeps_who_when_and_which_values_from_firing_to_the_end():
    run, steps = ill_run()
    alert = Alert.objects.get()
    # 4 steps of 2 groups make the 8 that are needed; the second such step fires
    assert (alert.sign, alert.state, alert.step, alert.value, alert.n) == ("cap_share", "firing", 4, 1.0, 12)
    user = make_user(username="ada")
    alerting.acknowledge(alert, user=user, note="a stricter rubric")
    with pytest.raises(Conflict, match="acknowledged already"):
        alerting.acknowledge(alert, user=make_user(), note="me too")
    steps.add(20, bounded=0.0)
    alerting.watch()
    alert.refresh_from_db()
    assert alert.state == "resolved" and alert.worst == 1.0 and alert.value < 0.7 and alert.ended_step > alert.step
    told = [(event.old, event.new, event.by, event.note) for event in alert.events.all()]
    assert told[0][:3] == ("", "firing", "rule") and "n = 10 groups" in told[0][3]
    assert told[1] == ("firing", "acknowledged", "ada", "a stricter rubric")
    assert told[2][:3] == ("acknowledged", "resolved", "rule")


def test_a_look_without_news_writes_nothing_but_its_time(django_assert_max_num_queries):
    ill_run()
    before = AlertEvent.objects.count(), AlertDesk.objects.get().version
    with CaptureQueriesContext(connection) as asked:
        alerting.watch()
    wrote = [q["sql"] for q in asked if q["sql"].startswith(("INSERT", "UPDATE", "DELETE"))]
    assert (AlertEvent.objects.count(), AlertDesk.objects.get().version) == before
    assert len(wrote) <= 2 and len(asked) < 40  # the desk that is there already, and when we looked


def test_of_two_watchers_one_writes():
    run, steps = ill_run()
    steps.add(12, bounded=0.0)
    desk, [here], rules = AlertDesk.objects.get(), standings([run]), rules_of([run])[run.pk]
    first, second = (look(here, desk, rules, {"cap_share": Alert.objects.get()}) for _ in range(2))
    assert alerting._keep(here, desk, first, rules) == 1
    assert alerting._keep(here, desk, second, rules) == 0
    assert AlertEvent.objects.count() == 2


def test_a_step_is_read_once_its_groups_are_paid_or_late():
    run = make_run()
    steps = Steps(run, groups=1, size=2)
    steps.add(3)
    make_group(run=run, step=1, state=GroupState.GRADING)
    alerting.watch()
    assert AlertDesk.objects.get().looked_step == 0
    steps.add(19)
    alerting.watch()
    assert AlertDesk.objects.get().looked_step == 1, "step 21 stands: step 1 is 20 steps late"


def test_a_step_is_not_read_before_what_its_rows_pay_is_counted():
    run = make_run()
    life = make_life(run=run)
    for step, then in enumerate((delivery.deliver, delivery.store)):  # the second process is killed
        group = make_group(run=run, life=life, step=step, state=GroupState.GRADED, outcomes="PPF")
        decisions.decide(group, DecisionKind.FALLBACK, by="test")
        then(run)
    make_group(run=run, life=life, step=2)
    alerting.watch()
    assert AlertDesk.objects.get().looked_step == 0
    delivery.sweep()
    alerting.watch()
    read = dict(StepReading.objects.values_list("step", "sums"))
    assert AlertDesk.objects.get().looked_step == 1 and read[1]["n_valid"] == 3


def test_a_life_that_goes_back_to_a_checkpoint_has_its_steps_read_again():
    run = make_run()
    Steps(run, groups=1, size=2).add(8, entropy=0.4)
    alerting.watch()
    again = Steps(run, groups=1, size=2)
    again.life, again.step = make_life(run=run), 4
    again.add(2, entropy=0.6)
    alerting.watch()
    read = dict(StepReading.objects.filter(run=run).values_list("step", "sums"))
    assert [read[step]["entropy"] for step in (4, 5, 6)] == [0.4, 0.6, 0.6]
    assert AlertDesk.objects.get().looked_step == 6


def test_an_alert_ends_with_its_job_and_one_run_that_breaks_blinds_no_other():
    run, _ = ill_run()
    other = make_run()
    Steps(other, groups=2, size=2).add(6, bounded=1.0)
    intake.end_life(run, 1, why="")
    AlertDesk.objects.filter(run=run).update(memory=["nothing that we write"])
    assert alerting.watch() == 1
    assert Alert.objects.get(run=other).state == "firing"
    AlertDesk.objects.filter(run=run).update(memory={})
    alerting.watch()
    assert Alert.objects.get(run=run).events.last().note == "the job ended"


# ---- rules ----


def test_a_rule_is_changed_with_its_history_and_forgets_what_it_measured():
    run, steps = ill_run()
    user = make_user(username="ada")
    rule = Rule(1.5, window=4, least=2)
    change_rule(run, "cap_share", rule, user=user)
    assert rules_of([run])[run.pk]["cap_share"] == rule
    event = RunEvent.objects.get()
    assert event.by == "ada" and event.changes["alert The cap on lambda binds often, window"] == [10, 4]
    assert change_rule(run, "cap_share", rule, user=user) is None
    steps.add(8, bounded=1.0)
    alerting.watch()
    assert Alert.objects.get().state == "resolved", "no share is above 1.5"
    change_rule(run, "cap_share", SIGNS["cap_share"].rule, user=user)
    assert not run.alert_rules.exists(), "the default needs no row"


@pytest.mark.parametrize(
    ("sign", "rule"),
    [
        ("nothing", Rule(1)),
        ("late", Rule(float("nan"))),
        ("late", Rule(float("inf"))),
        ("late", Rule(1, window=0)),
        ("late", Rule(1, window=201)),
        ("late", Rule(1, least=0)),
    ],
)
def test_a_rule_that_cannot_be_judged_is_refused(sign, rule):
    with pytest.raises(BadInput):
        change_rule(make_run(), sign, rule, user=make_user())
