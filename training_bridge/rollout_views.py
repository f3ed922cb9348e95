"""One rollout's whole history as a page and over REST, and the way to it by the job's own id."""

from django.http import Http404
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from grading.access import viewer_required
from grading.errors import NotFound
from grading.ingest.api import LIFE, REFUSALS, whole_parameter
from grading.ingest.machine_view import MachineView, name_in_url
from grading.models import Life, RolloutGroup, Run, Trajectory
from grading.review.pages.sitting import Sitting
from grading.states import ENDED
from training_bridge import rollout_history

RUNS = 50  # searched for an id, the newest first, where no run is named
MOST = 50


@viewer_required
@require_GET
def history(request, pk, letter):
    groups = RolloutGroup.objects.visible_to(request.user).select_related("run__team", "life", "task", "rubric")
    sitting = Sitting(get_object_or_404(groups, pk=pk), request.user)
    rollout = sitting.by_letter.get(letter)
    if rollout is None:
        raise Http404("no such candidate")
    rollout.group = sitting.group
    rows = rollout_history.history_of(rollout, without_verdicts=sitting.is_hidden)
    for row in rows:
        row["words"], row["why"] = sitting.lettered(row["words"]), sitting.lettered(row["why"])
        if "rank" in row["numbers"]:  # people count from 1, as the cards of the group's page do; the wire from 0
            numbers = {**row["numbers"]}
            row["numbers"] = {"place" if k == "rank" else k: v + (k == "rank") for k, v in numbers.items()}
        row["url"] = _url(sitting.group, row["link"])
    context = {
        "group": sitting.group,
        "run": sitting.group.run,
        "letter": letter,
        "letters": sorted(sitting.by_letter),
        "external_id": rollout.external_id if sitting.is_revealed else "",
        "is_hidden": sitting.is_hidden,
        "rows": rows,
    }
    return render(request, "training_bridge/rollout_history.html", context)


def _url(group: RolloutGroup, link: tuple[str, int] | None) -> str:
    if link is None:
        return ""
    kind, pk = link
    return reverse("grading", args=[pk]) if kind == "grading" else reverse("verdict", args=[group.pk, pk])


@viewer_required
@require_GET
def find(request):
    """Rollouts by the job's own id. Only of decided groups: before, letters stand for ids so that nobody is biased."""
    said, asked = request.GET.get("id", "").strip()[:200].replace("\x00", ""), request.GET.get("run", "")
    runs = Run.objects.visible_to(request.user).order_by("-pk")
    runs = runs.filter(public_id=asked) if asked else runs
    keys = list(runs.values_list("pk", flat=True)[:RUNS])
    lives = Life.objects.visible_to(request.user).filter(run__in=keys)
    rows = Trajectory.objects.visible_to(request.user).filter(run__in=keys, life__in=lives, external_id=said)
    rows = rows.filter(group__state__in=ENDED).exclude(letter="").select_related("group__run", "group__task", "life")
    found = list(rows.order_by("-pk")[:MOST]) if said else []
    if len(found) == 1:
        return redirect("rollout-history", found[0].group_id, found[0].letter)
    return render(request, "training_bridge/rollouts.html", {"id": said, "run_id": asked, "found": found})


class RolloutHistory(MachineView):
    @extend_schema(parameters=[LIFE], responses={200: OpenApiTypes.OBJECT} | REFUSALS)
    def get(self, request, run, external_id):
        """Everything that happened to one rollout, in order, with the numbers at each stage."""
        rows = Trajectory.objects.visible_to(request.user).filter(run=self.run_of(run))
        rows = rows.filter(external_id=name_in_url(external_id, "external_id"))
        if (n := whole_parameter(request, "life", least=1)) is not None:
            rows = rows.filter(life__n=n)
        rows = rows.select_related("group__run", "group__life", "group__task", "group__rubric")
        rollout = rows.order_by("-life__n").first()
        if rollout is None:
            raise NotFound("no such rollout in this run", got=external_id[:80], where="external_id")
        told = [dict(row) for row in rollout_history.history_of(rollout)]
        for row in told:
            row["link"] = row["link"] and {"kind": row["link"][0], "id": row["link"][1]}
        about = {"external_id": rollout.external_id, "group": rollout.group.key, "life": rollout.group.life.n}
        return Response(about | {"task": rollout.group.task.key, "step": rollout.group.step, "history": told})
