"""The register of tasks, and a group's history."""

from django.contrib import messages
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from grading.access import reviewer_required, viewer_required
from grading.models import Role, Task, Verdict
from grading.review import blind, findings
from grading.review.pages import history, task_page, task_register
from grading.review.pages.sitting import Sitting
from grading.review.posted import posted_text
from grading.review.views import find_group


@viewer_required
@require_GET
def tasks(request):
    found = Task.objects.visible_to(request.user)
    return render(request, "grading/tasks.html", task_register.tasks_page(found, request.user, request.GET))


@viewer_required
@require_GET
def task(request, pk):
    rows = Task.objects.visible_to(request.user).select_related("team", "repository")
    return render(request, "grading/task.html", task_page.task_page(get_object_or_404(rows, pk=pk), request.user))


def _task(request, pk: int) -> Task:
    return get_object_or_404(Task.objects.visible_to(request.user, Role.REVIEWER), pk=pk)


@reviewer_required
@require_POST
def quarantine(request, pk):
    found = _task(request, pk)
    findings.quarantine(found, reason=posted_text(request, "reason"), user=request.user)
    messages.success(request, f"Task {found.key} is quarantined: its groups do not train.")
    return redirect("task", pk) if request.POST.get("back") == "task" else redirect("tasks")


@reviewer_required
@require_POST
def release(request, pk):
    found = _task(request, pk)
    findings.release(found, reason=posted_text(request, "reason"), user=request.user)
    messages.success(request, f"Task {found.key} is released: its groups train again.")
    return redirect("task", pk) if request.POST.get("back") == "task" else redirect("tasks")


@viewer_required
@require_GET
def group_history(request, pk):
    sitting = Sitting(find_group(request, pk), request.user)
    return render(request, "grading/history.html", history.history_page(sitting))


@viewer_required
@require_GET
def verdict(request, pk, verdict):
    sitting = Sitting(find_group(request, pk), request.user)
    blind.refuse_hidden(sitting.group, request.user)
    rows = Verdict.objects.visible_to(request.user).filter(group=sitting.group).select_related("author", "rubric")
    found = get_object_or_404(rows, pk=verdict)
    return render(request, "grading/verdict.html", history.verdict_page(sitting, found))
