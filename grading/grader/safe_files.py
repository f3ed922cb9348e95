"""Files below a root that a stranger filled: no link is followed, nothing but a regular file is opened, nothing hangs.

Each part of a path is opened by itself and without following (openat, O_NOFOLLOW), so that no link counts, whoever
swaps it in while we look.
"""

import hashlib
import logging
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from grading.errors import NotAllowed, NotFound, TooLarge

log = logging.getLogger(__name__)
MOST_ENTRIES = 200_000
MOST_DEPTH = 64
CHUNK_BYTES = 1 << 20
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class Found(NamedTuple):
    """One thing below the root, not followed: `kind` is "file", "folder", "link" or "special"."""

    path: str
    kind: str
    size: int
    mode: int


def read(root: Path, path: str, *, offset: int = 0, limit: int) -> tuple[bytes, int]:
    """Read part of a regular file.

    Args:
        root: a folder of ours.
        path: below it, forward slashes.
        offset, limit: bytes.
    Returns:
        The bytes, and how long the whole file is.
    Raises:
        NotFound: no such file. NotAllowed: a path that leaves the root, leads through a link, or names no plain file.
    """
    with _opened(root, path) as (file, size):
        return _read(file, offset, limit), size


def walk(root: Path, *, most: int = MOST_ENTRIES) -> Iterator[Found]:
    """Give everything below the root in the order of its paths; links are named and not entered.

    Raises:
        TooLarge: more than `most` entries, or folders deeper than any repository has.
    """
    folder = os.open(root, _FOLDER)
    try:
        for count, found in enumerate(_walk(folder, "", 0)):
            if count >= most:
                raise TooLarge("too many files", got=f"over {most}", expected=f"<= {most}")
            yield found
    finally:
        os.close(folder)


def digests(root: Path, *, most: int = MOST_ENTRIES) -> dict[str, str]:
    """Give path -> what is there, for everything but folders: mode and sha256 of a file, the target of a link.

    Two trees with equal digests hold the same files; a file that cannot be opened has a digest of its own.
    """
    found = {}
    for one in walk(root, most=most):
        if one.kind == "file":
            found[one.path] = f"{one.mode & 0o7777:o} {_sha256(root, one.path)}"
        elif one.kind != "folder":
            found[one.path] = f"{one.kind} {one.mode:o} {_target(root, one) if one.kind == 'link' else ''}"
    return found


def remove(root: Path) -> None:
    """Delete a folder and all below it, however deep and whoever closed it; a link is deleted and not followed.

    A folder inside is first moved up to the root, so that no path grows longer and no call goes deeper.
    """
    try:
        folder = os.open(root, _FOLDER)
    except OSError:  # gone, or no folder
        return
    try:
        while names := os.listdir(folder):
            for name in names:
                _remove_one(folder, name)
        os.rmdir(root)
    except OSError as e:
        log.warning("could not delete all of %s: %s", root, e)
    finally:
        os.close(folder)


def _remove_one(folder: int, name: str) -> None:
    if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=folder)
        return
    inner = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
    try:
        os.chmod(f"/proc/self/fd/{inner}", 0o700)  # it may be closed to us
        opened = os.open(".", _FOLDER, dir_fd=inner)
    finally:
        os.close(inner)
    try:
        for child in os.listdir(opened):
            if stat.S_ISDIR(os.stat(child, dir_fd=opened, follow_symlinks=False).st_mode):
                os.rename(child, f".{secrets.token_hex(16)}", src_dir_fd=opened, dst_dir_fd=folder)
            else:
                os.unlink(child, dir_fd=opened)
    finally:
        os.close(opened)
    os.rmdir(name, dir_fd=folder)


def _sha256(root: Path, path: str) -> str:
    digest = hashlib.sha256()
    try:
        with _opened(root, path) as (file, _):
            while chunk := os.read(file, CHUNK_BYTES):
                digest.update(chunk)
    except (NotFound, NotAllowed) as refused:
        return refused.what
    return digest.hexdigest()


def _target(root: Path, link: Found) -> str:
    parts = _parts(link.path)
    with _folder_of(root, parts[:-1]) as folder:
        return os.readlink(parts[-1], dir_fd=folder)


def _walk(folder: int, prefix: str, depth: int) -> Iterator[Found]:
    if depth > MOST_DEPTH:
        raise TooLarge("folders are too deep", got=f"over {MOST_DEPTH}", expected=f"<= {MOST_DEPTH}")
    with os.scandir(folder) as scan:
        names = sorted(entry.name for _, entry in zip(range(MOST_ENTRIES + 1), scan, strict=False))
    for name in names:
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            continue
        path, kind = prefix + name, _kind(status.st_mode)
        yield Found(path, kind, status.st_size, status.st_mode)
        if kind == "folder":
            try:
                inner = os.open(name, _FOLDER, dir_fd=folder)
            except OSError:  # gone, closed to us, or a link by now
                continue
            try:
                yield from _walk(inner, f"{path}/", depth + 1)
            finally:
                os.close(inner)


def _kind(mode: int) -> str:
    kinds = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "folder"), (stat.S_ISLNK, "link"))
    return next((kind for is_kind, kind in kinds if is_kind(mode)), "special")


def _parts(path: str) -> list[str]:
    parts = path.split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in parts) or len(parts) > MOST_DEPTH:
        raise NotAllowed("a path that leaves the root", got=repr(path)[:200], expected="a path below it, without ..")
    return parts


@contextmanager
def _folder_of(root: Path, parts: list[str]) -> Iterator[int]:
    folder = os.open(root, _FOLDER)
    try:
        for part in parts:
            inner = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


@contextmanager
def _opened(root: Path, path: str) -> Iterator[tuple[int, int]]:
    """A regular file with one name, and its size. Looked at before it is opened: opening a device can do things."""
    parts = _parts(path)
    refusal = NotAllowed("this is no plain file of the tree", got=repr(path)[:200], expected="no link, no special file")
    try:
        with _folder_of(root, parts[:-1]) as folder:
            if not _is_plain(os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)):
                raise refusal
            file = os.open(parts[-1], _FILE, dir_fd=folder)
    except FileNotFoundError as e:
        raise NotFound("no such file", got=repr(path)[:200]) from e
    except (OSError, ValueError) as e:  # a link or a file in the middle, a name that is too long, no permission
        raise refusal from e
    try:
        status = os.fstat(file)
        if not _is_plain(status):
            raise refusal
        yield file, status.st_size
    finally:
        os.close(file)


def _is_plain(status: os.stat_result) -> bool:
    # A second name may be a file of this machine: git makes none, a hard link does.
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1


def _read(file: int, offset: int, limit: int) -> bytes:
    parts, left = [], limit
    while left > 0 and (chunk := os.pread(file, min(left, CHUNK_BYTES), offset + limit - left)):
        parts.append(chunk)
        left -= len(chunk)
    return b"".join(parts)
