"""The stored form of an event body: zstd frames cut between events, then a skippable frame with their index.

Pure: works on any seekable binary file. `zstd -d` prints the plain NDJSON. The index lies at the end, because a stream
knows its frames last; the last 16 bytes say how long it is, its CRC-32 and which format this is.
"""

import hashlib
import io
import json
import struct
import zlib
from typing import BinaryIO, NamedTuple, Protocol

import zstandard

from grading.errors import BodyCorrupt

FRAME_BYTES = 256 * 1024
LEVEL = 3
_SKIPPABLE = 0x184D2A50
_FOOTER = struct.Struct("<II8s")
_MARK = b"gagarEv1"


class Frame(NamedTuple):
    """Where one zstd frame lies, sizes in bytes; `first` is the number of its first event, counted from 0."""

    first: int
    offset: int
    stored: int
    plain: int


class Index(NamedTuple):
    events: int
    frames: list[Frame]


class Sink(Protocol):
    def write(self, data: bytes) -> None: ...


class FrameWriter:
    """Packs lines into frames and remembers where each one went."""

    def __init__(self, out: Sink):
        self.out, self.digest = out, hashlib.sha256()
        self.events = self.plain_bytes = self.stored_bytes = 0
        self._frames: list[Frame] = []
        self._lines: list[bytes] = []
        self._pending = 0
        self._compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)

    def add(self, line: bytes) -> None:
        if self._lines and self._pending + len(line) > FRAME_BYTES:
            self._flush()
        self._lines.append(line)
        self._pending += len(line)
        self.events += 1
        self.plain_bytes += len(line)

    def _flush(self) -> None:
        plain = b"".join(self._lines)
        self.digest.update(plain)
        packed = self._compressor.compress(plain)
        self._frames.append(Frame(self.events - len(self._lines), self.stored_bytes, len(packed), len(plain)))
        self._put(packed)
        self._lines, self._pending = [], 0

    def close(self) -> None:
        if self._lines:
            self._flush()
        index = json.dumps({"events": self.events, "frames": self._frames}, separators=(",", ":")).encode()
        footer = _FOOTER.pack(len(index), zlib.crc32(index), _MARK)
        self._put(struct.pack("<II", _SKIPPABLE, len(index) + len(footer)) + index + footer)

    def _put(self, data: bytes) -> None:
        self.out.write(data)
        self.stored_bytes += len(data)


def read_index(stored: BinaryIO, name: str) -> Index:
    try:
        end = stored.seek(0, io.SEEK_END)
        stored.seek(end - _FOOTER.size)
        length, crc, mark = _FOOTER.unpack(stored.read(_FOOTER.size))
        stored.seek(end - _FOOTER.size - length)
        raw = stored.read(length)
        if mark != _MARK or zlib.crc32(raw) != crc:
            raise ValueError("its index is damaged")
        index = json.loads(raw)
        return Index(index["events"], [Frame(*frame) for frame in index["frames"]])
    except (ValueError, OSError, struct.error) as e:
        raise BodyCorrupt(f"event body {name} is cut short or damaged: {e}", expected="the index we wrote") from e


def read_frame(stored: BinaryIO, frame: Frame, name: str) -> bytes:
    stored.seek(frame.offset)
    packed = stored.read(frame.stored)
    try:
        if zstandard.frame_content_size(packed) != frame.plain:
            raise zstandard.ZstdError("its size is not the one in the index")
        return zstandard.ZstdDecompressor().decompress(packed)
    except zstandard.ZstdError as e:
        raise BodyCorrupt(f"event body {name}, frame at byte {frame.offset}: {e}", expected="the frame we wrote") from e
