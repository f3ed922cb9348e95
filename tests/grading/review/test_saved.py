"""Events as files: streamed in pieces over ASGI, never whole in memory."""

import tracemalloc

import pytest
from asgiref.sync import async_to_sync

from grading import bodies
from grading.review import saved
from grading.review.pages.events import Book


@pytest.mark.parametrize("kind", ["txt", "ndjson"])
def test_a_long_trajectory_is_sent_in_pieces(kind):
    line = "a line of output\n" * 4_000
    stored = bodies.write_events({"kind": "observation", "text": line} for _ in range(80))  # 5 MB
    book = Book(stored.sha256, stored.events, "/x/")

    async def read() -> tuple[int, int]:
        sizes = [len(piece) async for piece in saved.events_file(book, "A", kind).streaming_content]
        return sum(sizes), max(sizes)

    tracemalloc.start()
    total, largest = async_to_sync(read)()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total > 5_000_000 and largest < 1_000_000 and peak < 3_500_000


def test_a_text_file_obeys_nobody():
    told = [{"kind": "observation", "text": "\x1b]0;title\x07a\x1b[2J\x9b31mb\x07\u202e\tc"}]
    stored = bodies.write_events(told)
    text = b"".join(saved.as_text(Book(stored.sha256, 1, "/x/"))).decode()
    assert "ab⟨BEL⟩⟨U+202E⟩\tc" in text
    assert not [sign for sign in text if sign < " " and sign not in "\n\t"]
