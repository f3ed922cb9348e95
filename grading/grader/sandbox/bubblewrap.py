"""bubblewrap: the host's /usr read-only, no network, one writable folder in memory, all gone with its launcher."""

import os
import secrets
import selectors
import shutil
import subprocess
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from grading.grader.sandbox.engine import ENVIRONMENT, PREPARE, Job
from grading.grader.sandbox.shape import Ended, Limits
from grading.grader.sandbox.streams import Kept

NOBODY = 65534
OWN_UIDS = 0x70000000  # nobody's: RLIMIT_NPROC counts by user, and each check as root gets a user of its own
LOOK_S = 0.05
SHM_BYTES = 16 << 20
PIPE_BYTES = 1 << 16
NEEDED = ("bwrap", "prlimit", "sh", "head", "tar")
READ_ONLY = ("/etc/ld.so.cache", "/etc/alternatives")  # what programs under /usr need to start


class Bubblewrap:
    name = "bubblewrap"

    def execute(self, job: Job) -> Ended:
        """Run the job; kill -9 of this worker or of the launcher ends every process of it, too."""
        started, kept = time.monotonic(), Kept(job.limits.output_bytes)
        launcher = subprocess.Popen(
            _command(job.limits, "sh", "-c", PREPARE, "check", *job.words), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={}, cwd="/", start_new_session=True, **_user(),
        )  # fmt: skip
        try:
            stopped = _watch(launcher, job, kept, started + job.limits.wall_s)
        finally:
            launcher.kill()
            status = launcher.wait()
            for pipe in (launcher.stdin, launcher.stdout, launcher.stderr):
                with suppress(BrokenPipeError):
                    pipe.close()
        status = 128 - status if status < 0 else status
        return Ended(
            None if stopped else status, bytes(kept.stdout), bytes(kept.output), kept.is_truncated, stopped,
            time.monotonic() - started,
        )  # fmt: skip


def _watch(launcher: subprocess.Popen, job: Job, kept: Kept, deadline: float) -> str:
    """Send the tree, read until the launcher has ended and its pipes are closed; returns why we stop it before."""
    with selectors.DefaultSelector() as selector:
        for pipe in (launcher.stdin, launcher.stdout, launcher.stderr):
            os.set_blocking(pipe.fileno(), False)
        for pipe in (launcher.stdout, launcher.stderr):
            selector.register(pipe, selectors.EVENT_READ)
        look_at, is_fed = time.monotonic() + LOOK_S, False
        while selector.get_map() or launcher.poll() is None:  # what runs may close its pipes and go on
            for key, _ in selector.select(LOOK_S):
                if key.fileobj is launcher.stdin:
                    if not _feed(launcher, job):
                        selector.unregister(launcher.stdin)
                    continue
                data = os.read(key.fd, 65536)
                kept.add(data, is_stdout=key.fileobj is launcher.stdout, is_ours=job.is_ours)
                if not data:
                    selector.unregister(key.fileobj)
            if kept.is_up and not is_fed:
                selector.register(launcher.stdin, selectors.EVENT_WRITE)
                is_fed = True
            now = time.monotonic()
            if now > deadline:
                return "wall"
            if kept.is_flood:
                return "output"
            if now > look_at:
                look_at = now + LOOK_S
                if _takes_too_much(launcher.pid, job.limits.memory_bytes):
                    return "memory"
    return ""


def _feed(launcher: subprocess.Popen, job: Job) -> bool:
    """A part of the tree; False when there is no more.

    Nothing is sent before the sandbox has said that it is up: only then is each of its processes bound to die with its
    parent, so a worker that is killed earlier leaves one that waits for a tree, finds none and ends.
    """
    data = job.packed.read(PIPE_BYTES)
    try:
        sent = os.write(launcher.stdin.fileno(), data) if data else 0
    except BlockingIOError:
        sent = 0
    except BrokenPipeError:
        return False
    job.packed.seek(sent - len(data), os.SEEK_CUR)
    return bool(data)


def _command(limits: Limits, *inside: str) -> list[str]:
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin"} | ENVIRONMENT
    return [
        shutil.which("bwrap"), "--unshare-user", "--unshare-all", "--disable-userns", "--die-with-parent",
        "--new-session", "--as-pid-1", "--cap-drop", "ALL", "--uid", str(NOBODY), "--gid", str(NOBODY),
        "--hostname", "check", "--clearenv", *(w for k, v in environment.items() for w in ("--setenv", k, v)),
        "--ro-bind", "/usr", "/usr", *_links(), *(w for path in READ_ONLY for w in ("--ro-bind-try", path, path)),
        "--proc", "/proc", "--dev", "/dev", "--size", str(SHM_BYTES), "--tmpfs", "/dev/shm",
        "--size", str(limits.disk_bytes), "--tmpfs", "/check", "--symlink", "check/tmp", "/tmp",
        "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/check",
        "prlimit", f"--nproc={limits.pids}", f"--as={limits.memory_bytes}", f"--cpu={limits.cpu_s}",
        f"--fsize={limits.file_bytes}", "--nofile=1024", "--core=0", "--", *inside,
    ]  # fmt: skip


@cache
def _links() -> list[str]:
    """/bin, /lib and so on as this host has them: links into /usr, or folders of their own."""
    words = []
    for path in map(Path, ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")):
        if path.is_symlink():
            words += ["--symlink", os.readlink(path), str(path)]
        elif path.is_dir():
            words += ["--ro-bind", str(path), str(path)]
    return words


def _user() -> dict:
    """Whom the launcher runs as: a user that has no process, where we may choose; else ourselves."""
    if os.geteuid() != 0:
        return {}
    has_all = Path("/proc/self/uid_map").read_text().split() == ["0", "0", "4294967295"]
    uid = OWN_UIDS + secrets.randbelow(1 << 24) if has_all else NOBODY
    return {"user": uid, "group": uid, "extra_groups": []}


def _takes_too_much(launcher: int, limit: int) -> bool:
    """All processes together; shared pages count once, but are looked at closely only when it may matter."""
    resident = {pid: _resident(pid) for pid in _below(launcher)}
    if sum(resident.values()) <= limit:
        return False
    return sum(_proportional(pid, otherwise=size) for pid, size in resident.items()) > limit


def _below(pid: int) -> list[int]:
    found, waiting = [], [pid]
    while waiting:
        children = [int(word) for word in _read(waiting.pop(), "task/*/children").split()]
        found += children
        waiting += children
    return found


def _resident(pid: int) -> int:
    words = _read(pid, "statm").split()
    return int(words[1]) * os.sysconf("SC_PAGE_SIZE") if words else 0


def _proportional(pid: int, otherwise: int) -> int:
    for line in _read(pid, "smaps_rollup").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return otherwise


def _read(pid: int, name: str) -> str:
    texts = []
    for path in Path(f"/proc/{pid}").glob(name):
        try:
            texts.append(path.read_text())
        except OSError:  # it has just ended, or is not ours to look into
            continue
    return " ".join(texts)


def why_not() -> str:
    """Returns: why bubblewrap cannot run checks on this machine; "" if it can: kernels and containers may forbid it."""
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        return f"bubblewrap cannot run here, not installed: {', '.join(missing)}"
    try:
        tried = subprocess.run(
            _command(Limits(), "true"), stdin=subprocess.DEVNULL, capture_output=True, env={}, cwd="/", timeout=10,
            check=False, **_user(),
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as failed:
        return f"bubblewrap does not start: {failed}"
    return "" if tried.returncode == 0 else f"bubblewrap does not start: {tried.stderr.decode(errors='replace')[:200]}"
