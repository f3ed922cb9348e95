"""The register of tasks, and a group's history."""

from django.contrib import messages
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from grading.access import reviewer_required, viewer_required
from grading.models import Role, Task, Verdict
from grading.review import findings
from grading.review.pages import history, task_register
from grading.review.pages.sitting import Sitting
from grading.review.posted import posted_text
from grading.review.views import find_group


@viewer_required
@require_GET
def tasks(request):
    found = Task.objects.visible_to(request.user)
    return render(request, "grading/tasks.html", task_register.tasks_page(found, request.user, request.GET))


def _task(request, pk: int) -> Task:
    return get_object_or_404(Task.objects.visible_to(request.user, Role.REVIEWER), pk=pk)


@reviewer_required
@require_POST
def quarantine(request, pk):
    task = _task(request, pk)
    findings.quarantine(task, reason=posted_text(request, "reason"), user=request.user)
    messages.success(request, f"Task {task.key} is quarantined: its groups do not train.")
    return redirect("tasks")


@reviewer_required
@require_POST
def release(request, pk):
    task = _task(request, pk)
    findings.release(task, reason=posted_text(request, "reason"), user=request.user)
    messages.success(request, f"Task {task.key} is released: its groups train again.")
    return redirect("tasks")


@viewer_required
@require_GET
def group_history(request, pk):
    sitting = Sitting(find_group(request, pk), request.user)
    return render(request, "grading/history.html", history.history_page(sitting))


@viewer_required
@require_GET
def verdict(request, pk, verdict):
    sitting = Sitting(find_group(request, pk), request.user)
    rows = Verdict.objects.visible_to(request.user).filter(group=sitting.group).select_related("author", "rubric")
    found = get_object_or_404(rows, pk=verdict)
    return render(request, "grading/verdict.html", history.verdict_page(sitting, found))
