"""A reviewer's order before the verdict is shown."""

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from grading.access import reviewer_required
from grading.errors import BadInput
from grading.models import Role
from grading.review import blind
from grading.review.blind_form import read_order
from grading.review.drafts import is_ranked
from grading.review.pages.answers import blind_fields
from grading.review.pages.group_page import group_page
from grading.review.pages.sitting import Sitting
from grading.review.posted import attention_of
from grading.review.views import find_group


@reviewer_required
@require_http_methods(["GET", "POST"])
def order(request, pk):
    """Take the order; one that is not whole comes back as it was typed."""
    if request.method == "GET":
        return redirect("group", pk)
    sitting = Sitting(find_group(request, pk, Role.REVIEWER), request.user)
    letters = [t.letter for t in sitting.trajectories if is_ranked(t, sitting.group)]
    posted = read_order(dict(request.POST.lists()), letters)
    if posted.errors:
        return _again(request, sitting, posted, posted.errors)
    ids = {letter: sitting.by_letter[letter].external_id for letter in letters}
    try:
        blind.give_order(
            sitting.group,
            user=request.user,
            order=[[ids[letter] for letter in tied] for tied in posted.order],
            flags={ids[letter]: raised for letter, raised in posted.flags.items()},
            tiers={ids[letter]: tier for letter, tier in posted.tiers.items()},
            notes=posted.notes,
            attention_s=attention_of(request),
        )
    except BadInput as e:
        return _again(request, sitting, posted, (str(e),))
    messages.success(request, "Your order is stored as it is. Now you see the grader’s verdict.")
    return redirect("group", pk)


def _again(request, sitting: Sitting, posted, errors: tuple[str, ...]):
    context = group_page(sitting, query=request.GET, errors=errors)
    context["round"]["blind"] = blind_fields(sitting, posted)
    return render(request, "grading/group.html", context, status=BadInput.status)
