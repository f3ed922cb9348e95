"""A small process that runs test suites in forked children, so that a run costs milliseconds.

Started as `python -I fork_server.py`; speaks JSON lines over stdin and stdout. It imports nothing but the standard
library: a fork of a process that has run torch's autograd hangs.
"""

import contextlib
import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
import unittest

OUTPUT_LIMIT = 16_000  # characters
SHOWN_ROOT = "/workspace"
TIME_SIGNALS = (signal.SIGPROF, signal.SIGXCPU, signal.SIGALRM)


class Recorder(unittest.TextTestResult):
    """Remembers the status of every test besides printing it."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.rows = {}

    def note(self, test, status, message=""):
        name = test.id()
        if self.rows.get(name, {}).get("status") in (None, "passed"):
            self.rows[name] = {"name": name, "status": status, "message": message}

    def addSuccess(self, test):
        super().addSuccess(test)
        self.note(test, "passed")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(test, "failed", f"{err[0].__name__}: {err[1]}")

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, "error", f"{err[0].__name__}: {err[1]}")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, "skipped", reason)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.note(test, "failed", f"{err[0].__name__}: {err[1]}")


def limit(request):
    """Bound what the child may take; the alarm is the last resort if this server is killed meanwhile."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, request["cpu_s"])  # a limit counts whole seconds only: it comes behind
    resource.setrlimit(resource.RLIMIT_CPU, (int(request["cpu_s"]) + 1, int(request["cpu_s"]) + 2))
    resource.setrlimit(resource.RLIMIT_AS, (request["memory_mb"] << 20,) * 2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20,) * 2)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    signal.alarm(int(request["wall_s"]) + 5)


def run_suites(modules):
    """Run the tests of some modules and return their rows."""
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromName(name) for name in modules)
    runner = unittest.TextTestRunner(stream=sys.stderr, resultclass=Recorder, verbosity=2)
    return list(runner.run(suite).rows.values())


def child(request, folder, output_fd, report_fd):
    """Become a candidate's process: new session, limits, own folder; never returns."""
    code = 70
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
        os.dup2(output_fd, 1)
        os.dup2(output_fd, 2)
        os.closerange(3, report_fd)  # the candidate shall not reach the server's own pipes
        os.closerange(report_fd + 1, 256)
        sys.stdout.reconfigure(line_buffering=True)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(PATH="/usr/bin:/bin", HOME=folder, LANG="C.UTF-8", PYTHONDONTWRITEBYTECODE="1")
        sys.dont_write_bytecode = True
        sys.path.insert(0, folder)
        limit(request)
        rows = run_suites(request["modules"])
        sys.stdout.flush()
        sys.stderr.flush()
        with os.fdopen(report_fd, "w", encoding="utf-8", errors="replace") as report:
            json.dump(rows, report)
        code = 0
    except BaseException:  # SystemExit and KeyboardInterrupt of a candidate too: without a report it has failed
        with contextlib.suppress(BaseException):
            traceback.print_exc()
            sys.stderr.flush()
    finally:
        os._exit(code)


def collect(pid, report_fd, wall_s):
    """Wait for the child's report; returns (bytes, wait status or None if it had to be killed)."""
    deadline = time.monotonic() + wall_s
    parts = []
    while (left := deadline - time.monotonic()) > 0:
        if not select.select([report_fd], [], [], left)[0]:
            break
        part = os.read(report_fd, 65536)
        if not part:
            break
        parts.append(part)
    status = None
    while status is None and time.monotonic() < deadline:
        done, found = os.waitpid(pid, os.WNOHANG)
        if done:
            status = found
        else:
            time.sleep(0.001)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    if status is None:
        os.waitpid(pid, 0)
    return b"".join(parts), status


def verdict(report, status):
    """Say how the run ended, in one word, and give the rows of its tests."""
    if status is None or (os.WIFSIGNALED(status) and os.WTERMSIG(status) in TIME_SIGNALS):
        return "timeout", []
    if os.WIFSIGNALED(status) or os.WEXITSTATUS(status) != 0:
        return "crashed", []
    try:
        return "ran", json.loads(report)
    except ValueError:
        return "crashed", []


def handle(request):
    """Write the tree into a folder of its own, run the suites in a child, and answer."""
    started = time.monotonic()
    room = tempfile.mkdtemp(prefix="tiny-job-")
    try:
        folder = os.path.join(room, "tree")
        for path, text in request["files"].items():
            target = os.path.join(folder, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "w", encoding="utf-8") as file:
                file.write(text)
        report_out, report_in = os.pipe()
        with open(os.path.join(room, "output"), "w+b") as output:
            pid = os.fork()
            if pid == 0:
                os.close(report_out)
                child(request, folder, output.fileno(), report_in)
            os.close(report_in)
            report, status = collect(pid, report_out, request["wall_s"])
            os.close(report_out)
            output.seek(0)
            shown = output.read().decode("utf-8", "replace").replace(folder, SHOWN_ROOT)
    finally:
        shutil.rmtree(room, ignore_errors=True)
    how, rows = verdict(report, status)
    signal_number = os.WTERMSIG(status) if status is not None and os.WIFSIGNALED(status) else None
    for row in rows:
        row["message"] = row["message"].replace(folder, SHOWN_ROOT)[:2000]
    return {
        "how": how,
        "signal": signal_number,
        "tests": rows,
        "output": shown[-OUTPUT_LIMIT:],
        "duration_s": round(time.monotonic() - started, 4),
    }


def main():
    """Answer requests until stdin ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    for line in sys.stdin:
        try:
            answer = handle(json.loads(line))
        except Exception as broken:  # whatever it was, the candidate did not run: the caller must know it was us
            answer = {"how": "harness", "error": f"{type(broken).__name__}: {broken}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
