"""What an audit's grader did with one group: the transcript of each of its tries, told by letters alone."""

from django.http import Http404
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from grading.access import viewer_required
from grading.audit import transcript
from grading.models import AuditVerdict
from grading.review.pages.events import event_page, overview, printed
from grading.review.saved import events_file
from grading.review.views_trajectory import one_event


def _verdict(request, pk: int, code: str, n: int) -> AuditVerdict:
    rows = AuditVerdict.objects.visible_to(request.user).filter(group__audit=pk, group__code=code).told()
    rows = rows.select_related("group__audit__rubric", "group__task", "author").order_by("pk")
    return get_object_or_404(rows, pk=next(iter(rows.values_list("pk", flat=True)[max(n, 1) - 1 : n]), 0))


@viewer_required
@require_GET
def audit_transcript(request, pk, code, n):
    found = _verdict(request, pk, code, n)
    book, part = transcript.book_of(found, n), request.GET.get("part")
    if part == "events":
        return render(request, "grading/_event_page.html", event_page(book, request.GET, **transcript.NO_MARKS))
    if part == "map":
        context = overview(book, request.GET, **transcript.NO_MARKS) | {"page_url": book.url}
        return render(request, "grading/_event_map.html", context)
    return render(request, "grading/audit_transcript.html", transcript.transcript_page(found, book, request.GET))


@viewer_required
@require_GET
def audit_transcript_event(request, pk, code, n, index):
    return one_event(request, transcript.book_of(_verdict(request, pk, code, n), n), index, {})


@viewer_required
@require_GET
def audit_transcript_events(request, pk, code, n, kind):
    """The whole transcript as a file; its name says nothing of what is compared."""
    book = transcript.book_of(_verdict(request, pk, code, n), n)
    return events_file(book, f"audit-{pk}-{code}", kind)


@viewer_required
@require_GET
def audit_transcript_print(request, pk, code, n):
    found = _verdict(request, pk, code, n)
    if not found.transcript:
        raise Http404("no transcript was kept")
    book = transcript.book_of(found, n)
    context = {"event_count": found.event_count, "page_url": book.url, "of": str(found.group)}
    return render(request, "grading/event_print.html", context | printed(book))
