"""A candidate's files: the base commit with its patch applied by git, as objects; on disk only where a check needs it.

Files are listed, read and searched as git objects, so that no link in a tree can lead a reader anywhere.
"""

import os
import threading
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from grading.errors import NotFound, TooLarge
from grading.grader import git, safe_files
from grading.grader.repository import Base

FILE_BYTES = 256 * 1024
BLOB_BYTES = 16 * 2**20
SEARCH_S = 30.0
SEARCH_BYTES = 4 * 2**20
LINE_CHARS = 500


class FilePart(bytes):
    """Bytes of a file from `offset` on; the whole file has `total`."""

    offset: int
    total: int

    def __new__(cls, data: bytes, offset: int, total: int):
        part = super().__new__(cls, data)
        part.offset, part.total = offset, total
        return part


class File(NamedTuple):
    """One file of a tree. `kind` is "file", "link" (its text is the target) or "submodule" (not there)."""

    path: str
    size: int
    kind: str
    blob: str


@dataclass(frozen=True)
class Hit:
    """A line that matches, from 1; `text` is cut at LINE_CHARS."""

    path: str
    line: int
    text: str


@dataclass(frozen=True)
class Listed:
    """Part of a list: `items` from `start` on, of `total`; with `is_cut` there are more than were counted."""

    items: tuple
    start: int
    total: int
    is_cut: bool = False


class DoesNotApply(git.GitFailed):
    """Git cannot apply the patch to the base commit."""


class Trees:
    """Trees of one workspace over one base; what they add lies in the workspace's folder, never in the mirror."""

    def __init__(self, base: Base, folder: Path):
        self.base, self.folder = base, folder
        (folder / "objects").mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._copies: dict[str, tuple[Path, dict[str, str]]] = {}
        self._count = 0
        self.files = lru_cache(maxsize=64)(self._files)

    def patched(self, patch: bytes) -> str:
        """The tree with a patch applied; DoesNotApply has git's own words."""
        if not patch.strip():
            return self.base.tree
        with self._lock:
            self._count += 1
            index = {"GIT_INDEX_FILE": str(self.folder / f"index-{self._count}")}
        self._git("read-tree", self.base.tree, env=index)
        try:
            self._git("apply", "--cached", "--whitespace=nowarn", "-", env=index, feed=[patch])
        except git.GitFailed as e:
            raise DoesNotApply("the patch does not apply to the base commit", got=e.got) from e
        return self._git("write-tree", env=index).decode().strip()

    def _files(self, tree: str) -> dict[str, File]:
        found = {}
        for line in self._git("ls-tree", "-r", "-l", "-z", tree).split(b"\0")[:-1]:
            facts, _, name = line.partition(b"\t")
            mode, _, blob, size = facts.decode().split()
            kind = {"120000": "link", "160000": "submodule"}.get(mode, "file")
            path = os.fsdecode(name)
            found[path] = File(path, 0 if size == "-" else int(size), kind, blob)
        return found

    def blob(self, tree: str, path: str) -> tuple[bytes, int]:
        """A file's bytes, as far as one answer holds them, and how many are left; NotFound where there is no file."""
        file = self.files(tree).get(path)
        if file is None or file.kind == "submodule":
            raise NotFound("no such file", got=repr(path)[:200])
        data = self._git("cat-file", "blob", file.blob, output_bytes=BLOB_BYTES, is_cut=True)
        return data, max(file.size - len(data), 0)

    def search(
        self, tree: str, pattern: str, *, under: str = "", is_regex: bool = False, ignore_case: bool = False
    ) -> tuple[list[Hit], bool]:
        """Lines of text files that hold a pattern, and whether there are more than were read."""
        asked = ["grep", "-n", "-z", "-I", "-E" if is_regex else "-F", *(["-i"] if ignore_case else [])]
        asked += ["-e", pattern, tree, "--", *([f":(literal){under}"] if under else [])]
        try:
            said = self._git(*asked, timeout_s=SEARCH_S, output_bytes=SEARCH_BYTES, is_cut=True)
        except git.GitFailed as e:
            if e.got == "exit status 1":  # no line
                return [], False
            raise
        is_cut = len(said) >= SEARCH_BYTES
        lines = said.split(b"\n")[:-1]
        return [hit for line in lines if (hit := _hit(line, len(tree) + 1))], is_cut

    def copy(self, tree: str, *, name: str) -> Path:
        """A folder with the tree's files, as they are in it: a copy that somebody wrote to is replaced by a new one."""
        with self._lock:
            if name in self._copies:
                folder, before = self._copies[name]
                if _digests(folder) == before:
                    return folder
            self._count += 1
            folder = self.folder / f"tree-{name}-{self._count}"
            folder.mkdir()
            index = {"GIT_INDEX_FILE": str(self.folder / f"index-{self._count}"), "GIT_WORK_TREE": str(folder)}
            self._git("read-tree", tree, env=index)
            self._git("checkout-index", "--all", "--quiet", f"--prefix={folder}/", env=index)
            self._link(folder, tree)
            self._copies[name] = folder, _digests(folder)
            return folder

    def changed(self, name: str) -> list[str]:
        """Paths that differ from the copy as it was made; none for a copy that nobody asked for."""
        if name not in self._copies:
            return []
        folder, before = self._copies[name]
        now = _digests(folder)
        return sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))

    def _link(self, folder: Path, tree: str) -> None:
        """Make links of the repository's own that stay inside; one that a patch brings stays a file with its target."""
        base = self.files(self.base.tree)
        for path, file in self.files(tree).items():
            if file.kind != "link" or base.get(path) != file:
                continue
            target = os.fsdecode(self._git("cat-file", "blob", file.blob))
            if stays_inside(path, target):
                (folder / path).unlink()
                (folder / path).symlink_to(target)

    def _git(self, *args: str, env: dict[str, str] | None = None, **more) -> bytes:
        objects = {
            "GIT_OBJECT_DIRECTORY": str(self.folder / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(self.base.objects),
        }
        return git.run(*args, git_dir=self.base.mirror, env=objects | (env or {}), **more)


def stays_inside(path: str, target: str) -> bool:
    """Whether a link at a path leads no further up than the root: only its first parts may be `..`."""
    parts, depth = target.split("/"), path.count("/")
    ups = next((n for n, part in enumerate(parts) if part != ".."), len(parts))
    return bool(target) and not target.startswith("/") and ups <= depth and ".." not in parts[ups:]


def _digests(folder: Path) -> dict[str, str]:
    try:
        return safe_files.digests(folder)
    except (TooLarge, OSError) as e:  # filled with more than we look at: changed, then
        return {"": f"{type(e).__name__}: {e}"}


def _hit(line: bytes, skip: int) -> Hit | None:
    name, _, rest = line.partition(b"\0")
    number, _, text = rest.partition(b"\0")
    if not number.isdigit():
        return None
    return Hit(os.fsdecode(name[skip:]), int(number), text.decode("utf-8", "replace")[:LINE_CHARS])
