"""A pause, as admins press it, as held groups live through it, and as the job hears it."""

import json
import time

import pytest
from django.urls import reverse

from grading.errors import BadInput, Conflict, WrongState
from grading.models import RunEvent
from grading.review import decisions
from tests.factories import make_life, make_run, make_team, make_user
from tests.training_bridge.monitor.rows import deliver_group
from tests.verdicts import held_group
from training_bridge import delivery, intake, pausing
from training_bridge.errors import NoStream
from training_bridge.models import Delivery

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(client):
    user = make_user(username="ada", role="admin", team=make_team())
    client.force_login(user)
    user.team = user.memberships.get().team
    return user


def text(client, run) -> str:
    return " ".join(client.get(reverse("run-pause", args=[run.public_id])).content.decode().split())


def test_only_an_admin_of_the_team_pauses_and_says_why(client, admin):
    run = make_run(team=admin.team)
    path = reverse("run-pause-switch", args=[run.public_id])
    client.force_login(make_user(role="viewer", team=run.team))
    assert client.post(path, {"paused": "1", "reason": "x"}).status_code == 403
    assert "Pausing needs the role admin" in text(client, run)
    client.force_login(make_user(role="admin", team=make_team()))
    assert client.post(path, {"paused": "1", "reason": "x"}).status_code == 404
    client.force_login(admin)
    assert client.get(path).status_code == 405
    assert client.post(path, {"paused": "1", "reason": " "}).status_code == 400
    assert client.post(path, {"paused": "2", "reason": "x"}).status_code == 400
    assert not Delivery.objects.exists() and not RunEvent.objects.exists()


def test_a_pause_and_its_end_stand_in_stream_and_history(client, admin):
    run = make_run(team=admin.team)
    path = reverse("run-pause-switch", args=[run.public_id])
    assert client.post(path, {"paused": "1", "reason": "entropy rises"}).status_code == 302
    run.refresh_from_db()
    row = json.loads(Delivery.objects.get().text)
    assert run.paused and (row["type"], row["mode"], row["reason"]) == (
        "control",
        "outcome_only",
        "entropy rises (ada)",
    )
    page = text(client, run)
    assert "Outcome advantages go out" in page and "entropy rises" in page and "row 1" in page
    banner = client.get(reverse("run-banner", args=[run.public_id])).content.decode()
    assert "Redistribution is paused" in banner and "entropy rises" in banner
    assert client.post(path, {"paused": "0", "reason": "it fell again"}).status_code == 302
    run.refresh_from_db()
    assert not run.paused and run.stream.mode == "normal"
    settings = client.get(reverse("run-settings", args=[run.public_id])).content.decode()
    assert reverse("run-pause", args=[run.public_id]) in settings
    assert "Paused: no → yes · Reason: entropy rises" in settings and "Paused: yes → no" in settings


def test_of_two_admins_the_second_reads_the_words_of_the_first(client, admin):
    run = make_run(team=admin.team)
    pausing.switch(run, paused=True, reason="entropy rises", by="bob")
    answer = client.post(reverse("run-pause-switch", args=[run.public_id]), {"paused": "1", "reason": "me too"})
    assert answer.status_code == 409
    assert "is paused already, by bob" in answer.content.decode() and "entropy rises" in answer.content.decode()
    assert Delivery.objects.count() == 1 and RunEvent.objects.count() == 1
    with pytest.raises(Conflict, match="redistributes already"):
        pausing.switch(make_run(), paused=False, reason="x", by="bob")


def test_held_groups_wait_through_a_pause_and_what_was_decided_goes_out_as_decided(client, admin):
    run = make_run(team=admin.team, policy="manual")
    held = held_group(run=run, outcomes="PPF")
    deliver_group(run, step=1)
    decided = held_group(run=run, outcomes="PPF")
    decisions.approve(decided, seen_verdict=decided.verdicts.get().pk, user=admin)
    page = text(client, run)
    assert "<b>1</b> held for people" in page and "1 of them has no deadline" in page
    assert "<b>1</b> decided and not delivered: it goes out as decided" in page
    pausing.switch(run, paused=True, reason="entropy rises", by="ada")
    held.refresh_from_db()
    held.run.refresh_from_db()
    with pytest.raises(WrongState, match="is paused"):
        decisions.approve(held, seen_verdict=held.verdicts.get().pk, user=admin)
    delivery.deliver(run)
    assert decided.deliveries.get().regime == "exact"
    pausing.switch(run, paused=False, reason="it fell", by="ada")
    held.run.refresh_from_db()
    decisions.approve(held, seen_verdict=held.verdicts.get().pk, user=admin)
    delivery.deliver(run)
    assert held.deliveries.get().regime == "exact"


def test_the_page_says_how_far_the_job_heard_it():
    run = make_run()
    life = make_life(run=run)
    assert pausing.heard(run) is None
    pausing.switch(run, paused=True, reason="entropy rises", by="ada")
    assert pausing.heard(run)["status"] == "waiting"
    delivery.mark_sent(run, 1, [(0, 1, time.monotonic())])
    assert pausing.heard(run)["status"] == "sent"
    intake.acknowledge(life, epoch=1, received=1, durable=1)
    assert pausing.heard(run)["status"] == "durable"


def test_an_imported_run_has_nothing_to_pause_and_no_reason_is_no_pause(client, admin):
    run = make_run(team=admin.team, kind="imported")
    assert "nothing to pause" in text(client, run)
    with pytest.raises(NoStream):
        pausing.switch(run, paused=True, reason="x", by="ada")
    with pytest.raises(BadInput):
        pausing.switch(make_run(), paused=True, reason="", by="ada")
