"""One group's advantages and deliveries, as panels that pages of grading ask for by URL."""

from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET, require_http_methods

from grading.access import viewer_required
from grading.models import RolloutGroup
from grading.review import blind
from training_bridge import advantage_panel
from training_bridge.monitor import group_ledger


def _group(request, pk: int) -> RolloutGroup:
    groups = RolloutGroup.objects.visible_to(request.user).select_related("run__rubric", "task", "rubric")
    return get_object_or_404(groups, pk=pk)


@viewer_required
@require_http_methods(["GET", "POST"])
def panel(request, pk):
    """GET: what counts now. POST: the fields of a correction as they would count; nothing is saved."""
    group = _group(request, pk)
    blind.refuse_hidden(group, request.user)
    if request.method == "POST":
        shown = advantage_panel.draft_panel(group, dict(request.POST.lists()))
    else:
        shown = advantage_panel.standing_panel(group)
    page = "training_bridge/_advantage_panel.html" if request.htmx else "training_bridge/advantages.html"
    return render(request, page, {"panel": shown, "group": group})


@viewer_required
@require_GET
def deliveries(request, pk):
    """Every version of the group that went out, with what the job answered."""
    group = _group(request, pk)
    page = "training_bridge/_group_deliveries.html" if request.htmx else "training_bridge/group_deliveries.html"
    return render(request, page, {"group": group, **group_ledger.versions(group)})
