"""Archives of strangers as entries in memory: no name leaves the root, no link, no device, no bomb.

Nothing is unpacked to disk: the entries go to `git fast-import`, which knows no host file.
"""

import lzma
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from grading.errors import BadInput, TooLarge

MOST_FILES = 200_000
MOST_BYTES = 4 * 2**30  # unpacked
MOST_FILE_BYTES = 256 * 2**20
PATH_CHARS = 1_000
HEADER_BYTES = 1 << 20
CHUNK_BYTES = 1 << 20
# What the two modules raise on damaged bytes, each found by damaging some.
BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, OSError,
          RuntimeError, ValueError, LookupError, OverflowError)  # fmt: skip


class Entry(NamedTuple):
    """One regular file of an archive: where it is, how long, and its bytes in pieces."""

    path: str
    size: int
    is_executable: bool
    chunks: Iterator[bytes]


def kind_of(path: Path) -> str:
    """Say what a stored repository is: "bundle", "zip", "tar"; "" for none of these."""
    with path.open("rb") as file:
        head = file.read(16)
    if head.startswith((b"# v2 git bundle", b"# v3 git bundle")):
        return "bundle"
    if zipfile.is_zipfile(path):
        return "zip"
    try:
        return "tar" if tarfile.is_tarfile(path) else ""
    except BROKEN:
        return ""


def entries(path: Path, kind: str) -> Iterator[Entry]:
    """Read the regular files of an archive.

    Args:
        path: the archive, on disk.
        kind: "tar" (also gz, bz2, xz) or "zip".
    Returns:
        Its files in their order; each one's bytes are read before the next is asked for. `.git` is left out.
    Raises:
        BadInput: a path that leaves the root, a link, a device, a path given twice, an encrypted or broken file.
        TooLarge: over the limits on count and bytes, counted while unpacking and not as the archive says.
    """
    seen: set[str] = set()
    left = MOST_BYTES
    try:
        for name, size, is_executable, opened in _zip(path) if kind == "zip" else _tar(path):
            inside = checked_path(name)
            if inside.split("/")[0] == ".git":
                continue
            if inside in seen:
                raise BadInput("a path is there twice", got=repr(inside)[:200], expected="each file once")
            seen.add(inside)
            left -= size
            if len(seen) > MOST_FILES or left < 0 or size > MOST_FILE_BYTES:
                raise TooLarge(
                    "the archive unpacks to too much",
                    got=f"{len(seen)} files, over {MOST_BYTES - max(left, 0)} bytes, one of {size}",
                    expected=f"<= {MOST_FILES} files, {MOST_BYTES} bytes, {MOST_FILE_BYTES} in one",
                )
            with opened as file:
                yield Entry(inside, size, is_executable, _exactly(file, size, inside))
    except BROKEN as e:
        raise _broken(e) from e
    clash = next((path for path in seen for parent in _parents(path) if parent in seen), None)
    if clash:
        raise BadInput("a file is a folder too", got=repr(clash)[:200])


def checked_path(name: str) -> str:
    """Give a path inside the root, forward slashes, without a leading `./`.

    Raises:
        BadInput: an absolute path, one with `..` or an empty part, a control character or a back-slash.
    """
    inside = name[2:] if name.startswith("./") else name
    parts = inside.split("/")
    if (
        not inside
        or len(inside) > PATH_CHARS
        or any(part in ("", ".", "..") for part in parts)
        or any(part.lower() == ".git" for part in parts[1:])
        or any(ord(char) < 32 or char in '\\\x7f"' for char in inside)
        or (len(inside) > 1 and inside[1] == ":")
    ):
        raise BadInput("a path leaves the root or cannot stand in a repository", got=repr(name)[:200])
    return inside


def _parents(path: str) -> Iterator[str]:
    parts = path.split("/")
    return ("/".join(parts[:n]) for n in range(1, len(parts)))


class _Bounded(tarfile.TarInfo):
    """tarfile reads a long name or an extended header whole: eight gigabytes of it are eight in memory."""

    def _proc_member(self, tar: tarfile.TarFile):
        if not (self.isreg() or self.isdir() or self.issym() or self.islnk()) and self.size > HEADER_BYTES:
            raise TooLarge("a header of the archive is too long", got=f"{self.size} bytes", expected="a path")
        return super()._proc_member(tar)


def _tar(path: Path) -> Iterator[tuple[str, int, bool, BinaryIO]]:
    with tarfile.open(path, mode="r:*", tarinfo=_Bounded) as tar:
        for count, member in enumerate(tar):
            if count > 2 * MOST_FILES:
                raise TooLarge("the archive has too many entries", got=f"over {count}")
            if member.isdir():
                continue
            if not member.isreg() or member.issparse():
                raise BadInput("a link, a device or another special file", got=repr(member.name)[:200])
            yield member.name, member.size, bool(member.mode & 0o111), tar.extractfile(member)


def _zip(path: Path) -> Iterator[tuple[str, int, bool, BinaryIO]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            mode = member.external_attr >> 16
            if member.is_dir():
                continue
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                raise BadInput("a link, a device or another special file", got=repr(member.filename)[:200])
            yield member.filename, member.file_size, bool(mode & 0o111), archive.open(member)


def _broken(e: Exception) -> BadInput:
    return BadInput(f"the archive cannot be read: {type(e).__name__}: {e}"[:300])


def _read(file: BinaryIO, size: int) -> bytes:
    try:
        return file.read(size)
    except BROKEN as e:
        raise _broken(e) from e


def _exactly(file: BinaryIO, size: int, path: str) -> Iterator[bytes]:
    """The bytes in pieces; a file that is longer or shorter than it says is refused before it is stored."""
    left = size
    while chunk := _read(file, min(CHUNK_BYTES, left + 1)):
        left -= len(chunk)
        if left < 0:
            break
        yield chunk
    if left:
        raise BadInput("a file is not as long as the archive says", got=repr(path)[:200], expected=f"{size} bytes")
