"""The grader of a run: its page, its settings, one grading's transcript, grading a group again."""

from django.contrib import messages
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from grading import people
from grading.access import admin_required, reviewer_required, viewer_required
from grading.grader import regrade
from grading.models import Grading, Role, Run
from grading.review import blind
from grading.review.forms_grader import RunGrader
from grading.review.pages import grader_page, transcript
from grading.review.pages.events import event_page, overview, printed
from grading.review.pages.sitting import Sitting
from grading.review.saved import events_file
from grading.review.views import find_group
from grading.review.views_trajectory import one_event


def _run(request, public_id: str, role: str = Role.VIEWER) -> Run:
    rows = Run.objects.visible_to(request.user, role).select_related("team", "rubric")
    return get_object_or_404(rows, public_id=public_id)


def _grader_page(request, run: Run, form: RunGrader, *, status: int = 200):
    gradings = Grading.objects.visible_to(request.user)
    context = grader_page.grader_page(run, gradings, request.user, request.GET)
    context |= {
        "form": form,
        "may_admin": request.user.may(Role.ADMIN, run.team_id),
        "may_review": request.user.may(Role.REVIEWER, run.team_id),
    }
    return render(request, "grading/grader.html", context, status=status)


@viewer_required
@require_GET
def grader(request, public_id):
    run = _run(request, public_id)
    return _grader_page(request, run, RunGrader(run=run))


@admin_required
@require_POST
def grader_change(request, public_id):
    run = _run(request, public_id, Role.ADMIN)
    form = RunGrader(request.POST, run=run)
    if not form.is_valid():
        return _grader_page(request, run, form, status=400)
    people.change_grader(run, grader=form.cleaned_data["grader"], grading=form.options(), user=request.user)
    messages.success(request, "The grader is saved. Gradings under way end as they began.")
    return redirect("grader", public_id)


def _grading(request, pk: int) -> tuple[Grading, Sitting]:
    rows = Grading.objects.visible_to(request.user).select_related("group__run", "group__task")
    found = get_object_or_404(rows, pk=pk)
    group = find_group(request, found.group_id)
    blind.refuse_hidden(group, request.user)
    return found, Sitting(group, request.user)


@viewer_required
@require_GET
def grading(request, pk):
    found, sitting = _grading(request, pk)
    book, part = transcript.book_of(found), request.GET.get("part")
    if part == "events":
        return render(request, "grading/_event_page.html", event_page(book, request.GET, **transcript.NO_MARKS))
    if part == "map":
        context = overview(book, request.GET, **transcript.NO_MARKS) | {"page_url": book.url}
        return render(request, "grading/_event_map.html", context)
    context = transcript.transcript_page(found, sitting.letter_of, request.GET, is_revealed=sitting.is_revealed)
    context["may_review"] = sitting.is_reviewer
    context["problems"] = [
        {name: sitting.lettered(str(words)) for name, words in problem.items() if words}
        for problem in context["problems"]
    ]
    return render(request, "grading/transcript.html", context)


@viewer_required
@require_GET
def grading_event(request, pk, index):
    found, _ = _grading(request, pk)
    return one_event(request, transcript.book_of(found), index, {"group": found.group})


@viewer_required
@require_GET
def grading_events(request, pk, kind):
    """The whole transcript as a file."""
    found, _ = _grading(request, pk)
    return events_file(transcript.book_of(found), f"grading-{pk}", kind)


@viewer_required
@require_GET
def grading_print(request, pk):
    found, _ = _grading(request, pk)
    book = transcript.book_of(found)
    context = {"group": found.group, "event_count": found.event_count, "page_url": book.url}
    return render(request, "grading/event_print.html", context | printed(book))


@reviewer_required
@require_POST
def grade_again(request, pk):
    """Before a decision the new verdict may count; after it, it only stands beside."""
    group = find_group(request, pk, Role.REVIEWER)
    regrade.ask(group, by=request.user)
    messages.success(request, f"Group {group.key} is graded again: its verdict comes when the grader has answered.")
    back = request.POST.get("back", "")
    return redirect("grader", group.run.public_id) if back == "grader" else redirect("group", pk)
