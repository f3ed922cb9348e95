"""A body of events as a file: plain text, or NDJSON as stored; sent while it is read, never whole in memory."""

from collections.abc import Iterator

from django.http import Http404, HttpResponse, StreamingHttpResponse

from grading import bodies
from grading.review.diffs.text import visible
from grading.review.pages.ansi import plain
from grading.review.pages.event_words import exit_code_of, parts_of, seen_kind, time_of
from grading.review.pages.events import Book
from grading.review.passages import ODD
from grading.streamed import streamed

PLAIN = "text/plain; charset=utf-8"


def download(content: bytes, name: str) -> HttpResponse:
    """Bytes of others are never shown as a page of ours."""
    return HttpResponse(content, content_type=PLAIN, headers=_headers(name))


def events_file(book: Book, name: str, kind: str) -> StreamingHttpResponse:
    """All events. `kind` is txt (as a reader sees them) or ndjson (as they are stored)."""
    if kind not in KINDS:
        raise Http404(f"events are saved as {' or '.join(KINDS)}")
    make, content_type = KINDS[kind]
    return StreamingHttpResponse(streamed(make(book)), content_type=content_type, headers=_headers(f"{name}.{kind}"))


def _headers(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"', "X-Content-Type-Options": "nosniff"}


def as_stored(book: Book) -> Iterator[bytes]:
    return (line + b"\n" for line in (bodies.iter_lines(book.body) if book.body else ()))


def as_text(book: Book) -> Iterator[bytes]:
    """Every event in full; nothing in it that a terminal would obey."""
    yield f"{book.count} events. Colours and overwritten lines are left out, hidden characters named.\n".encode()
    for index, event in enumerate(book.read(0, book.count)):
        code = exit_code_of(event)
        head = [f"e{index}", time_of(event), seen_kind(event), "" if code is None else f"exit {code}"]
        yield f"\n===== {' · '.join(filter(None, head))}\n".encode()
        for part in parts_of(event):
            yield f"--- {part.title}\n".encode() if part.title else b""
            yield safe(part.text).encode() + b"\n"


def safe(text: str) -> str:
    """The text as a page shows it, without colours. Most of it is plain already."""
    if text.isascii() and not ODD.search(text):
        return text
    return "\n".join("\t".join(map(visible, line.split("\t"))) for line in plain(text).split("\n"))


KINDS = {"txt": (as_text, PLAIN), "ndjson": (as_stored, "application/x-ndjson")}
