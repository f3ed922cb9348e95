"""`gagar-check` from the trainer's machine, against the real server and against what is none."""

import subprocess
import sys
import threading

import pytest
from django.db import connection

from grading.ingest.lives import issue_life
from grading.models import Life, RolloutGroup, Task
from tests.factories import make_run, make_token
from training_bridge import delivery
from training_bridge.client import check
from training_bridge.models import JobCursor

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run():
    return make_run()


@pytest.fixture
def checked(server, run, monkeypatch, capsys):
    """Run it. Returns: the exit status and what it said."""

    def go(*arguments, purposes=("ingest", "train"), url=server, public_id=run.public_id, token=None):
        monkeypatch.setenv("GAGAR_TOKEN", token or make_token(run=run, purposes=purposes)[1])
        return check.main([url, public_id, *arguments]), capsys.readouterr().out

    return go


def test_all_is_well_and_the_run_is_untouched(checked, run, tmp_path):
    status, said = checked("--spool", str(tmp_path / "spool"), "--hold", "0.2")
    assert status == 0, said
    for words in (
        "purpose ingest", "purpose train", "clocks are 0 s apart", "a ping takes", "idle websocket", "GiB are free",
        "accepts the estimator", "A run can start.",
    ):  # fmt: skip
        assert words in said
    assert not Life.objects.exists() and not JobCursor.objects.exists() and not RolloutGroup.objects.exists()
    assert not run.stream.deliveries.exists() and list((tmp_path / "spool").iterdir()) == []


@pytest.mark.parametrize("estimator", ['{"std": "ddof1"}', '{"eps": 1e-6}', '{"clip": 5}', '{"cap": 9}', "{"])
def test_an_estimator_that_would_be_refused_is_told_before_the_run(checked, estimator):
    status, said = checked("--estimator", estimator)
    name = estimator.split('"')[1] if '"' in estimator else "JSON"
    assert status == 1 and name in said and "FAIL" in said


def test_a_missing_purpose_a_foreign_token_and_a_foreign_run_fail_in_words(checked):
    status, said = checked(purposes=("train",))
    assert status == 1 and "lacks the purpose ingest" in said
    status, said = checked(token="nonsense")
    assert status == 1 and "401" in said
    status, said = checked(public_id="elsewhere")
    assert status == 1 and "404" in said


def test_no_server_no_url_no_token_and_another_server_fail_in_words(checked, monkeypatch, tmp_path):
    assert "does not answer" in checked(url="http://127.0.0.1:9")[1]
    assert "no http://host" in checked(url="localhost:8000")[1]
    (tmp_path / "file").write_text("")
    status, said = checked("--spool", str(tmp_path / "file"), url="http://127.0.0.1:9")
    assert status == 1 and "cannot be written" in said
    monkeypatch.setenv("GAGAR_TOKEN", "")
    assert check.main(["http://127.0.0.1:9", "r"]) == 1


@pytest.mark.parametrize("lives", [0, 2])
def test_a_delivery_goes_out_and_back_without_fencing_anybody(checked, run, lives):
    for _ in range(lives):
        issue_life(run)
    done = threading.Event()

    def sweep():  # as a worker does
        while not done.wait(0.2):
            delivery.sweep()
        connection.close()

    sweeping = threading.Thread(target=sweep)
    sweeping.start()
    status, said = checked("--deliver")
    done.set()
    sweeping.join()
    assert status == 0 and "its row came back" in said
    assert Life.objects.count() == max(lives, 1) and Task.objects.filter(key="gagar-check").exists()
    [row] = run.stream.deliveries.all()
    assert (row.regime, row.group.life.n, row.group.eligible) == ("ineligible", max(lives, 1), False)


def test_it_needs_no_server_package():
    code = "import sys; import training_bridge.client.check; print([m for m in sys.modules if m.startswith('django')])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
