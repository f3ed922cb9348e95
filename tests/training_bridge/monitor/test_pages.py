"""Runs, monitor, series and the pause button as people call them."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from grading.states import DecisionKind, GroupState
from tests.factories import make_group, make_life, make_run, make_team, make_user
from tests.training_bridge.monitor.rows import Job, deliver_group
from training_bridge import intake
from training_bridge.models import Alert, JobCursor
from training_bridge.monitor import alerting
from training_bridge.monitor.headline import figures
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


def test_the_pass_rate_on_top_is_of_the_paid_groups_until_the_job_reports_one(viewer):
    run = make_run(team=viewer.team)
    life = make_life(run=run)
    deliver_group(run, step=0, life=life)
    shown = {figure["name"]: figure for figure in figures(standing_of(run))}["Pass rate"]
    group = run.groups.get()
    passed = group.trajectories.filter(outcome="passed").count() / group.trajectories.count()
    assert (shown["value"], shown["words"]) == (f"{100 * passed:.1f} %", "last 10 steps")
    Job(life).metrics(0, pass_rate=0.125)
    assert {figure["name"]: figure for figure in figures(standing_of(run))}["Pass rate"]["value"] == "12.5 %"


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
    assert page.count("data-panel=") == 18
    assert f'data-live="/ws/v1/runs/{run.public_id}/watch"' in page
    assert "epoch 1 · head 3" in page and "No alert." in page and "52.0 %" in page


def test_the_monitor_of_an_imported_run_has_no_stream_and_no_socket(client, viewer):
    run = make_run(team=viewer.team, kind="imported")
    page = client.get(f"/runs/{run.public_id}/").content.decode()
    assert "it was imported" in page and 'data-live=""' in page


def test_the_series_refuse_what_is_no_step(client, viewer):
    run = make_run(team=viewer.team)
    assert client.get(f"/runs/{run.public_id}/series.json").json()["series"] == {}
    for wrong in ("-1", "x", "1e3", "9" * 30):
        assert client.get(f"/runs/{run.public_id}/series.json?from={wrong}").status_code == 400


def test_another_teams_run_is_not_there(client, viewer):
    run = lively_run(team=make_team())
    for path in ("", "series.json"):
        assert client.get(f"/runs/{run.public_id}/{path}").status_code == 404
    assert run.name not in client.get("/runs/").content.decode()
    client.logout()
    assert client.get(f"/runs/{run.public_id}/").status_code == 302


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


def test_a_run_without_a_job_is_neither_silent_nor_an_alert():
    run = make_run()
    alerting.watch()
    assert standing_of(run).state == "no job yet" and not Alert.objects.exists()
