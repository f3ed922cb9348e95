"""A long answer that is made while it is sent, never whole in memory."""

from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async

PIECE_BYTES = 256_000
DONE = object()


async def streamed(lines: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The lines in pieces worth a turn of the loop, made in the request's own thread: a database cursor belongs to it.

    An iterator that is not async Django reads to its end before it sends the first byte.
    """
    pieces = _pieces(lines)
    while (piece := await sync_to_async(next, thread_sensitive=True)(pieces, DONE)) is not DONE:
        yield piece


def _pieces(lines: Iterator[bytes]) -> Iterator[bytes]:
    piece = bytearray()
    for line in lines:
        piece += line
        if len(piece) >= PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)
