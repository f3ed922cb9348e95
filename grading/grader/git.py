"""Git on material of strangers: no hooks, no settings of this machine, no prompt, and every call ends in time.

What a call may print, write and cost is bounded. A URL is fetched by the few protocols that are allowed by name.
"""

import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import BinaryIO

from grading.errors import GradingError

OUTPUT_BYTES = 64 * 2**20
WORDS_CHARS = 600
_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.symlinks": "false",  # a link is written as a file that holds its target
    "core.protectNTFS": "true",
    "core.protectHFS": "true",
    "core.autocrlf": "false",
    "credential.helper": "",
    "http.followRedirects": "false",  # an allowed host must not send us to another
    "protocol.allow": "never",
    "protocol.file.allow": "never",
    "safe.directory": "*",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "transfer.fsckObjects": "true",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "advice.detachedHead": "false",
    "pack.threads": "1",
}
# Half a kilobyte and one second each; a shell sets them, because a thread must not run code between fork and exec.
_LIMITED = 'ulimit -f {blocks} && ulimit -t {cpu_s} && exec git "$@"'


class GitFailed(GradingError):
    """Git said no, took too long, or printed too much."""


def run(
    *args: str,
    git_dir: Path | None = None,
    env: Mapping[str, str] | None = None,
    feed: Iterable[bytes] | BinaryIO = (),
    settings: Mapping[str, str] | None = None,
    timeout_s: float = 60.0,
    output_bytes: int = OUTPUT_BYTES,
    file_bytes: int = 4 * 2**30,
    is_cut: bool = False,
) -> bytes:
    """Run git and give what it prints.

    `feed` goes to its standard input. With `is_cut`, what is over `output_bytes` is left out instead of refused.
    """
    said = [f"--git-dir={git_dir}"] if git_dir else []
    for name, value in {**_SETTINGS, **(settings or {})}.items():
        said += ["-c", f"{name}={value}"]
    limited = _LIMITED.format(blocks=file_bytes // 512, cpu_s=int(timeout_s) + 1)
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as words, tempfile.TemporaryDirectory() as home:
        for chunk in feed:
            given.write(chunk)
        given.seek(0)
        process = subprocess.Popen(
            ["/bin/sh", "-c", limited, "git", *said, *args],
            stdin=given, stdout=subprocess.PIPE, stderr=words, cwd=home, env=_environment(home) | dict(env or {}),
            start_new_session=True,
        )  # fmt: skip
        try:
            printed, why = _printed(process, time.monotonic() + timeout_s, output_bytes)
        finally:
            _end(process)
        words.seek(0)
        complaint = words.read(64 * 1024).decode("utf-8", "replace").strip()
    if why == "time":
        raise GitFailed(f"git {args[0]} took longer than {timeout_s:.0f} s", got=complaint[-WORDS_CHARS:] or None)
    if why == "output" and not is_cut:
        raise GitFailed(f"git {args[0]} printed too much", got=f"over {output_bytes} bytes")
    if why == "" and process.returncode:
        raise GitFailed(f"git {args[0]} failed", got=complaint[:WORDS_CHARS] or f"exit status {process.returncode}")
    return printed


def _environment(home: str) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": home,
        "XDG_CONFIG_HOME": home,
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_SYSTEM": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "/bin/false",
        "SSH_ASKPASS": "/bin/false",
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes -oPermitLocalCommand=no -oForwardAgent=no",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_CEILING_DIRECTORIES": "/",
    }


def _printed(process: subprocess.Popen, until: float, most: int) -> tuple[bytes, str]:
    """What it prints until it ends, and which limit bound: "time", "output" or none."""
    found = bytearray()
    with selectors.DefaultSelector() as ready:
        ready.register(process.stdout, selectors.EVENT_READ)
        while True:
            left = until - time.monotonic()
            if left <= 0 or not ready.select(left):
                return bytes(found), "time"
            chunk = os.read(process.stdout.fileno(), 1 << 16)
            if not chunk:
                break
            found += chunk
            if len(found) > most:
                return bytes(found[:most]), "output"
    try:
        process.wait(max(until - time.monotonic(), 0.1))
    except subprocess.TimeoutExpired:
        return bytes(found), "time"
    return bytes(found), ""


def _end(process: subprocess.Popen) -> None:
    """End git and whatever it started."""
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
    process.stdout.close()
