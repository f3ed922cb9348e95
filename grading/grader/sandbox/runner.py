"""Runs one Python test file inside the sandbox, as its first process. Standard library only; knows nothing of us.

It forks; the child loads the file and runs the tests, the parent alone holds stdout, where the records go.
The child says what happened over a pipe, marked with a secret; what any other code writes there spoils the check.
"""

import builtins
import ctypes
import importlib.util
import json
import os
import select
import signal
import sys
import time
import traceback
import unittest
import unittest.case

PR_SET_DUMPABLE = 4
WORDS = 300
ROOT = "/check"
WATCHED = (builtins, unittest, unittest.case, unittest.TestCase)  # what a tree must not replace


def main() -> None:
    """Fork before the secrets are read, so that the child never has ours in its memory."""
    go_read, go_write = os.pipe()
    said_read, said_write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go_write)
        os.close(said_read)
        os.dup2(2, 1)  # stdout belongs to the parent
        _run(go_read, said_write)
    os.close(go_read)
    os.close(said_write)
    # /proc/1/fd and our memory are closed to other processes of this user from here on.
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    with open(f"{ROOT}/token") as file:
        token = file.read()
    os.unlink(f"{ROOT}/token")
    with open(f"{ROOT}/job.json") as file:
        job = json.load(file)
    secret = os.urandom(16).hex()
    os.write(go_write, json.dumps({**job, "secret": secret}).encode())
    os.close(go_write)
    _listen(child, said_read, token, secret)


def _listen(child: int, said: int, token: str, secret: str) -> None:
    """Pass the child's records on until it says that all is over, or is gone."""
    end, strange = None, 0
    for line in _lines(child, said):
        record = _record(line, secret)
        strange += record is None
        if record and "end" in record:
            end = record
            break
        if record:
            _say(token, record)
    for _ in range(1 if end else 50):  # its pipe closes a moment before it is gone
        ended, how = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        time.sleep(0.02)
    if not ended:
        os.kill(child, signal.SIGKILL)  # before any atexit hook of the tree
    elif end is None or end["end"] == "complete":  # it waits for us after that word: somebody else said it
        status = 128 + os.WTERMSIG(how) if os.WIFSIGNALED(how) else os.WEXITSTATUS(how)
        end = {"end": "early", "status": status, "words": f"the tests' process ended by itself with status {status}"}
    if strange:
        end = {"end": "spoilt", "words": "something else wrote on the runner's channel"}
    _say(token, end or {"end": "early", "words": "the tests' process closed the runner's channel"})


def _lines(child: int, said: int):
    """Whole lines, until the pipe is closed or the child has ended: a descendant may hold it open for ever."""
    pending = b""
    while True:
        is_over = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        ready = select.select([said], [], [], 0 if is_over else 0.02)[0]
        data = os.read(said, 65536) if ready else b""
        *lines, pending = (pending + data).split(b"\n")
        yield from lines
        if not data and (ready or is_over):
            break
    if pending:
        yield pending


def _record(line: bytes, secret: str):
    mark = secret.encode() + b" "
    return json.loads(line[len(mark) :]) if line.startswith(mark) else None


def _say(token: str, record: dict) -> None:
    os.write(1, f"{token} {json.dumps(record)}\n".encode())


def _run(go: int, said: int) -> None:
    """The child: everything below shares its memory with the tree's code."""
    write, dumps, exit_now = os.write, json.dumps, os._exit
    job = json.loads(os.read(go, 1 << 20))
    os.close(go)
    mark = job.pop("secret")

    def say(**record):
        write(said, f"{mark} {dumps(record)}\n".encode())

    before = [(holder, dict(vars(holder))) for holder in WATCHED]
    try:
        module = _load(job["file"])
    except BaseException as broken:
        traceback.print_exc()
        say(end="broken", words=f"the test file did not load: {_one_line(broken)}")
        exit_now(0)
    prepared = set()
    for name in job["tests"]:
        how, words = _one(module, name, prepared)
        if how == "failed":
            say(test=name, how=how, words=words)
            continue
        changed = _changed(before) or _shadowed()
        say(test=name, how="unknown" if changed else how, words=changed or words)
    say(end="complete")
    time.sleep(60)  # the parent ends us
    exit_now(0)


def _load(path: str):
    tree = f"{ROOT}/tree"
    folders = [tree, f"{tree}/src", os.path.dirname(f"{tree}/{path}")]
    sys.path[:0] = [folder for folder in dict.fromkeys(folders) if os.path.isdir(folder)]
    spec = importlib.util.spec_from_file_location("gagar_check", f"{tree}/{path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["gagar_check"] = module
    spec.loader.exec_module(module)
    return module


def _one(module, name: str, prepared: set):
    """One test: passed, failed, or unknown with the reason."""
    try:
        holder, _, method = name.rpartition(".")
        if not holder:
            returned = getattr(module, name)()
        else:
            cls = getattr(module, holder)
            returned = _method(cls, method, prepared)
    except unittest.SkipTest as skipped:
        return "unknown", f"skipped: {skipped}"[:WORDS]
    except BaseException as broken:
        print(f"--- {name}", file=sys.stderr)
        traceback.print_exc()
        return "failed", _one_line(broken)
    if returned is not None:
        return "unknown", f"it returned {type(returned).__name__}, so it may not have run"
    return "passed", ""


def _method(cls, method: str, prepared: set):
    if not issubclass(cls, unittest.TestCase):
        return getattr(cls(), method)()
    if cls not in prepared:
        prepared.add(cls)
        cls.setUpClass()
    return cls(method).debug()


def _changed(before) -> str:
    for holder, names in before:
        now = vars(holder)
        for name, value in names.items():
            if name != "_" and now.get(name) is not value:
                return f"the tree replaced {holder.__name__}.{name}"
    return ""


def _shadowed() -> str:
    own = getattr(sys, "stdlib_module_names", frozenset(sys.builtin_module_names)) | {"pytest", "_pytest"}
    for name in sorted(own & set(sys.modules)):
        where = getattr(sys.modules[name], "__file__", None) or ""
        if where.startswith(f"{ROOT}/tree/") and not where.startswith(f"{ROOT}/tree/src/"):
            return f"the tree has a module of its own in place of {name}"
    return ""


def _one_line(broken: BaseException) -> str:
    try:
        text = f"{type(broken).__name__}: {broken}"
    except BaseException:
        text = type(broken).__name__
    return " ".join(text.split())[:WORDS]


if __name__ == "__main__":
    main()
