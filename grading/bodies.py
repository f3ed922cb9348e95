"""Event bodies, logs and patches: content-addressed, outside the database, on Django storages (disk or S3).

Key = sha256 of the plain bytes; events are NDJSON in canonical form (storable.py) in frames (event_frames.py), the rest
is one zstd frame. Temp file, fsync, rename: only then a row may name the key. The same bytes are written once.
Bodies of one request go into a Shelf: their flushes to disk overlap.
"""

import hashlib
import io
import json
import re
import tempfile
import time
import uuid
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

import zstandard
from django.core.files.base import File
from django.core.files.storage import FileSystemStorage, Storage, storages

from grading.errors import BadInput, BodyCorrupt, NotFound, TooLarge
from grading.event_frames import LEVEL, FrameWriter, read_frame, read_index
from grading.shelf import Shelf
from grading.storable import canonical_line

EVENT_LIMIT_BYTES = 64 * 2**20
MEMORY_BYTES = 2**20
_DIGEST = re.compile(r"[0-9a-f]{64}")
_INCOMING = "incoming"


class EventBody(NamedTuple):
    """What a row keeps of an event body; `bytes` is plain, `stored_bytes` compressed."""

    sha256: str
    events: int
    bytes: int
    stored_bytes: int


def write_events(
    events: Iterable[dict | bytes | str] | EventBody,
    *,
    event_limit: int = EVENT_LIMIT_BYTES,
    limit: int | None = None,
    shelf: Shelf | None = None,
) -> EventBody:
    """Store events as they come, holding one frame (or one event, if larger) in memory.

    Args:
        events: dicts, or one JSON object each as text; text is parsed and written anew in canonical form.
            An EventBody is what was written before, and comes back as it is.
        event_limit: bytes one event may have in canonical form.
        limit: bytes all events may have together, None for no limit.
        shelf: what keeps the body, later and with others; None keeps it at once.
    Returns:
        The key and the sizes. No events at all is a body too: of 0 events.
    Raises:
        BadInput: an event is not a JSON object; the number is in the message. TooLarge: over a limit.
        Whatever `events` raises; nothing is stored then.
    """
    if isinstance(events, EventBody):
        return events
    with _incoming(shelf) as body:
        writer = FrameWriter(body)
        for number, event in enumerate(events):
            line = canonical_line(event, where=f"event {number}")
            if len(line) > event_limit:
                raise TooLarge(f"event {number} is too long", got=f"{len(line)} bytes", expected=f"<= {event_limit}")
            writer.add(line)
            if limit is not None and writer.plain_bytes > limit:
                raise TooLarge("events are too long together", got=f"over {limit} bytes", expected=f"<= {limit}")
        writer.close()
        sha256 = writer.digest.hexdigest()
        body.keep(_events_name(sha256))
        return EventBody(sha256, writer.events, writer.plain_bytes, body.size)


def read_events(sha256: str, start: int = 0, stop: int | None = None) -> list[dict]:
    """Events start..stop-1, like a slice of the list; opens only the frames that hold them."""
    return list(iter_events(sha256, start, stop))


def iter_events(sha256: str, start: int = 0, stop: int | None = None) -> Iterator[dict]:
    """Like `read_events`, one frame in memory at a time."""
    return map(json.loads, iter_lines(sha256, start, stop))


def iter_lines(sha256: str, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
    """Like `iter_events`, each event as its canonical JSON without the line end."""
    name = _events_name(sha256)
    with _open(name) as stored:
        index = read_index(stored, name)
        start, stop, _ = slice(start, stop).indices(index.events)
        if start >= stop:
            return
        at = bisect_right(index.frames, start, key=lambda frame: frame.first) - 1
        for frame in index.frames[at:]:
            if frame.first >= stop:
                return
            lines = read_frame(stored, frame, name).splitlines()
            yield from lines[max(start - frame.first, 0) : stop - frame.first]


def count(sha256: str) -> int:
    """How many events the body holds; reads its index only."""
    name = _events_name(sha256)
    with _open(name) as stored:
        return read_index(stored, name).events


def plain_size(sha256: str) -> int:
    """How many bytes the events have together; reads the index only."""
    name = _events_name(sha256)
    with _open(name) as stored:
        return sum(frame.plain for frame in read_index(stored, name).frames)


def write_bytes(data: bytes, *, shelf: Shelf | None = None) -> str:
    """Store a log, a patch or a file as it is; returns its key. `shelf` as for `write_events`."""
    sha256 = hashlib.sha256(data).hexdigest()
    if not _storage().exists(_bytes_name(sha256)):
        write_stream([data], expected=sha256, shelf=shelf)
    return sha256


def write_stream(
    chunks: Iterable[bytes], *, expected: str | None = None, shelf: Shelf | None = None
) -> tuple[str, int]:
    """Like `write_bytes` for what comes in pieces; none of them stays in memory.

    Args:
        chunks: the bytes in order.
        expected: the key they must have, None for any.
        shelf: as for `write_events`.
    Returns:
        The key, and how many plain bytes there were.
    Raises:
        BadInput: the bytes are not those of `expected`; nothing is stored then. Whatever `chunks` raises.
    """
    digest, size = hashlib.sha256(), 0
    packer = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).compressobj()
    with _incoming(shelf) as body:
        for chunk in chunks:
            digest.update(chunk)
            size += len(chunk)
            body.write(packer.compress(chunk))
        body.write(packer.flush())
        sha256 = digest.hexdigest()
        if expected not in (None, sha256):
            raise BadInput("the bytes are not those of this key", got=f"sha256 {sha256}", expected=f"sha256 {expected}")
        body.keep(_bytes_name(sha256))
    return sha256, size


def read_bytes(sha256: str) -> bytes:
    """The bytes `write_bytes` or `write_stream` stored under this key."""
    name = _bytes_name(sha256)
    with _open(name) as stored:
        frame = zstandard.ZstdDecompressor().decompressobj()
        try:
            plain = frame.decompress(stored.read())
        except zstandard.ZstdError as e:
            raise BodyCorrupt(f"body {name} does not decompress: {e}", expected="the zstd frame we wrote") from e
    if not frame.eof or hashlib.sha256(plain).hexdigest() != sha256:
        raise BodyCorrupt(f"body {name} holds other bytes than its key names", expected=f"sha256 {sha256}")
    return plain


def read_stream(sha256: str) -> Iterator[bytes]:
    """Like `read_bytes` for what is long, in pieces; that they are those of the key is known only after the last."""
    name, digest = _bytes_name(sha256), hashlib.sha256()
    with _open(name) as stored:
        try:
            for chunk in zstandard.ZstdDecompressor().read_to_iter(stored):
                digest.update(chunk)
                yield chunk
        except zstandard.ZstdError as e:
            raise BodyCorrupt(f"body {name} does not decompress: {e}", expected="the zstd frame we wrote") from e
    if digest.hexdigest() != sha256:
        raise BodyCorrupt(f"body {name} holds other bytes than its key names", expected=f"sha256 {sha256}")


def exists(sha256: str) -> bool:
    """Whether a body of this key is stored, as events or as bytes."""
    return _storage().exists(_events_name(sha256)) or _storage().exists(_bytes_name(sha256))


def sweep_incoming(older_than_s: float = 86_400) -> int:
    """Delete temporary files that a killed process left on disk; returns how many."""
    storage = _storage()
    if not isinstance(storage, FileSystemStorage):
        return 0
    leftovers = list(Path(storage.path(_INCOMING)).glob("*.part"))
    old = [path for path in leftovers if path.stat().st_mtime < time.time() - older_than_s]
    for path in old:
        path.unlink(missing_ok=True)
    return len(old)


class _Incoming:
    """A body on its way in: in memory while small, then in a temporary file beside the final place."""

    def __init__(self, storage: Storage, shelf: Shelf):
        self.storage, self.shelf, self.size = storage, shelf, 0
        self._file: BinaryIO = io.BytesIO()
        self._path: Path | None = None

    def write(self, data: bytes) -> None:
        if self._path is None and self.size + len(data) > MEMORY_BYTES:
            self._roll_to_disk()
        self._file.write(data)
        self.size += len(data)

    def _roll_to_disk(self) -> None:
        # A name of its own each time: a killed writer's leftover is never taken up, nor found under a key.
        self._path = Path(_folder_of(self.storage)) / f"{uuid.uuid4().hex}.part"
        memory = self._file
        try:
            self._file = self._path.open("xb+")
        except FileNotFoundError:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("xb+")
        self._file.write(memory.getvalue())

    def keep(self, name: str) -> None:
        """Hand it to the shelf, on disk; a body that is already there stays. S3 keeps it at once."""
        if self.storage.exists(name):
            self.size = self.storage.size(name)
        elif isinstance(self.storage, FileSystemStorage):
            if self._path is None:
                self._roll_to_disk()
            self._file.close()
            self.shelf.put(self._path, Path(self.storage.path(name)))
            self._path = None
        else:
            self._file.seek(0)
            saved = self.storage.save(name, File(self._file))
            if saved != name:  # another writer of the same bytes was faster and the storage renamed ours
                self.storage.delete(saved)

    def close(self) -> None:
        self._file.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)


@contextmanager
def _incoming(shelf: Shelf | None) -> Iterator[_Incoming]:
    with Shelf() as own:
        body = _Incoming(_storage(), shelf or own)
        try:
            yield body
        finally:
            body.close()
        own.keep()


def _folder_of(storage: Storage) -> str:
    if isinstance(storage, FileSystemStorage):
        return storage.path(_INCOMING)
    return tempfile.gettempdir()


@contextmanager
def _open(name: str) -> Iterator[BinaryIO]:
    try:
        stored = _storage().open(name, "rb")
    except FileNotFoundError as e:
        raise NotFound(f"no body {name}", expected="a body that was stored and not collected as garbage") from e
    with stored:
        yield stored


def _storage() -> Storage:
    return storages["bodies"]


def _events_name(sha256: str) -> str:
    return f"events/{_checked(sha256)[:2]}/{sha256}.zst"


def _bytes_name(sha256: str) -> str:
    return f"plain/{_checked(sha256)[:2]}/{sha256}.zst"


def _checked(sha256: str) -> str:
    if not _DIGEST.fullmatch(sha256):
        raise BadInput("not the key of a body", got=repr(sha256)[:80], expected="64 hexadecimal digits")
    return sha256
