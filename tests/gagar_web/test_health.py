"""What a load balancer and a container's health check hear, from the real site, a real file and a real exit status."""

import os
import subprocess
import sys
import time

import httpx
import pytest
from celery.signals import heartbeat_sent
from django.db import OperationalError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder

from gagar_web import health
from gagar_web.healthy import why_not
from tests.real_processes import ROOT, free_port


@pytest.fixture(autouse=True)
def looked_at_nothing_yet(monkeypatch):
    monkeypatch.setattr(health, "_is_migrated", False)


def test_a_site_whose_database_is_up_to_date_is_healthy_whatever_it_is_called(server):
    answer = httpx.get(f"{server}/healthz", headers={"Host": "10.1.2.3"})
    assert (answer.status_code, answer.json()) == (200, {"database": True, "migrations": True})
    assert answer.headers["cache-control"] == "no-store" and "set-cookie" not in answer.headers
    assert httpx.head(f"{server}/healthz").status_code == 200
    # the exception is for this page alone
    assert httpx.get(f"{server}/sign-in", headers={"Host": "10.1.2.3"}).status_code == 400
    assert why_not({"UVICORN_PORT": server.rpartition(":")[2]}) == ""


def test_a_site_with_a_migration_to_come_is_not_ready(server):
    newest = MigrationExecutor(connection).loader.graph.leaf_nodes("grading")[0]
    MigrationRecorder(connection).record_unapplied(*newest)
    try:
        answer = httpx.get(f"{server}/healthz")
        assert (answer.status_code, answer.json()) == (503, {"database": True, "migrations": False})
        assert why_not({"UVICORN_PORT": server.rpartition(":")[2]}).startswith("/healthz answers 503")
    finally:
        MigrationRecorder(connection).record_applied(*newest)
    assert httpx.get(f"{server}/healthz").status_code == 200, "it looks again until all is applied"


@pytest.mark.django_db
def test_a_database_that_is_away_is_said_without_its_words():
    def away(*_):
        raise OperationalError("connection to 10.0.0.1 as gagar refused")

    with connection.execute_wrapper(away):
        assert health.look() == {"database": False, "migrations": False}


def test_a_heartbeat_is_fresh_old_or_missing(tmp_path, settings):
    settings.GAGAR_HEARTBEAT_FILE = str(tmp_path / "alive")
    environ = {"GAGAR_HEARTBEAT_FILE": settings.GAGAR_HEARTBEAT_FILE}
    assert why_not(environ).startswith("no heartbeat yet")
    heartbeat_sent.send(sender=None)  # what a worker's heart says every 2 s
    assert why_not(environ) == ""
    old = time.time() - 90
    os.utime(tmp_path / "alive", (old, old))
    assert why_not(environ).startswith("the last heartbeat is 90 s old")


def test_the_check_ends_with_a_status_and_needs_no_package():
    command = [sys.executable, "-I", "-S", "gagar_web/healthy.py"]
    port = str(free_port())
    ended = subprocess.run(command, cwd=ROOT, env={"UVICORN_PORT": port}, capture_output=True, text=True, check=False)
    assert ended.returncode == 1 and f"nothing answers on port {port}" in ended.stderr
