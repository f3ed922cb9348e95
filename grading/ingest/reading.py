"""The body of a request as a stream: decoded, bounded, never whole in memory unless it is one small JSON document."""

import zlib
from collections.abc import Iterator
from typing import Any

import zstandard
from django.http import UnreadablePostError

from grading.errors import BadInput, TooLarge, WrongType
from grading.ingest.strict_json import strict_json

MIB = 2**20
JSON_LIMIT = 8 * MIB
LINE_LIMIT = 16 * MIB  # one NDJSON line: an event, or a trajectory with its patch and log
STREAM_LIMIT = 2048 * MIB
RATIO_LIMIT = 200  # plain bytes a compressed byte may become; traces pack 5 to 20 times
RATIO_FLOOR = 8 * MIB  # below this the ratio says nothing
WINDOW_LIMIT = 8 * MIB  # memory a zstd frame may ask of us; level 19 asks for this
CHUNK = 64 * 1024
ZSTD_SLICE = 256  # compressed bytes fed at once: at most 64 blocks, 8 MiB, come out

JSON_TYPES = ("application/json",)
NDJSON_TYPES = ("application/x-ndjson", "application/ndjson", "application/jsonl")


def content_type(request) -> str:
    """The media type in lower case; refuses a charset that is not UTF-8."""
    media, _, parameters = request.META.get("CONTENT_TYPE", "").lower().partition(";")
    for parameter in parameters.split(";"):
        name, _, value = parameter.strip().partition("=")
        if name == "charset" and value.strip('"') not in ("utf-8", "utf8"):
            raise WrongType("the text is in another charset", got=value[:60], expected="utf-8", where="Content-Type")
    return media.strip()


def read_json(request, *, empty: Any = None) -> Any:
    """The whole JSON document; `empty` stands for a request without a body, where one may be left out."""
    media = content_type(request)
    data = b"".join(plain_chunks(request, limit=JSON_LIMIT))
    if not data and empty is not None:
        return empty
    if media not in JSON_TYPES:
        raise WrongType("the body has another type", got=media or "none", expected=JSON_TYPES[0], where="Content-Type")
    return strict_json(data, where="the body")


def read_lines(request) -> Iterator[tuple[int, bytes]]:
    """The lines of an NDJSON body with their numbers from 1; empty lines are passed over."""
    pending, number = bytearray(), 0
    for chunk in plain_chunks(request, limit=STREAM_LIMIT):
        first, *rest = chunk.split(b"\n")
        pending += first
        for piece in rest:
            number += 1
            if pending.strip():
                yield number, bytes(pending)
            pending = bytearray(piece)
        if len(pending) > LINE_LIMIT:
            raise TooLarge(
                "a line is too long",
                got=f"over {LINE_LIMIT} bytes",
                expected=f"<= {LINE_LIMIT}",
                where=f"line {number + 1}",
            )
    if pending.strip():
        yield number + 1, bytes(pending)


def plain_chunks(request, *, limit: int) -> Iterator[bytes]:
    """The body with its Content-Encoding taken off, in chunks of at most a few MiB.

    Raises:
        WrongType: an encoding other than gzip and zstd. BadInput: it does not decompress, or is cut short.
        TooLarge: over `limit` plain bytes, or a compression bomb.
    """
    encoding = request.META.get("HTTP_CONTENT_ENCODING", "").strip().lower()
    decode = {"": None, "identity": None, "gzip": _gunzip, "x-gzip": _gunzip, "zstd": _unzstd}
    if encoding not in decode:
        raise WrongType("unknown encoding", got=encoding[:60], expected="gzip or zstd", where="Content-Encoding")
    packed = _Packed(request, limit=limit if decode[encoding] is None else STREAM_LIMIT)
    plain_bytes = 0
    for chunk in decode[encoding](packed) if decode[encoding] else packed:
        plain_bytes += len(chunk)
        if plain_bytes > limit:
            raise TooLarge("the body is too large", got=f"over {limit} bytes", expected=f"<= {limit}")
        if plain_bytes > RATIO_FLOOR and plain_bytes > RATIO_LIMIT * packed.bytes:
            raise TooLarge(
                "the body is a compression bomb",
                got=f"over {RATIO_LIMIT} plain bytes a compressed one",
                expected=f"<= {RATIO_LIMIT}",
            )
        yield chunk


class _Packed:
    """The request's bytes as they travel, counted."""

    def __init__(self, request, *, limit: int):
        self.request, self.limit, self.bytes = request, limit, 0

    def __iter__(self) -> Iterator[bytes]:
        while chunk := self._read():
            self.bytes += len(chunk)
            yield chunk

    def _read(self) -> bytes:
        said = self.request.META.get("CONTENT_LENGTH") or "0"
        if said.isdecimal() and int(said) > self.limit:
            raise TooLarge("the body is too large", got=f"{said} bytes", expected=f"<= {self.limit}")
        try:
            return self.request.read(CHUNK)
        except UnreadablePostError as e:
            raise BadInput("the body broke off", got=str(e)[:100], expected="as long as Content-Length says") from e


def _gunzip(packed: Iterator[bytes]) -> Iterator[bytes]:
    """Any number of gzip members, at most CHUNK bytes at a time."""
    member = None
    for chunk in packed:
        data, plain = chunk, b""
        while data or len(plain) == CHUNK:  # a full chunk: more may wait inside, also without input
            member = member or zlib.decompressobj(wbits=31)
            try:
                plain = member.decompress(data, CHUNK)
            except zlib.error as e:
                raise _not("gzip", e) from None
            if plain:
                yield plain
            data = member.unused_data if member.eof else member.unconsumed_tail
            if member.eof:
                member, plain = None, b""
    if member is not None:
        raise _not("gzip", "it is cut short")


def _unzstd(packed: Iterator[bytes]) -> Iterator[bytes]:
    """Any number of zstd frames. The library bounds no output, so its input is fed in small slices."""
    frame = None
    for chunk in packed:
        for at in range(0, len(chunk), ZSTD_SLICE):
            data = chunk[at : at + ZSTD_SLICE]
            while data:
                frame = frame or zstandard.ZstdDecompressor(max_window_size=WINDOW_LIMIT).decompressobj()
                try:
                    plain = frame.decompress(data)
                except zstandard.ZstdError as e:
                    raise _not("zstd", e) from None
                if plain:
                    yield plain
                data = frame.unused_data if frame.eof else b""
                frame = None if frame.eof else frame
    if frame is not None:
        raise _not("zstd", "it is cut short")


def _not(encoding: str, why) -> BadInput:
    return BadInput(f"the body is not {encoding}", got=str(why)[:100], expected=f"whole {encoding}", where="the body")
