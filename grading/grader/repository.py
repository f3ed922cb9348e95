"""The repository of a task at its base commit, kept once for all its groups as a bare mirror in the data folder.

A mirror is built aside and renamed: it is there whole or not at all. Its files are read-only, and their sha256 is kept.
"""

import fcntl
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings

from grading import bodies
from grading.errors import GradingError, NotFound
from grading.grader import archives, git, safe_files
from grading.models import Task

FETCH_S = 300.0
RETRY_S = 600.0  # a repository that could not be had is not asked for again by every group of its task
SCHEMES = ("https", "ssh", "git")
_SEAL = "gagar-seal.json"


@dataclass(frozen=True)
class Base:
    """A base commit: `mirror` holds its objects, `tree` names all its files."""

    mirror: Path
    commit: str
    tree: str

    @property
    def objects(self) -> Path:
        return self.mirror / "objects"

    def is_intact(self) -> bool:
        """Whether the mirror holds the same bytes as when it was built."""
        try:
            sealed = json.loads((self.mirror / _SEAL).read_text())
        except (OSError, ValueError):
            return False
        return sealed["files"] == _digests(self.mirror)


class NoRepository(GradingError):
    """There is none to look at; the message says why."""


def kept_base(task: Task) -> Base | None:
    """The base where a grading has fetched it to this machine already: a page must not wait for a fetch."""
    mirror = home() / f"{_key(task, _source(task))}.git"
    try:
        sealed = json.loads((mirror / _SEAL).read_text())
        return Base(mirror, sealed["commit"], sealed["tree"])
    except (OSError, ValueError, KeyError):
        return None


def _source(task: Task) -> str:
    return task.repository.sha256 if task.repository else task.repository_url


def _key(task: Task, source: str) -> str:
    return hashlib.sha256(f"{source}\0{task.base_commit}".encode()).hexdigest()[:40]


def base_of(task: Task) -> Base:
    """The task's repository at its base commit, from the mirror or fetched now; NoRepository says why not."""
    source = _source(task)
    if not source:
        raise NoRepository("this task names no repository")
    if not task.repository:
        _check_host(source)
    home().mkdir(parents=True, exist_ok=True)
    key = _key(task, source)
    mirror, failed = home() / f"{key}.git", home() / f"{key}.failed"
    with _locked(home() / f"{key}.lock"):
        if base := _kept(mirror):
            return base
        if failed.exists() and time.time() - failed.stat().st_mtime < RETRY_S:
            raise NoRepository(failed.read_text())
        try:
            _build(task, mirror)
            failed.unlink(missing_ok=True)
        except (GradingError, OSError) as e:
            failed.write_text(f"the repository could not be read: {e}"[:1000])
            raise NoRepository(failed.read_text()) from e
        return _kept(mirror) or _lost()


def home() -> Path:
    """Where mirrors lie."""
    return Path(settings.GAGAR_DATA_DIR) / "repositories"


def _lost() -> Base:
    raise NoRepository("the repository's mirror changed while it was built")


def _kept(mirror: Path) -> Base | None:
    """A mirror that is still what it was; one that is not is removed."""
    if not mirror.exists():
        return None
    try:
        sealed = json.loads((mirror / _SEAL).read_text())
        base = Base(mirror, sealed["commit"], sealed["tree"])
    except (OSError, ValueError, KeyError):
        base = None
    if base is None or not base.is_intact():
        safe_files.remove(mirror)
        return None
    return base


def _check_host(url: str) -> None:
    """Again, as when the task was registered: the operator may have taken a host away since."""
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES or (parts.hostname or "").lower() not in settings.GAGAR_GIT_HOSTS:
        raise NoRepository(f"the git host {parts.hostname} is not one of GAGAR_GIT_HOSTS")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(task: Task, mirror: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="building-", dir=mirror.parent, ignore_cleanup_errors=True) as place:
        made = Path(place) / "mirror.git"
        git.run("init", "--bare", "--quiet", "--template=", str(made))
        if task.repository:
            commit = _unpacked(task, made, Path(place) / "stored")
        else:
            commit = _fetched(task.repository_url, task.base_commit, made)
        tree = git.run("rev-parse", "--verify", "--end-of-options", f"{commit}^{{tree}}", git_dir=made).decode().strip()
        git.run("ls-tree", "-r", "-z", tree, git_dir=made)  # every folder of it is really there
        for path in made.rglob("*"):
            if path.is_file() and not path.is_symlink():
                path.chmod(0o444)
        sealed = {"commit": commit, "tree": tree, "files": _digests(made)}
        (made / _SEAL).write_text(json.dumps(sealed))
        os.rename(made, mirror)


def _digests(mirror: Path) -> dict[str, str]:
    return {path: digest for path, digest in safe_files.digests(mirror).items() if path != _SEAL}


def _unpacked(task: Task, made: Path, stored: Path) -> str:
    with stored.open("wb") as file:
        for chunk in bodies.read_stream(task.repository.sha256):
            file.write(chunk)
    kind = archives.kind_of(stored)
    if not kind:
        raise NoRepository("what was sent as the repository is no git bundle, tar or zip archive")
    if kind != "bundle":
        return _imported(stored, kind, task.base_commit, made)
    refs = git.run("bundle", "unbundle", str(stored), git_dir=made, timeout_s=FETCH_S).decode().splitlines()
    heads = {name: commit for commit, _, name in (line.partition(" ") for line in refs)}
    wanted = task.base_commit or heads.get("HEAD") or next(iter(heads.values()), "")
    return _commit(
        heads.get(wanted) or heads.get(f"refs/heads/{wanted}") or heads.get(f"refs/tags/{wanted}") or wanted, made
    )


def _commit(wanted: str, made: Path) -> str:
    try:
        named = git.run("rev-parse", "--verify", "--end-of-options", f"{wanted}^{{commit}}", git_dir=made)
    except git.GitFailed as e:
        raise NotFound("the repository does not have the base commit", got=wanted[:80]) from e
    return named.decode().strip()


def _imported(stored: Path, kind: str, base_commit: str, made: Path) -> str:
    """One commit of an archive's files. A folder around all of them that is named after the commit is left out."""
    git.run("fast-import", "--quiet", "--done", git_dir=made, feed=_import_stream(stored, kind), timeout_s=FETCH_S)
    whole = _commit("refs/heads/base", made)
    names = [line.partition("\t") for line in git.run("ls-tree", whole, git_dir=made).decode().splitlines()]
    if len(names) != 1 or " tree " not in names[0][0]:
        return whole
    folder, tree = names[0][2], names[0][0].split()[2]
    is_wrapper = len(base_commit) >= 7 and base_commit[:7] in folder
    return (
        git.run("commit-tree", "-m", "base", tree, git_dir=made, env=_NOBODY).decode().strip() if is_wrapper else whole
    )


_NOBODY = {
    f"GIT_{who}_{what}": said
    for who in ("AUTHOR", "COMMITTER")
    for what, said in (("NAME", "base"), ("EMAIL", "base"), ("DATE", "@0 +0000"))
}


def _import_stream(stored: Path, kind: str) -> Iterator[bytes]:
    yield b"commit refs/heads/base\ncommitter base <base> 0 +0000\ndata 4\nbase\n"
    for entry in archives.entries(stored, kind):
        path = entry.path.encode("utf-8", "surrogateescape")
        yield b"M %s inline %s\ndata %d\n" % (b"100755" if entry.is_executable else b"100644", path, entry.size)
        yield from entry.chunks
        yield b"\n"
    yield b"\ndone\n"


def _fetched(url: str, base_commit: str, made: Path) -> str:
    """The one commit where the server gives it by its id, else all branches and tags."""
    allowed = {f"protocol.{scheme}.allow": "always" for scheme in SCHEMES}
    fetch = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
    try:
        where = f"{base_commit or 'HEAD'}:refs/gagar/base"
        git.run(*fetch, "--depth=1", "--", url, where, git_dir=made, settings=allowed, timeout_s=FETCH_S)
        return _commit("refs/gagar/base", made)
    except git.GitFailed:
        every = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
        git.run(*fetch, "--", url, *every, git_dir=made, settings=allowed, timeout_s=FETCH_S)
        return _commit(base_commit, made)
