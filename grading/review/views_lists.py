"""The queue and the list of groups."""

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from grading.access import reviewer_required, viewer_required
from grading.models import RolloutGroup, Run
from grading.review import queue
from grading.review.pages import lists


@viewer_required
@require_GET
def queue_page(request):
    context = lists.queue_page(RolloutGroup.objects.visible_to(request.user), request.user, request.GET)
    return render(request, "grading/queue.html", context)


@viewer_required
@require_GET
def queue_next(request):
    """The next group that waits, after the one given."""
    after = request.GET.get("after", "")
    found = queue.after(request.user, int(after) if after.isdecimal() and len(after) < 19 else None)
    return redirect("group", found.pk) if found else redirect("queue")


@reviewer_required
@require_POST
def claim_first(request):
    found = queue.claim_first(request.user)
    if found is None:
        messages.warning(request, "Nothing is free to claim.")
        return redirect("queue")
    return redirect("group", found.pk)


@viewer_required
@require_GET
def groups_page(request):
    groups, runs = RolloutGroup.objects.visible_to(request.user), Run.objects.visible_to(request.user)
    return render(request, "grading/groups.html", lists.groups_page(groups, runs, request.GET))
