"""Each sign fires by its cause and not by the benign twin, judged from rows by the same watch as on a server."""

from datetime import timedelta

import pytest

from grading import clock
from grading.models import Grading
from tests.factories import make_group, make_life, make_run, make_user
from tests.training_bridge.monitor.rows import Job
from tests.training_bridge.monitor.steps import Steps
from training_bridge import delivery, intake
from training_bridge.models import Alert, Delivery, JobCursor
from training_bridge.monitor import alerting
from training_bridge.monitor.alert_rules import change_rule
from training_bridge.monitor.alert_signs import SIGNS, Rule
from training_bridge.monitor.standing import standings

pytestmark = pytest.mark.django_db

T1, T3 = (10, 4, 2), (2, 4, 10)  # passes of a step by tier
# sign -> (the first 11 steps, what then goes wrong for 8, and its benign twin
CAUSES = {
    # Eq. 1 takes credit and gives none back; the twin has failures that are slightly longer.
    "balance": ({}, {"balance": -0.1}, {"balance": -0.04}),
    # Lone T3 passes under the cap; the twin is a cap that binds in half the groups.
    "credit_kept": ({}, {"kept": 0.5}, {"kept": 0.88, "bounded": 0.5}),
    # A sandbox breaks; the twin is a policy that fails more often.
    "invalid_share": ({"invalid": 0.03}, {"invalid": 0.25}, {"invalid": 0.03, "passes": 0.45}),
    "truncated_share": ({"truncated": 0.03}, {"truncated": 0.35}, {"truncated": 0.09}),
    # The paper's two runs: 0.359 to 0.905, and 0.358 to 0.513.
    "entropy_rise": ({"entropy": 0.359}, {"entropy": 0.905}, {"entropy": 0.513}),
    "length_growth": ({"length": 47.1}, {"length": 114.1}, {"length": 69.9}),
    # Beyond the paper's 8 points, and the noise of another mix of tasks.
    "pass_rate_fall": ({"passes": 0.625}, {"passes": 0.5}, {"passes": 0.5625}),
    # The grader does not keep up; in the twin somebody paused the run.
    "fallback_share": ({}, {"fallback": 0.75, "bounded": 0}, {"fallback": 0.75, "bounded": 0, "reason": "paused"}),
    "cap_share": ({}, {"bounded": 1.0}, {"bounded": 0.5}),
    # A model behind the endpoint changed; the twin is a policy that mends a few.
    "grader_drift": ({"tiers": T1}, {"tiers": T3}, {"tiers": (11, 3, 2)}),
}


def open_signs(run) -> list[str]:
    return sorted(Alert.objects.filter(run=run).exclude(state="resolved").values_list("sign", flat=True))


def watched_steps(run, *, at: dict, then: dict) -> None:
    """A look while all is well, and another some steps later: the steps are judged one by one all the same."""
    steps = Steps(run)
    steps.add(11, **at)
    alerting.watch()
    assert open_signs(run) == []
    steps.add(8, **then)
    alerting.watch()


@pytest.mark.parametrize("sign", CAUSES)
def test_a_sign_of_steps_fires_by_its_cause_alone_and_not_by_its_twin(sign):
    at, cause, twin = CAUSES[sign]
    ill, well = make_run(), make_run()
    watched_steps(well, at=at, then=twin)
    assert open_signs(well) == []
    watched_steps(ill, at=at, then=cause)
    assert open_signs(ill) == [sign]
    alert = Alert.objects.get(run=ill)
    assert 11 <= alert.step <= 18 and alert.n >= SIGNS[sign].rule.least and alert.words


def test_the_tied_share_drifts_too():
    run = make_run()
    watched_steps(run, at={"tiers": T1}, then={"tiers": T1, "ties": 8})
    assert open_signs(run) == ["grader_drift"]


def test_what_a_run_began_with_is_normal_only_up_to_a_bound():
    run = make_run()
    Steps(run).add(14, invalid=0.5)
    alerting.watch()
    assert open_signs(run) == ["invalid_share"]


def test_too_few_say_nothing():
    run = make_run()
    for sign in ("credit_kept", "fallback_share", "cap_share"):
        assert SIGNS[sign].rule.least == 8
    Steps(run, groups=1, size=2).add(7, fallback=1.0, kept=0.1, balance=-0.9, passes=0.0, invalid=1.0)
    alerting.watch()
    assert open_signs(run) == []


# ---- what is true now ----


def heard(run, *, seconds_ago: float, connected: bool) -> None:
    at = clock.now() - timedelta(seconds=seconds_ago)
    JobCursor.objects.filter(life__run=run).update(seen_at=at, connected=connected)
    run.lives.update(started_at=at)
    run.groups.update(created_at=at)


def later(monkeypatch, seconds: float) -> None:
    """The clock of the watch goes on; rows keep their times."""
    now = clock.now()
    monkeypatch.setattr(clock, "now", lambda: now + timedelta(seconds=seconds))


def seen_twice(monkeypatch) -> None:
    """A look, and another after the time for which it must hold."""
    alerting.watch()
    later(monkeypatch, 11)
    alerting.watch()


def live_run(**said):
    run = make_run()
    steps = Steps(run)
    steps.add(3, **said)
    intake.acknowledge(steps.life, epoch=1, connected=True)
    return run, steps


def test_a_silent_job_fires_and_a_job_in_a_long_step_does_not(monkeypatch):
    hung, busy, ended = live_run()[0], live_run()[0], live_run()[0]
    heard(hung, seconds_ago=300, connected=False)
    heard(busy, seconds_ago=1200, connected=True)
    intake.end_life(ended, 1, why="")
    heard(ended, seconds_ago=300, connected=False)
    seen_twice(monkeypatch)
    assert (open_signs(hung), open_signs(busy), open_signs(ended)) == (["silent"], [], [])
    assert Alert.objects.get().is_danger and "5 min: 0 groups undecided" in Alert.objects.get().words


def test_late_receipts_fire_and_applied_ones_do_not(monkeypatch):
    late, _ = live_run(receipts=("too_late", "applied", "applied"))
    in_time, _ = live_run(receipts=("superseded", "applied", "applied"))
    paused, _ = live_run(receipts=("too_late", "applied", "applied"), fallback=1.0, reason="paused")
    seen_twice(monkeypatch)
    assert (open_signs(late), open_signs(in_time), open_signs(paused)) == (["late"], [], [])
    assert "33 % (n = 9 receipts)" in Alert.objects.get().words


def test_an_alert_that_is_good_again_and_not_over_yet_says_so(monkeypatch):
    run, steps = live_run(receipts=("too_late", "applied", "applied"))
    seen_twice(monkeypatch)
    steps.add(12, receipts=("applied", "applied", "applied"))
    alerting.watch()
    alert = Alert.objects.get(run=run)
    assert alert.state == "firing" and alert.words.startswith("0 %") and "within its bounds now" in alert.words


def test_rows_that_wait_for_a_connected_job_fire_and_rows_of_a_moment_ago_do_not(monkeypatch):
    stuck, fresh = live_run()[0], live_run()[0]
    for run, seconds in ((stuck, 60), (fresh, 1)):
        row = {"kind": "control", "text": "{}", "sha256": "0" * 64}
        Delivery.objects.create(stream=delivery.stream_of(run), epoch=1, seq=1, **row)
        Delivery.objects.filter(stream__run=run).update(created_at=clock.now() - timedelta(seconds=seconds))
    seen_twice(monkeypatch)
    assert (open_signs(stuck), open_signs(fresh)) == (["waiting"], [])


@pytest.mark.parametrize(
    ("sign", "cause", "twin"),
    [
        ("not_finite", {"pg_loss": "NaN"}, {"pg_loss": 0.1}),
        ("refused", {"refused": 1, "fallback": 0.2}, {"fallback": 0.2}),
        ("inverted", {"inverted": 1}, {}),
    ],
)
def test_what_must_never_be_fires_at_once(monkeypatch, sign, cause, twin):
    ill, well = live_run(**cause)[0], live_run(**twin)[0]
    seen_twice(monkeypatch)
    assert (open_signs(ill), open_signs(well)) == ([sign], [])


def test_graders_that_died_for_good_fire_and_one_that_was_tried_again_does_not(monkeypatch):
    ill, well = live_run()[0], live_run()[0]
    for run, attempts in ((ill, 4), (well, 3)):
        group = make_group(run=run, step=2, state="delivered")
        for attempt in range(1, attempts + 1):
            state = "failed" if attempt == 4 else "died"
            Grading.objects.create(group=group, grader="agentic", state=state, attempt=attempt)
    seen_twice(monkeypatch)
    assert (open_signs(ill), open_signs(well)) == (["dead_letters"], [])


def test_a_rule_that_is_off_never_fires_and_switching_it_off_ends_its_alert(monkeypatch):
    run, _ = live_run(inverted=1)
    user = make_user()
    change_rule(run, "inverted", Rule(0, least=1, is_on=False), user=user)
    seen_twice(monkeypatch)
    assert open_signs(run) == []
    change_rule(run, "inverted", Rule(0, least=1), user=user)
    alerting.watch()
    later(monkeypatch, 11)
    alerting.watch()
    assert open_signs(run) == ["inverted"]
    change_rule(run, "inverted", Rule(0, least=1, is_on=False), user=user)
    alerting.watch()
    assert open_signs(run) == [] and Alert.objects.get().events.last().note == "its rule was switched off"


def test_a_number_that_is_told_anew_is_no_longer_broken():
    job = Job(make_life(run=(run := make_run())))
    job.metrics(3, pg_loss="NaN")
    assert standings([run])[0].broken_metrics == (("pg_loss", "NaN"),)
    job.metrics(3, pg_loss=0.1)
    assert standings([run])[0].broken_metrics == ()
