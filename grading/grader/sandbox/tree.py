"""Pack a candidate's tree into one tar that is unpacked inside the sandbox. No link of the tree is ever followed."""

import json
import os
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple

from grading.errors import BadInput
from grading.grader.sandbox.shape import Limits, Question

RUNNER = Path(__file__).with_name("runner.py")
MAX_DEPTH = 60
MAX_ENTRIES = 200_000
OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # NONBLOCK: a FIFO cannot hang us
OPEN_FOLDER = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC


def pack(tree: Path, question: Question, token: str) -> BinaryIO:
    """Everything the sandbox gets, in a temporary file without a name: a killed worker leaves nothing behind.

    Raises BadInput where the tree holds what no repository holds (a device, a FIFO, a socket, a second name of a file
    outside of it) or is larger than the limits.
    """
    packed = tempfile.TemporaryFile()
    try:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
            Packer(tar, question).add_tree(tree)
            for name, data in _ours(question, token).items():
                _add(tar, name, data)
        packed.seek(0)
        return packed
    except BaseException:
        packed.close()
        raise


def _ours(question: Question, token: str) -> dict[str, bytes | None]:
    ours: dict[str, bytes | None] = {"tmp": None, "stdin": question.stdin}
    if question.expect.tests:
        job = {"file": question.expect.tests, "tests": question.test_names}
        ours |= {"runner.py": RUNNER.read_bytes(), "job.json": json.dumps(job).encode(), "token": token.encode()}
    return ours


def _add(tar: tarfile.TarFile, name: str, data: bytes | None) -> None:
    info = tarfile.TarInfo(name)
    info.mode = 0o755
    if data is None:
        info.type = tarfile.DIRTYPE
        tar.addfile(info)
    else:
        info.size = len(data)
        tar.addfile(info, BytesIO(data))


class Entry(NamedTuple):
    path: str
    name: str
    folder: int  # an open folder: names are looked up in it and nowhere else
    found: os.stat_result


class Packer:
    """Counts what it packs against the limits."""

    def __init__(self, tar: tarfile.TarFile, question: Question):
        self.tar, self.limits, self.files = tar, question.limits, question.files
        self.over = {str(parent) for path in self.files for parent in PurePosixPath(path).parents}
        self.bytes, self.entries = 0, 0
        self.links: dict[tuple[int, int], list] = {}  # (device, inode) -> [names it has, names we met, one of them]

    def add_tree(self, root: Path) -> None:
        """The tree without its .git, then the grader's files in place of what the tree has there."""
        _add(self.tar, "tree", None)
        try:
            folder = os.open(root, OPEN_FOLDER)
        except OSError as e:
            raise BadInput("the tree is no folder", got=e.strerror, expected="the folder of a checkout") from None
        try:
            for entry in self._walk(folder, "", 0):
                self._add_entry(entry)
        finally:
            os.close(folder)
        for names, met, path in self.links.values():
            if met < names:
                raise _refused(path, "a file with a second name outside the tree")
        for path, data in self.files.items():
            for parent in reversed(PurePosixPath(path).parents[:-1]):
                _add(self.tar, f"tree/{parent}", None)
            _add(self.tar, f"tree/{path}", data)

    def _walk(self, folder: int, above: str, depth: int) -> Iterator[Entry]:
        if depth > MAX_DEPTH:
            raise _refused(above, f"a folder {depth} levels deep", f"<= {MAX_DEPTH}")
        for name in sorted(os.listdir(folder)):
            path = f"{above}{name}"
            if name == ".git" or path in self.files:
                continue
            entry = Entry(path, name, folder, os.stat(name, dir_fd=folder, follow_symlinks=False))
            if not stat.S_ISDIR(entry.found.st_mode):
                if path not in self.over:
                    yield entry
                continue
            yield entry
            below = os.open(name, OPEN_FOLDER, dir_fd=folder)
            try:
                yield from self._walk(below, f"{path}/", depth + 1)
            finally:
                os.close(below)

    def _add_entry(self, entry: Entry) -> None:
        self.entries += 1
        if self.entries > MAX_ENTRIES:
            raise _refused(entry.path, f"more than {MAX_ENTRIES} files", f"<= {MAX_ENTRIES}")
        mode = entry.found.st_mode
        info = tarfile.TarInfo(f"tree/{entry.path}")
        if stat.S_ISDIR(mode):
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            self.tar.addfile(info)
        elif stat.S_ISLNK(mode):
            info.type, info.linkname = tarfile.SYMTYPE, os.readlink(entry.name, dir_fd=entry.folder)
            self.tar.addfile(info)
        elif stat.S_ISREG(mode):
            self._add_file(entry, info)
        else:
            raise _refused(entry.path, _kind(mode))

    def _add_file(self, entry: Entry, info: tarfile.TarInfo) -> None:
        number = os.open(entry.name, OPEN_FILE, dir_fd=entry.folder)
        with os.fdopen(number, "rb") as file:
            found = os.fstat(number)  # of what we opened, not of what we saw before
            if not stat.S_ISREG(found.st_mode):
                raise _refused(entry.path, _kind(found.st_mode))
            if found.st_nlink > 1:
                seen = self.links.setdefault((found.st_dev, found.st_ino), [found.st_nlink, 0, entry.path])
                seen[1] += 1
            self.bytes += found.st_size
            _within(self.limits, entry.path, found.st_size, self.bytes)
            info.size, info.mode = found.st_size, 0o755 if found.st_mode & 0o100 else 0o644
            try:
                self.tar.addfile(info, file)
            except OSError:
                raise _refused(entry.path, "a file that changed while it was read") from None


def _within(limits: Limits, path: str, size: int, total: int) -> None:
    if size > limits.file_bytes:
        raise _refused(path, f"a file of {size} bytes", f"<= {limits.file_bytes}")
    if total > limits.disk_bytes:
        raise _refused(path, f"over {limits.disk_bytes} bytes so far", f"<= {limits.disk_bytes} in all")


def _kind(mode: int) -> str:
    kinds = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFBLK: "a device", stat.S_IFCHR: "a device"}
    return kinds.get(stat.S_IFMT(mode), "no plain file")


def _refused(path: str, got: str, expected: str = "files, folders and symbolic links") -> BadInput:
    return BadInput(f"the tree cannot be checked: {path!r}"[:200], got=got, expected=expected)
