"""Limits bind, the worker stays small, and nothing lives on (S4, S5, S6, S7). All of it is hard on the machine."""

import os
import signal
import tempfile
import threading
import time
import uuid
from pathlib import Path

import pytest

from grading import tasks
from grading.errors import NoSandbox
from grading.grader.sandbox import Expect, Limits, Sandbox, reap
from tests.conftest import wait_for
from tests.grading.grader.sandbox.asking import Box, marked

pytestmark = pytest.mark.alone
MIB = 1 << 20


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Steady:
    """The most memory that this process takes while something runs, beyond what it took before."""

    def __enter__(self):
        self.before, self.most, self.is_over = resident(), 0, threading.Event()
        self.thread = threading.Thread(target=self._look)
        self.thread.start()
        return self

    def _look(self):
        while not self.is_over.wait(0.01):
            self.most = max(self.most, resident() - self.before)

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()


SMALL = Limits(wall_s=20, cpu_s=5, memory_bytes=256 * MIB, pids=24, file_bytes=8 * MIB, disk_bytes=32 * MIB)


def test_a_fork_bomb_ends_at_its_own_limit(box):
    code = """
        import os, time
        made = 0
        try:
            for _ in range(600):
                if os.fork() == 0: time.sleep(60); os._exit(0)
                made += 1
        except OSError as e: print('refused', e)
        print('made', 'few' if made < 24 else made)
    """
    ran = box.python(code, expect=Expect(contains="made few"), limits=SMALL)
    assert ran.outcome == "passed", (ran, ran.output)
    bomb = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    ran = box.python(bomb, limits=Limits(wall_s=1.5, pids=24))
    assert ran.outcome == "timeout"
    assert box.python("print(42)", expect=Expect(stdout="42")).outcome == "passed"  # this machine still forks


def test_memory_ends_at_its_limit_for_one_process_and_for_all_together(box):
    ran = box.python("x = b'a' * (2 << 30)\nprint('got it')", expect=Expect(contains="got it"), limits=SMALL)
    assert ran.outcome in ("failed", "killed") and b"got it" not in ran.output
    many = """
        import os, time
        for _ in range(6):
            if os.fork() == 0:
                x = bytearray(os.urandom(1 << 20)) * 100; time.sleep(2); os._exit(0)
        for _ in range(6): os.wait()
        print('got it')
    """
    ran = box.python(many, expect=Expect(contains="got it"), limits=SMALL)
    assert ran.outcome in ("failed", "killed"), ran
    assert ran.duration_s < 19


def test_files_end_at_the_limit_of_one_and_of_all_wherever_they_are_written(box):
    code = """
        import os, errno
        def fill(path, size):
            try:
                with open(path, 'wb') as f:
                    while f.tell() < size: f.write(b'x' * (1 << 20)); f.flush()
            except OSError as e: return errno.errorcode[e.errno]
        print('one', fill('large', 300 << 20)); os.unlink('large')
        total, places = 0, ('/check', '/check/tree', '/check/tmp', '/tmp', '/dev/shm', '/dev', '/', '/run', '/var/tmp')
        for place in places:
            for number in range(100):
                path = f'{place}/f{number}'
                if fill(path, 4 << 20): break
        for folder, _, files in os.walk('/'):
            if folder.startswith(('/proc', '/sys', '/usr')): continue
            for name in files:
                path = os.path.join(folder, name)
                if name.startswith('f') and os.stat(path).st_uid == os.getuid(): total += os.stat(path).st_size
        print('all', total >> 20, 'MiB', 'bounded' if total < 200 << 20 else 'UNBOUNDED')
    """
    ran = box.python(code, expect=Expect(contains="bounded"), limits=SMALL)
    assert ran.outcome == "passed", (ran, ran.output)
    assert b"one EFBIG" in ran.output and b"UNBOUNDED" not in ran.output


def test_a_hundred_thousand_files_are_over_in_time(box):
    code = """
        import os
        made = 0
        try:
            for number in range(100_000):
                with open(f'f{number}', 'wb') as f: f.write(b'x' * 100_000)
                made += 1
        except OSError as e: print('refused', e)
        print('made', 'few' if made < 1000 else made)
    """
    ran = box.python(code, expect=Expect(contains="made few"), limits=SMALL)
    assert ran.outcome == "passed", (ran, ran.output)


@pytest.mark.parametrize(
    "code",
    [
        "import sys\nfor _ in range(200): sys.stdout.write('x' * 1_000_000)",
        "import sys\nfor _ in range(200): sys.stderr.write('x' * 1_000_000)",
        "import os\nos.execvp('yes', ['yes'])",
    ],
    ids=["200 MB on stdout", "200 MB on stderr", "yes"],
)
def test_output_is_cut_with_a_flag_and_the_worker_stays_small(box, code):
    with Steady() as steady:
        ran = box.python(code, limits=SMALL)
    assert (ran.outcome, ran.is_truncated, len(ran.output)) == ("killed", True, MIB)
    assert "printed without end" in ran.words
    assert steady.most < 50e6


def test_time_ends_everything_also_what_hides(box):
    mark = f"gagar-mark-{uuid.uuid4().hex}"
    code = f"""
        import os, signal, subprocess, sys, time
        deaf = 'import signal, time\\nsignal.signal(15, signal.SIG_IGN)\\ntime.sleep(300)'
        hold = [sys.executable, '-c', deaf, '{mark}']
        subprocess.Popen(hold)
        subprocess.Popen(hold, start_new_session=True, stdin=-3, stdout=-3, stderr=-3)
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0: os.execv(sys.executable, hold)
            os._exit(0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print('started', flush=True)
        time.sleep(300)
    """
    ran = box.python(code, limits=Limits(wall_s=2))
    assert ran.outcome == "timeout" and b"started" in ran.output
    assert ran.duration_s < 15
    wait_for(lambda: not marked(mark), within_s=5)
    quick = code.replace("time.sleep(300)\n    ", "sys.exit(0)\n    ").replace(
        "signal.signal(signal.SIGTERM", "sys.exit(3) #"
    )
    assert box.python(quick).exit_code == 3
    wait_for(lambda: not marked(mark), within_s=5)


def test_a_processor_limit_ends_a_busy_loop(box):
    ran = box.python("while True: pass", limits=Limits(wall_s=30, cpu_s=1))
    assert (ran.outcome, ran.words) == ("killed", "ended by SIGKILL: a limit")


def test_a_test_that_never_ends_is_ended(bubblewrap_box):
    box = bubblewrap_box
    ran = box.tests("def test_x():\n    while True: pass", limits=Limits(wall_s=30, cpu_s=1))
    assert ran.outcome == "killed", ran
    ran = box.tests("def test_x():\n    while True: pass", limits=Limits(wall_s=1))
    assert ran.outcome == "timeout", ran


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_the_limits_bind_for_a_worker_that_is_not_root(bubblewrap_box):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        bubblewrap_box.tree = Path(folder)
        code = """
            import os, time
            try:
                for made in range(100):
                    if os.fork() == 0: time.sleep(30); os._exit(0)
            except OSError: pass
            print('made', 'few' if made < 24 else made, os.getuid())
        """
        said, says = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.setgroups([])
                os.setresgid(65533, 65533, 65533)
                os.setresuid(65533, 65533, 65533)
                ran = bubblewrap_box.python(code, expect=Expect(contains="made few 65534"), limits=SMALL)
                os.write(says, f"{ran} {ran.output}".encode())
            finally:
                os._exit(0)
        os.close(says)
        got = os.read(said, 10_000).decode()
        os.waitpid(pid, 0)
        os.close(said)
    assert "outcome='passed'" in got, got


def child_that_runs(box: Box, mark: str) -> int:
    """A worker in a process of its own, in the middle of a check; its pid."""
    pid = os.fork()
    if pid == 0:
        try:
            box.ask(argv=("sh", "-c", f"sleep 300; : {mark}"), limits=Limits(wall_s=300))
        finally:
            os._exit(1)
    return pid


@pytest.mark.parametrize("kills", [20])
def test_a_killed_worker_leaves_nothing_once_the_reaper_has_been(box, kills):
    mark = f"gagar-mark-{uuid.uuid4().hex}"
    workers = []
    for number in range(kills):
        workers.append(child_that_runs(box, f"{mark}-{number}"))
        if number % 4 != 3:  # every fourth is killed wherever it is, the others in the middle of the check
            wait_for(lambda number=number: [p for p in marked(f": {mark}-{number}") if p not in workers], every_s=0.01)
        os.kill(workers[-1], signal.SIGKILL)
        os.waitpid(workers[-1], 0)
    if box.name == "docker":
        containers = box.sandbox.engine.api.containers
        assert len(containers(all=True)) >= kills * 3 // 4
        tasks.reap_sandboxes()
        assert containers(all=True) == []
    wait_for(lambda: not marked(mark), within_s=10)


def test_the_reaper_leaves_a_living_workers_container_alone(docker_box):
    done = []
    asked = {"argv": ("sh", "-c", "sleep 1; echo 42"), "expect": Expect(stdout="42")}
    worker = threading.Thread(target=lambda: done.append(docker_box.ask(**asked)))
    worker.start()
    wait_for(docker_box.sandbox.engine.api.containers, every_s=0.02)
    assert reap() == 0
    worker.join(30)
    assert done[0].outcome == "passed"


def test_a_killed_launcher_takes_everything_with_it(bubblewrap_box):
    mark, done = f"gagar-mark-{uuid.uuid4().hex}", []
    asked = {"argv": ("sh", "-c", f"setsid sleep 300 & sleep 300; : {mark}")}
    worker = threading.Thread(target=lambda: done.append(bubblewrap_box.ask(**asked)))
    worker.start()
    launcher = wait_for(lambda: [p for p in marked(mark) if "bwrap" in Path(f"/proc/{p}/comm").read_text()])[0]
    time.sleep(0.1)
    os.kill(launcher, signal.SIGKILL)
    worker.join(20)
    assert done[0].outcome == "killed"
    wait_for(lambda: not marked(mark), within_s=5)


def test_a_container_that_cannot_start_is_not_left_half_made(docker_box):
    api = docker_box.sandbox.engine.api
    api.import_image_from_data(b"\0" * 10240, repository="gagar-tests", tag="empty")
    sandbox = Sandbox(
        type(docker_box.sandbox.engine)(type("C", (), {"api": api}), "gagar-tests:empty"), "gagar-tests:empty"
    )
    docker_box.sandbox = sandbox
    with pytest.raises(NoSandbox, match="docker could not run the check"):
        docker_box.ask(argv=("true",))
    assert api.containers(all=True) == []
