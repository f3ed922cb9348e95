"""One candidate's trajectory: its page, one event, its log."""

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from grading.access import viewer_required
from grading.grader import gather
from grading.integrity.events import event_text
from grading.models import Trajectory
from grading.review.pages import trajectory as pages
from grading.review.pages.sitting import Sitting
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
    sitting, found = _find(request, pk, letter)
    if request.GET.get("part") == "events":
        return render(request, "grading/_event_page.html", pages.event_page(sitting, found, request.GET))
    return render(request, "grading/trajectory.html", pages.trajectory_page(sitting, found, request.GET))


@viewer_required
@require_GET
def event(request, pk, letter, index):
    """One event: its body for a page, a page of its own, or the whole text as a download."""
    sitting, found = _find(request, pk, letter)
    one = pages.find_event(found, index)
    if one is None:
        raise Http404("no such event")
    if request.GET.get("part") == "whole":
        return _download(event_text(one).encode(), f"{letter}-e{index}.txt")
    context = {"group": sitting.group, "letter": letter, "body": pages.body_of(sitting, found, index, one)}
    page = "grading/_event_body.html" if request.GET.get("part") == "body" else "grading/event.html"
    return render(request, page, context)


@viewer_required
@require_GET
def log(request, pk, letter):
    _, found = _find(request, pk, letter)
    if not found.log:
        raise Http404("no log was given")
    return _download(gather.log_of(found), f"{letter}.log")


def _download(content: bytes, name: str) -> HttpResponse:
    """Bytes of others are never shown as a page of ours."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "X-Content-Type-Options": "nosniff"}
    return HttpResponse(content, content_type="text/plain; charset=utf-8", headers=headers)
