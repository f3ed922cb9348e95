"""Bounded reading of files that somebody else wrote: regular files only, no symlink followed, sizes limited."""

import io
import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from grading.errors import ImportRefused
from grading.storable import parse_json

FILE_LIMIT_BYTES = 128 * 2**20
SMALL_LIMIT_BYTES = 4 * 2**20
LINE_LIMIT_BYTES = 16 * 2**20
RAW_LIMIT_BYTES = 64 * 2**20
ENTRY_LIMIT = 10_000


def folder_entries(folder: Path) -> list[Path]:
    """Regular files and real folders in it, by name; symlinks, sockets and the like are passed over."""
    if not is_folder(folder):
        return []
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False):
                found.append(folder / entry.name)
            if len(found) > ENTRY_LIMIT:
                raise ImportRefused(f"folder {folder} is too large", got="more entries", expected=f"<= {ENTRY_LIMIT}")
    return sorted(found)


def is_file(path: Path) -> bool:
    return not path.is_symlink() and path.is_file()


def is_folder(path: Path) -> bool:
    return not path.is_symlink() and path.is_dir()


def open_file(path: Path) -> BinaryIO:
    """Open a regular file; a symlink put there after we looked is refused by the system itself."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as e:
        raise ImportRefused(f"{path} cannot be read: {e.strerror}", expected="a readable regular file") from e
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ImportRefused(f"{path} is no regular file", expected="a readable regular file")
    return open(handle, "rb")


def read_file(path: Path, limit: int = FILE_LIMIT_BYTES) -> bytes:
    with open_file(path) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise ImportRefused(f"{path} is too large", got=f"over {limit} bytes", expected=f"<= {limit} bytes")
    return content


def read_json(path: Path, limit: int = FILE_LIMIT_BYTES) -> Any:
    return parse_json(read_file(path, limit), where=str(path))


def read_object(path: Path, limit: int = FILE_LIMIT_BYTES) -> dict:
    found = read_json(path, limit)
    if not isinstance(found, dict):
        raise ImportRefused(f"{path} is not an object", got=type(found).__name__, expected="a JSON object")
    return found


def lines_of(path: Path, limit: int = LINE_LIMIT_BYTES) -> Iterator[bytes | None]:
    """Lines of a file of any size; None stands for one longer than the limit, blank lines are passed over."""
    with open_file(path) as file:
        while line := file.readline(limit + 1):
            if len(line) <= limit or line.endswith(b"\n"):
                if line.strip():
                    yield line
                continue
            while line and not line.endswith(b"\n"):
                line = file.readline(limit)
            yield None


def packed(folder: Path) -> bytes:
    """All regular files under a folder as one tar; the same files give the same bytes."""
    out, size = io.BytesIO(), 0
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in _files_under(folder):
            content = read_file(path, RAW_LIMIT_BYTES)
            size += len(content)
            if size > RAW_LIMIT_BYTES:
                raise ImportRefused(f"{folder} is too large to keep raw", expected=f"<= {RAW_LIMIT_BYTES} bytes")
            entry = tarfile.TarInfo(str(path.relative_to(folder)))
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def _files_under(folder: Path) -> Iterator[Path]:
    pending, seen = [folder], 0
    while pending:
        for entry in folder_entries(pending.pop()):
            seen += 1
            if seen > ENTRY_LIMIT:
                raise ImportRefused(f"{folder} holds too many files", expected=f"<= {ENTRY_LIMIT}")
            if entry.is_dir():
                pending.append(entry)
            else:
                yield entry
