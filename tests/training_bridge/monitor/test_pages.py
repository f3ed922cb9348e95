"""Runs, monitor, series and the pause button as people call them."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from grading.review import decisions
from grading.states import DecisionKind, GroupState
from tests.factories import make_group, make_life, make_run, make_team, make_user
from tests.training_bridge.monitor.rows import Job, deliver_group
from training_bridge import delivery, intake
from training_bridge.models import Delivery, JobCursor
from training_bridge.monitor.alerts import alerts_of
from training_bridge.monitor.run_rows import run_rows
from training_bridge.monitor.standing import standings

pytestmark = pytest.mark.django_db


def lively_run(*, steps: int = 3, **fields):
    """A connected run with metrics and a delivered group in each step."""
    run = make_run(**fields)
    life = make_life(run=run)
    job = Job(life)
    for step in range(steps):
        group = deliver_group(run, step=step, life=life)
        job.metrics(step, pass_rate=0.5 + step / 100, entropy=2.0 - step / 10)
        job.receipt(group, "applied", step=step)
    intake.acknowledge(life, epoch=1, connected=True)
    return run


def standing_of(run):
    return standings([run])[0]


def titles(run) -> list[str]:
    return [alert["title"] for alert in alerts_of(standing_of(run))]


@pytest.fixture
def viewer(client):
    """A signed-in viewer."""
    user = make_user(role="viewer")
    client.force_login(user)
    user.team = user.memberships.get().team
    return user


def test_a_row_of_the_runs_page_says_how_the_run_stands(viewer):
    run = lively_run(team=viewer.team)
    make_group(run=run, state=GroupState.GRADED, held=True, step=2)
    deliver_group(run, step=2, kind=DecisionKind.FALLBACK, reason="deadline")
    [row] = run_rows([run])
    assert (row["state"], row["step"], row["waiting"], row["alerts"]) == ("live", 2, 1, 0)
    assert row["pass_rates"] == [0.5, 0.51, 0.52] and row["entropy"] == pytest.approx(1.8)
    assert row["fallback_share"] == 0.25, "one of four"


def test_the_runs_page_needs_the_same_queries_for_one_run_and_for_five(client, viewer, django_assert_num_queries):
    lively_run(team=viewer.team, steps=2)
    with CaptureQueriesContext(connection) as one:
        assert client.get("/runs/").status_code == 200
    for _ in range(4):
        lively_run(team=viewer.team, steps=6)
    with django_assert_num_queries(len(one)):
        page = client.get("/runs/").content.decode()
    assert page.count("is-lost") == 0 and page.count('id="run-') == 6  # five rows and their table


def test_the_monitor_needs_the_same_queries_however_long_the_run_is(client, viewer, django_assert_num_queries):
    short, long = lively_run(team=viewer.team, steps=2), lively_run(team=viewer.team, steps=30)
    for path in ("", "series.json"):
        with CaptureQueriesContext(connection) as few:
            assert client.get(f"/runs/{short.public_id}/{path}").status_code == 200
        with django_assert_num_queries(len(few)):
            client.get(f"/runs/{long.public_id}/{path}")


def test_the_monitor_shows_figures_panels_ledger_and_no_alert(client, viewer):
    run = lively_run(team=viewer.team)
    page = client.get(f"/runs/{run.public_id}/").content.decode()
    assert page.count("data-panel=") == 12
    assert f'data-live="/ws/v1/runs/{run.public_id}/watch"' in page
    assert "epoch 1 · head 3" in page and "No alert." in page and "52.0 %" in page


def test_the_monitor_of_an_imported_run_has_no_stream_and_no_socket(client, viewer):
    run = make_run(team=viewer.team, kind="imported")
    page = client.get(f"/runs/{run.public_id}/").content.decode()
    assert "it was imported" in page and 'data-live=""' in page


def test_the_series_refuse_what_is_no_step(client, viewer):
    run = make_run(team=viewer.team)
    assert client.get(f"/runs/{run.public_id}/series.json").json()["steps"] == []
    for wrong in ("-1", "x", "1e3", "9" * 30):
        assert client.get(f"/runs/{run.public_id}/series.json?from={wrong}").status_code == 400


def test_another_teams_run_is_not_there(client, viewer):
    run = lively_run(team=make_team())
    for path in ("", "series.json"):
        assert client.get(f"/runs/{run.public_id}/{path}").status_code == 404
    assert run.name not in client.get("/runs/").content.decode()
    client.logout()
    assert client.get(f"/runs/{run.public_id}/").status_code == 302


def test_only_an_admin_of_the_team_pauses_and_says_why(client, viewer):
    run = lively_run(team=viewer.team)
    path = f"/runs/{run.public_id}/pause"
    assert client.post(path, {"paused": "1", "reason": "x"}).status_code == 403
    client.force_login(make_user(role="admin", team=make_team()))
    assert client.post(path, {"paused": "1", "reason": "x"}).status_code == 404
    client.force_login(make_user(username="ada", role="admin", team=viewer.team))
    assert client.get(path).status_code == 405
    assert client.post(path, {"paused": "1", "reason": " "}).status_code == 400
    assert client.post(path, {"paused": "2", "reason": "x"}).status_code == 400
    assert client.post(path, {"paused": "1", "reason": "entropy rises"}).status_code == 302
    run.refresh_from_db()
    row = Delivery.objects.get(kind="control")
    assert run.paused and "entropy rises (ada)" in row.text
    client.post(path, {"paused": "0", "reason": "it fell again"})
    run.refresh_from_db()
    assert not run.paused and run.stream.mode == "normal"


@pytest.mark.parametrize(
    ("connected", "minutes", "state"),
    [(True, 10, "live"), (True, 40, "silent"), (False, 1, "live"), (False, 10, "silent"), (False, 90, "ended")],
)
def test_a_run_is_live_silent_or_ended_by_when_it_was_heard(connected, minutes, state):
    run = lively_run(steps=1)
    heard = timezone.now() - timedelta(minutes=minutes)
    JobCursor.objects.update(seen_at=heard, connected=connected)
    run.lives.update(started_at=heard)
    run.groups.update(created_at=heard)
    assert standing_of(run).state == state
    assert ("The job is silent" in titles(run)) == (state == "silent")


def test_a_run_without_a_job_is_neither_silent_nor_an_alert():
    run = make_run()
    assert standing_of(run).state == "no job yet" and titles(run) == []


def test_fallbacks_alert_by_their_reason_but_not_in_a_shadow_run():
    run, shadow = make_run(), make_run()
    for step in range(8):
        deliver_group(run, step=step, kind=DecisionKind.FALLBACK, reason="deadline")
        deliver_group(shadow, step=step, kind=DecisionKind.FALLBACK, reason="shadow")
    [alert] = alerts_of(standing_of(run))
    assert (
        alert["title"] == "Fallback share is high" and "deadline" in alert["detail"] and run.public_id in alert["url"]
    )
    assert titles(shadow) == []


def test_a_cap_that_binds_nearly_always_is_an_alert():
    run = make_run()
    for step in range(8):
        deliver_group(run, step=step, outcomes="PF", scores={"A": 2})
    [alert] = alerts_of(standing_of(run))
    # credit kept of a lone T3 pass: 0.325 / 0.5
    assert alert["title"] == "The cap on lambda binds often" and "65%" in alert["detail"]


def test_late_deliveries_and_unsent_rows_are_alerts():
    run = lively_run(steps=9)
    assert "Deliveries wait" not in titles(run), "stored a moment ago"
    Delivery.objects.update(created_at=timezone.now() - timedelta(minutes=5), receipt="")
    assert "Deliveries wait" in titles(run)
    late = Job(make_life(run=run))
    for group in run.groups.all()[:3]:
        late.receipt(group, "too_late", step=9)
    assert "Deliveries come late" in titles(run)


def test_inverted_rewards_and_a_metric_that_is_no_number_are_alerts():
    run = make_run()
    group = deliver_group(run, step=1, kind=DecisionKind.FALLBACK, reason="skipped")
    assert titles(run) == []
    shaped = make_group(run=run, state=GroupState.GRADED, outcomes="PF", step=1)
    shaped.trajectories.filter(outcome="failed").update(reward="2.0")
    decisions.decide(shaped, DecisionKind.FALLBACK, by="test", reason="skipped")
    delivery.deliver(run)
    Job(group.life).metrics(2, pg_loss="NaN")
    assert titles(run) == ["pg_loss is NaN", "Inverted rewards"]
