"""Runs test suites through the fork server and remembers every result by the digest of what was run."""

import contextlib
import hashlib
import json
import os
import select
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from training_bridge.tiny_job import tree as trees
from training_bridge.tiny_job.errors import HarnessFailure

SERVER = Path(__file__).with_name("fork_server.py")
CACHE_FORMAT = 1  # part of every key: a changed server must not meet old results


@dataclass(frozen=True)
class Limits:
    """What one test run may take: seconds of CPU, seconds by the wall, MiB of memory."""

    cpu_s: float = 0.5
    wall_s: float = 10.0
    memory_mb: int = 512


@dataclass(frozen=True)
class TestRun:
    """One executed test run.

    Args:
        how: "ran", "timeout" or "crashed" (no report: killed by a signal, or left early).
        tests: {name, status, message} of every test; empty unless it ran.
        output: what it printed.
        duration_s: seconds by the wall.
        signal: number of the signal that ended it, if one did.
    """

    __test__ = False  # not a test class, whatever its name suggests to pytest

    how: str
    tests: list[dict]
    output: str
    duration_s: float
    signal: int | None = None

    @property
    def ok(self) -> bool:
        """Whether a test passed and none failed."""
        statuses = {row["status"] for row in self.tests}
        return self.how == "ran" and "passed" in statuses and statuses <= {"passed", "skipped"}

    @property
    def exit_code(self) -> int:
        """What a shell would have seen: 0, 1, 124 for a time-out, 128 + n for signal n, 70 without report."""
        if self.how == "ran":
            return 0 if self.ok else 1
        if self.how == "timeout":
            return 124
        return 128 + self.signal if self.signal else 70


class Runner:
    """A fork server, its limits, and the memory of what was run.

    Args:
        cache: file the results are kept in across processes (JSON lines); None keeps them in memory.
        limits: of each run.
    """

    def __init__(self, cache: Path | None = None, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.executed = 0
        self._known: dict[str, TestRun] = {}
        self._server: subprocess.Popen | None = None
        self._file = None
        if cache is not None:
            self._read(cache)
            cache.parent.mkdir(parents=True, exist_ok=True)
            self._file = cache.open("a", encoding="utf-8")

    def __enter__(self) -> "Runner":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def run(self, files: trees.Tree, *, fresh: bool = False) -> TestRun:
        """Run every `test_*.py` at the root of a tree.

        Args:
            files: path -> text.
            fresh: execute even if the result is known.
        Returns:
            The run; the remembered one if this very tree was run before under these limits.
        Raises:
            HarnessFailure: the run could not be made, for a reason outside the tree.
        """
        modules = sorted(path[:-3] for path in files if path.startswith("test_") and path.endswith(".py"))
        key = self._key(files)
        if fresh or key not in self._known:
            run = self._execute(files, modules)
            if run.how == "timeout" and run.signal is None:
                # The wall ran out without the CPU being used: a stalled machine looks like this too.
                run = self._execute(files, modules)
            self._remember(key, run)
        return self._known[key]

    def close(self) -> None:
        """Stop the server and close the file."""
        self._stop()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _execute(self, files: trees.Tree, modules: list[str]) -> TestRun:
        request = {"files": files, "modules": modules, **asdict(self.limits)}
        answer = self._ask(request) or self._ask(request)  # a server that died is started once more
        if answer is None:
            raise HarnessFailure("the test server died twice on one run, expected an answer")
        if answer["how"] == "harness":
            raise HarnessFailure(f"the test server could not start the run: {answer['error']}")
        self.executed += 1
        return TestRun(**answer)

    def _ask(self, request: dict) -> dict | None:
        if self._server is None or self._server.poll() is not None:
            self._start()
        try:
            self._server.stdin.write(json.dumps(request).encode() + b"\n")
            line = self._read_line(self.limits.wall_s + 20)
            return json.loads(line) if line else None
        except (OSError, ValueError):
            return None
        finally:
            if self._server is not None and self._server.poll() is not None:
                self._stop()

    def _read_line(self, wait_s: float) -> bytes:
        deadline = time.monotonic() + wait_s
        line = b""
        while not line.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._server.stdout], [], [], left)[0]:
                self._stop()
                return b""
            part = os.read(self._server.stdout.fileno(), 1 << 20)
            if not part:
                self._stop()
                return b""
            line += part
        return line

    def _start(self) -> None:
        try:
            # A session of its own: Ctrl-C is for the job, which then stops the server itself.
            self._server = subprocess.Popen(
                [sys.executable, "-I", str(SERVER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={"PATH": os.environ.get("PATH", os.defpath)},
                start_new_session=True,
                bufsize=0,
            )
        except OSError as broken:
            raise HarnessFailure(f"the test server cannot be started: {broken}") from broken

    def _stop(self) -> None:
        if self._server is None:
            return
        server, self._server = self._server, None
        with contextlib.suppress(OSError):
            server.stdin.close()
        try:
            server.wait(timeout=1)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        server.stdout.close()

    def _key(self, files: trees.Tree) -> str:
        what = f"{CACHE_FORMAT} {sys.version_info[:2]} {self.limits} {trees.digest(files)}"
        return hashlib.sha256(what.encode()).hexdigest()

    def _remember(self, key: str, run: TestRun) -> None:
        self._known[key] = run
        if self._file is not None:
            self._file.write(json.dumps({"key": key, **asdict(run)}) + "\n")
            self._file.flush()

    def _read(self, cache: Path) -> None:
        if not cache.exists():
            return
        for line in cache.read_text("utf-8", "replace").splitlines():
            # The last line may be torn by a kill, and another job may write to the same file.
            with contextlib.suppress(ValueError, TypeError, KeyError):
                row = json.loads(line)
                key = row.pop("key")
                self._known[key] = TestRun(**row)
