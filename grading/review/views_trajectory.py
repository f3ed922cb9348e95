"""One candidate's trajectory: its page, one event, all of it as a file; and its log."""

import json

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from grading.access import viewer_required
from grading.grader import gather
from grading.integrity.events import event_text
from grading.models import Trajectory
from grading.review.pages import log_page
from grading.review.pages import trajectory as pages
from grading.review.pages.events import Book, body_of, event_page, overview, printed
from grading.review.pages.sitting import Sitting
from grading.review.saved import download, events_file
from grading.review.views import find_group


def _find(request, pk: int, letter: str) -> tuple[Sitting, Trajectory]:
    sitting = Sitting(find_group(request, pk), request.user)
    found = sitting.by_letter.get(letter)
    if found is None:
        raise Http404("no such candidate")
    return sitting, found


@viewer_required
@require_GET
def trajectory(request, pk, letter):
    """The page, or a part of it: more events, the map of them all."""
    sitting, found = _find(request, pk, letter)
    part = request.GET.get("part")
    if part in ("events", "map"):
        book, marks = pages.book_of(sitting, found), pages.marks_of(sitting, found)
        if part == "map":
            context = overview(book, request.GET, **marks) | {"page_url": book.url}
            return render(request, "grading/_event_map.html", context)
        return render(request, "grading/_event_page.html", event_page(book, request.GET, **marks))
    return render(request, "grading/trajectory.html", pages.trajectory_page(sitting, found, request.GET))


@viewer_required
@require_GET
def event(request, pk, letter, index):
    sitting, found = _find(request, pk, letter)
    return one_event(request, pages.book_of(sitting, found), index, {"group": sitting.group, "letter": letter})


def one_event(request, book: Book, index: int, context: dict) -> HttpResponse:
    """An event: its body for a page, a page of its own, its words or the event as stored as a download."""
    one, part = book.find(index), request.GET.get("part")
    if one is None:
        raise Http404("no such event")
    name = f"{book.letter or 'grading'}-e{index}"
    if part == "whole":
        return download(event_text(one).encode(), f"{name}.txt")
    if part == "stored":
        return download(json.dumps(one, ensure_ascii=False, indent=2).encode(), f"{name}.json")
    context |= {"body": body_of(book, index, one), "page_url": book.url}
    return render(request, "grading/_event_body.html" if part == "body" else "grading/event.html", context)


@viewer_required
@require_GET
def events(request, pk, letter, kind):
    """The whole trajectory as a file."""
    sitting, found = _find(request, pk, letter)
    return events_file(pages.book_of(sitting, found), f"{found.group_id}-{letter}", kind)


@viewer_required
@require_GET
def events_print(request, pk, letter):
    sitting, found = _find(request, pk, letter)
    book = pages.book_of(sitting, found)
    context = {"group": sitting.group, "letter": letter, "event_count": found.event_count, "page_url": book.url}
    return render(request, "grading/event_print.html", context | printed(book))


@viewer_required
@require_GET
def log(request, pk, letter):
    sitting, found = _find(request, pk, letter)
    if not found.log:
        raise Http404("no log was given")
    if request.GET.get("part") == "whole":
        return download(gather.log_of(found), f"{letter}.log")
    return render(request, "grading/log.html", log_page.log_page(sitting, found, request.GET))
