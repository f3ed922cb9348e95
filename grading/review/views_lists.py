"""The queue and the list of groups."""

from django.contrib import messages
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from grading.access import reviewer_required, viewer_required
from grading.models import Role, RolloutGroup, Run
from grading.review import bulk, queue
from grading.review.pages import explorer, lists
from grading.review.posted import posted_text

SAID = 6  # refusals of a bulk that are said one by one


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
    return render(request, "grading/groups.html", explorer.groups_page(groups, runs, request.GET, user=request.user))


def _selected(request) -> list[RolloutGroup]:
    asked = {int(pk) for pk in request.POST.getlist("group") if pk.isdecimal() and len(pk) < 19}
    groups = RolloutGroup.objects.visible_to(request.user, Role.REVIEWER).filter(pk__in=asked)
    return list(groups.select_related("task", "run", "rubric").order_by("pk"))


def _told(request, tally: bulk.Tally, *, what: str, did: str, so: str):
    """What was changed, what was refused and why; then the list as it was filtered."""
    words = f"{tally.changed} {what}{'s' * (tally.changed != 1)} {did} in {tally.groups} group"
    messages.success(request, f"{words}{'s' * (tally.groups != 1)}. {so}")
    for refused in tally.refused[:SAID]:
        messages.warning(request, f"Left as it is: {refused}")
    if len(tally.refused) > SAID:
        messages.warning(request, f"And {len(tally.refused) - SAID} more were left as they are.")
    return redirect(f"{reverse('groups')}?{request.GET.urlencode()}")


@reviewer_required
@require_POST
def withdraw_findings(request):
    """One reason for the findings of many groups."""
    said = {"kind": request.POST.get("kind", ""), "reason": posted_text(request, "reason")}
    tally = bulk.withdraw(_selected(request), user=request.user, **said)
    return _told(request, tally, what="finding", did="withdrawn", so="They count anew.")


@reviewer_required
@require_POST
def rule_hints_wrong(request):
    said = {"detector": request.POST.get("detector", ""), "reason": posted_text(request, "reason")}
    tally = bulk.rule_wrong(_selected(request), user=request.user, **said)
    return _told(request, tally, what="hint", did="ruled wrong", so="No filter finds them now; the history has them.")


@reviewer_required
@require_POST
def take_flags_back(request):
    said = {"flag": request.POST.get("flag", ""), "reason": posted_text(request, "reason")}
    counts = request.POST.get("counts") == "1"
    tally = bulk.unflag(_selected(request), user=request.user, counts=counts, **said)
    so = "The corrections count." if counts else "The corrections are saved, and decide nothing yet."
    return _told(request, tally, what="flag", did="taken back", so=so)
