"""Which containers nobody waits for, on paper."""

import os
import subprocess
import time

from grading.grader.sandbox import leftovers
from grading.grader.sandbox.leftovers import UNTIL, WORKER, is_left


def test_a_living_workers_container_is_left_alone_until_its_time_is_over():
    said = leftovers.labels(wall_s=60)
    now = time.time()
    assert not is_left(said, now)
    assert not is_left(said, now + 170)
    assert is_left(said, now + 190)  # 60 s to run, 120 s to be made and removed


def test_a_pid_that_came_again_is_another_worker():
    said = leftovers.labels(wall_s=60)
    machine, pid, started = said[WORKER].rsplit(" ", 2)
    assert int(pid) == os.getpid()
    assert is_left(said | {WORKER: f"{machine} {pid} {int(started) - 1}"}, time.time())
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert is_left(said | {WORKER: f"{machine} {ended.pid} {started}"}, time.time())


def test_a_worker_of_another_machine_or_container_is_only_told_by_its_time():
    said = leftovers.labels(wall_s=60) | {WORKER: "another-boot/pid:[1] 17 99"}
    assert not is_left(said, time.time())
    assert is_left(said, time.time() + 190)


def test_labels_that_cannot_be_read_are_nobodys():
    assert is_left({}, time.time())
    assert is_left({WORKER: "x", UNTIL: "never"}, time.time())


def test_two_installations_on_one_engine_do_not_reap_each_other(settings):
    ours = leftovers.installation()
    settings.SECRET_KEY = "another"
    assert leftovers.installation() != ours
