"""The site and a real job as processes of their own: a person decides while it trains, and any of them may be killed.

One site serves all tests but the demo's, in the order in which they stand; the job goes on from test to test, so they
run together (with xdist: --dist loadfile).
"""

import contextlib
import io
import json
import os
import shutil
import signal
from collections import Counter
from itertools import groupby

import pytest

from tests.conftest import wait_for
from tests.real_processes import Browser, Fields, Site, parent_of

torch = pytest.importorskip("torch")

from training_bridge.client import GagarClient  # noqa: E402
from training_bridge.tiny_job import checkpoint, inspect, loop  # noqa: E402
from training_bridge.tiny_job.runner import Runner  # noqa: E402

pytestmark = [pytest.mark.timeout(400), pytest.mark.alone]
GROUPS, ROLLOUTS = 3, 4
PACE = ("--wait-s", "0.5", "--hold-steps", "12", "--min-step-s", "1.5")
POLICY = {"policy": "sampled", "hold_share": "0.5", "hold_budget": "0", "collect_deadline_s": "12"}


def begin(path, run, *, groups, rollouts):
    """A checkpoint at step 0 with an untrained policy: nobody has to wait for the warm-up."""
    with Runner() as runner:
        job = loop.Job(loop.Plan("redistribute", 0, groups, rollouts), runner, path)
        job.save(GagarClient("http://127.0.0.1:9", run, "token"))


class Stage:
    """A served site, one run on it, and its job."""

    def __init__(self, folder):
        self.site, self.run = Site(folder).with_tables(), "killed"
        self.checkpoint = folder / "job.pt"
        begin(self.checkpoint, self.run, groups=GROUPS, rollouts=ROLLOUTS)
        self.server = self.site.serve()
        self.browser = Browser(self.site.url)
        self.browser.sign_in("admin", self.server.find(r"with the password (\S+)"))
        form = Fields("panel-body stack", self.browser.page("/new-run")).values
        made = self.browser.post("/new-run", form | POLICY | {"public_id": self.run, "name": "Killed"})
        self.token = made.text.split('<code class="token">')[1].split("<")[0]

    def start_job(self, *more):
        plan = ("--groups", str(GROUPS), "--rollouts", str(ROLLOUTS), "--checkpoint", str(self.checkpoint))
        module = ("-m", "training_bridge.tiny_job", "--url", self.site.url, "--run", self.run)
        self.job = self.site.start(*module, *plan, *PACE, *more, GAGAR_TOKEN=self.token)
        return self.job

    def steps_done(self):
        found = self.job.find(r"(?s).*\nstep +(\d+) ")
        return 0 if found is None else int(found) + 1

    def wait_for_steps(self, more):
        until = self.steps_done() + more
        wait_for(lambda: self.steps_done() >= until or self.job.process.poll() is not None, within_s=60)
        assert self.steps_done() >= until, self.job.said

    def applied_from(self, step):
        """Groups that an optimiser step from this one on used as the server decided them."""
        sql = "SELECT count(*) FROM training_bridge_receipt WHERE status = 'applied' AND version > 0 AND step >= ?"
        return self.site.value(sql, step)


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    made = Stage(tmp_path_factory.mktemp("killed"))
    yield made
    made.site.stop()


def inspected(path):
    """What `python -m training_bridge.tiny_job.inspect` prints; in here, as torch takes seconds to start."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert inspect.main([str(path)]) == 0
    return json.loads(printed.getvalue())


def all_once(stage):
    """The checkpoint's groups, each once, none missing; then the server's rows say the same."""
    found = inspected(stage.checkpoint)
    used = [(row["life"], row["group"]) for row in found["applied"]]
    waiting = [(row["life"], row["group"]) for row in found["waiting"]]
    assert max(Counter(used + waiting).values()) == 1
    assert len(used) + len(waiting) == GROUPS * found["step"]
    told = {(row[0], row[1]): tuple(row[2:]) for row in found["cursor"]["applied"]}
    assert told == {(row["life"], row["group"]): (row["version"], row["step"]) for row in found["applied"]}
    decided = {(row["life"], row["group"], row["version"], row["step"]) for row in found["applied"] if row["version"]}
    receipts = "SELECT life.n, of.key, r.version, r.step FROM training_bridge_receipt r JOIN grading_rolloutgroup of"
    receipts += " ON of.id = r.group_id JOIN grading_life life ON life.id = of.life_id WHERE r.status = 'applied'"
    noted = stage.site.rows(receipts)
    assert decided <= set(noted), "every decision that trained was receipted, at its step"
    assert len({row[:2] for row in noted}) == len(set(noted)), "and none of them at two steps or in two versions"
    rows_whole(stage.site)
    return found


def rows_whole(site):
    """Nothing stuck, one newest row a group, no gap in the stream or in the numbered messages, no body missing."""
    stuck = "SELECT key, state FROM grading_rolloutgroup WHERE state NOT IN ('graded', 'ungraded', 'delivered')"
    wait_for(lambda: not site.rows(stuck), within_s=30)
    newest = "SELECT g.key, count(d.id) FROM grading_rolloutgroup g LEFT JOIN training_bridge_delivery d"
    newest += " ON d.group_id = g.id AND d.version = g.version WHERE g.state = 'delivered' GROUP BY g.id"
    assert {count for _, count in site.rows(newest)} == {1}
    assert not site.rows("SELECT decision_id FROM training_bridge_delivery GROUP BY decision_id HAVING count(*) > 1")
    stream = site.rows("SELECT epoch, seq FROM training_bridge_delivery ORDER BY epoch, seq")
    for _, rows in groupby(stream, key=lambda row: row[0]):
        seqs = [seq for _, seq in rows]
        assert seqs == list(range(1, len(seqs) + 1))
    assert stream[-1] == site.rows("SELECT epoch, head_seq FROM training_bridge_stream")[0]
    numbered = "SELECT life_id, n FROM training_bridge_receipt UNION SELECT life_id, n FROM training_bridge_metricpoint"
    cursors = dict(site.rows("SELECT life_id, noted FROM training_bridge_jobcursor"))
    for life, rows in groupby(site.rows(f"{numbered} ORDER BY 1, 2"), key=lambda row: row[0]):
        assert [n for _, n in rows] == list(range(1, cursors[life] + 1))
    named = "SELECT patch FROM grading_trajectory UNION SELECT event_body FROM grading_trajectory"
    bodies = {path.name.partition(".")[0] for path in (site.folder / "data" / "bodies").rglob("*") if path.is_file()}
    assert {digest for (digest,) in site.rows(f"{named} UNION SELECT log FROM grading_trajectory") if digest} <= bodies
    assert site.rows("PRAGMA integrity_check") == [("ok",)]


def held_group(site):
    """The newest group that waits for a person, with bodies and a valid verdict."""
    found = site.rows(
        "SELECT g.id, v.id FROM grading_rolloutgroup g JOIN grading_verdict v ON v.group_id = g.id"
        " WHERE g.state = 'graded' AND g.wanted_by IS NULL AND v.is_valid AND NOT EXISTS (SELECT 1 FROM"
        " grading_trajectory t WHERE t.group_id = g.id AND t.event_count IS NULL) ORDER BY g.id DESC"
    )
    return found and found[0]


def correct(stage, group):
    """Score one candidate's minimality lower, citing its first event (the task); all else as the page shows it."""
    statement = "SELECT statement FROM grading_task t JOIN grading_rolloutgroup g ON g.task_id = t.id WHERE g.id = ?"
    words = stage.site.value(statement, group).splitlines()[0]
    fields = Fields("correction", stage.browser.page(f"/groups/{group}/")).values
    score = next(name for name in sorted(fields) if name.endswith("-minimality"))
    cite = {"letter": score.split("-")[1], "about": "minimality", "kind": "event", "place": "0", "quote": words}
    fields |= {score: "2" if fields[score] != "2" else "1", "reason": "it changes more than the bug asks for"}
    fields |= {f"cite-1-{name}": text for name, text in cite.items()}
    stage.browser.post(f"/groups/{group}/correct", fields)


def test_a_person_corrects_and_approves_a_held_group_and_the_running_job_applies_it(stage):
    stage.start_job()
    group, verdict = wait_for(lambda: held_group(stage.site), within_s=60)
    assert f"/groups/{group}/" in stage.browser.page("/queue/")
    correct(stage, group)
    newest = "SELECT id, parent_id FROM grading_verdict WHERE group_id = ? ORDER BY id DESC"
    corrected, parent = stage.site.rows(newest, group)[0]
    assert parent == verdict
    stage.browser.post(f"/groups/{group}/approve", {"verdict": corrected})
    decision = "SELECT version, verdict_id, user_id IS NOT NULL FROM grading_decision WHERE group_id = ?"
    assert stage.site.rows(decision, group) == [(1, corrected, 1)]
    receipt = "SELECT version, status FROM training_bridge_receipt WHERE group_id = ?"
    assert wait_for(lambda: stage.site.rows(receipt, group), within_s=30) == [(1, "applied")]
    text, used_at = stage.site.rows("SELECT text, used_at FROM training_bridge_delivery WHERE group_id = ?", group)[0]
    assert json.loads(text)["verdict"] == corrected and json.loads(text)["decided_by"] == "admin"
    assert used_at is not None and stage.job.process.poll() is None, "the job ran on all the while"


def test_a_killed_job_goes_on_from_its_checkpoint(stage):
    stage.wait_for_steps(1)
    shutil.copy(stage.checkpoint, stage.site.folder / "older.pt")
    stage.wait_for_steps(2)
    stage.job.kill()
    before = checkpoint.load(stage.checkpoint)
    wait_for(lambda: not any("tiny_job" in words for words in stage.site.running().values()))
    stage.start_job().wait_to_say(f"resumed .* at step {before['step']}")
    stage.wait_for_steps(1)


def test_a_killed_server_takes_its_worker_along_and_the_job_trains_on_and_comes_back(stage):
    assert len(stage.site.workers()) >= 3
    stage.server.kill()
    wait_for(lambda: not stage.site.workers(), within_s=30)
    stage.wait_for_steps(1)
    away = stage.steps_done()
    stage.server = stage.site.serve()
    stage.wait_for_steps(2)
    wait_for(lambda: stage.applied_from(away), within_s=90)


def test_a_worker_killed_in_mid_grading_is_started_again_and_its_groups_are_graded(stage):
    grading = "SELECT id FROM grading_rolloutgroup WHERE state = 'grading'"
    claimed = wait_for(lambda: stage.site.rows(grading), within_s=60, every_s=0.005)
    killed = stage.site.workers()
    os.kill(next(pid for pid in killed if parent_of(pid) == stage.server.process.pid), signal.SIGKILL)
    at = stage.steps_done()
    wait_for(lambda: set(stage.site.workers()) - {*killed}, within_s=60)
    graded = "SELECT count(*) FROM grading_verdict WHERE group_id = ?"
    for (group,) in claimed:
        wait_for(lambda group=group: stage.site.value(graded, group) == 1, within_s=60)
    wait_for(lambda: stage.applied_from(at + 1), within_s=60)


def test_after_all_that_a_stopped_job_shows_every_group_once(stage):
    stage.job.signal(signal.SIGTERM)
    assert stage.job.ended() == 0, stage.job.said
    assert all_once(stage)["step"] == stage.steps_done()


def test_a_job_put_back_to_an_older_checkpoint_shows_every_group_once(stage):
    shutil.copy(stage.site.folder / "older.pt", stage.checkpoint)
    step = checkpoint.load(stage.checkpoint)["step"]
    assert step < stage.steps_done()
    stage.start_job("--steps", str(step + 2))
    assert stage.job.ended(60) == 0, stage.job.said
    found = all_once(stage)
    assert found["step"] == step + 2
    # what the lost time line had applied is undone: it was told, and it is not in the checkpoint
    assert stage.site.value("SELECT count(*) FROM training_bridge_receipt WHERE status = 'not_used'")


def test_a_second_server_says_in_one_line_what_is_taken(stage):
    same_folder = stage.site.manage("serve")
    other_folder = {"GAGAR_DATA_DIR": f"{stage.site.folder}/other"}
    same_port = stage.site.start("manage.py", "demo", "--port", str(stage.site.port), **other_folder)
    for second, words in ((same_folder, "another server runs on the folder"), (same_port, "cannot listen on port")):
        assert second.ended() == 1
        assert words in second.said and second.said.count("\n") == 1, second.said


def test_ctrl_c_ends_the_server_with_status_0_and_leaves_no_process(stage):
    stage.server.signal(signal.SIGINT)
    assert stage.server.ended() == 0, stage.server.said
    assert stage.site.running() == {}
    assert "Traceback" not in stage.server.said
    rows_whole(stage.site)


@pytest.fixture
def demo(tmp_path):
    site = Site(tmp_path)
    (tmp_path / "data" / "demo").mkdir(parents=True)
    begin(tmp_path / "data" / "demo" / "demo-1.pt", "demo-1", groups=8, rollouts=16)
    yield site
    site.stop()


def test_ctrl_c_of_the_demo_saves_and_leaves_no_process_and_the_next_start_ends_it(demo):
    first = demo.manage("demo", "--steps", "50")
    first.wait_to_say(r"\nstep +0 ", within_s=120)
    first.signal(signal.SIGINT)
    assert first.ended() == 0, first.said
    assert demo.running() == {}
    assert "Traceback" not in first.said
    step = first.find(r"stopped: step (\d+) saved in")
    second = demo.manage("demo", "--steps", step)
    assert second.ended(90) == 0, second.said
    assert demo.running() == {}
    assert "going on with demo-1" in second.said and "demo-1 is done" in second.said, second.said
    rows_whole(demo)
