"""REST for readers: everything of a run in pages. A list is a picture of now, not a feed.

Rows are ordered by number; a writer that commits late can appear behind a cursor. To follow a run, follow its rows out.
"""

from drf_spectacular.utils import OpenApiParameter, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.response import Response

from grading.grader import job
from grading.grader.wire import from_json
from grading.ingest import answers
from grading.ingest.api import LIFE, REFUSALS, group_of, whole_parameter
from grading.ingest.machine_view import MachineView, name_in_url
from grading.ingest.reading import read_json
from grading.ingest.verdict_schema import VerdictReply
from grading.models import Decision, RolloutGroup, Task, Verdict

ROWS_AT_ONCE = 1000
PAGING = [
    OpenApiParameter("after", int, description="`next` of the page before."),
    OpenApiParameter("limit", int, description=f"Rows a page, 1 to {ROWS_AT_ONCE}; 100 where left out."),
]
FILTERED = PAGING + [
    OpenApiParameter("group", str, description="Only rows of the group with this key."),
    OpenApiParameter("life", int, description="Only rows of this life."),
]


def page_of(answer: type[serializers.Serializer]):
    """The shape of one page, for the API's schema."""
    fields = {"items": answer(many=True), "next": serializers.IntegerField(allow_null=True)}
    return inline_serializer(f"PageOf{answer.__name__.removesuffix('Out').removesuffix('Row')}", fields)


def list_answer(request, rows, answer: type[serializers.Serializer], *, life: str = "", group: str = "") -> Response:
    """One page of rows; `life` and `group` are the lookups of the filters where the list has them."""
    if life and (n := whole_parameter(request, "life", least=1)) is not None:
        rows = rows.filter(**{life: n})
    if group and (key := request.query_params.get("group")) is not None:
        rows = rows.filter(**{group: name_in_url(key, "?group")})
    limit = min(whole_parameter(request, "limit", least=1, default=100), ROWS_AT_ONCE)
    after = whole_parameter(request, "after", least=0, default=0)
    page = list(rows.filter(pk__gt=after).order_by("pk")[: limit + 1])
    more, page = len(page) > limit, page[:limit]
    return Response({"items": answer(page, many=True).data, "next": page[-1].pk if more else None})


class TaskList(MachineView):
    @extend_schema(operation_id="list_tasks", parameters=PAGING, responses={200: page_of(answers.TaskOut)} | REFUSALS)
    def get(self, request):
        """The team's task register."""
        tasks = Task.objects.visible_to(request.user).select_related("repository")
        return list_answer(request, tasks, answers.TaskOut)


class GroupList(MachineView):
    @extend_schema(
        operation_id="list_groups", parameters=FILTERED, responses={200: page_of(answers.GroupRow)} | REFUSALS
    )
    def get(self, request, run):
        """The run's groups, without their rollouts."""
        groups = RolloutGroup.objects.visible_to(request.user).filter(run=self.run_of(run))
        groups = groups.select_related("run", "life", "task")
        return list_answer(request, groups, answers.GroupRow, life="life__n", group="key")


class Verdicts(MachineView):
    @extend_schema(
        operation_id="list_verdicts",
        parameters=FILTERED,
        responses={200: page_of(answers.VerdictOut)} | REFUSALS,
    )
    def get(self, request, run):
        """The run's verdicts, corrections too; of a group that waits for a blind order none before it is decided."""
        rows = Verdict.objects.visible_to(request.user).unveiled().filter(group__run=self.run_of(run))
        rows = rows.select_related("group__life", "rubric", "author")
        return list_answer(request, rows, answers.VerdictOut, life="group__life__n", group="group__key")


class Decisions(MachineView):
    @extend_schema(
        operation_id="list_decisions",
        parameters=FILTERED,
        responses={200: page_of(answers.DecisionOut)} | REFUSALS,
    )
    def get(self, request, run):
        """The run's decisions; a group's newest version counts."""
        rows = Decision.objects.visible_to(request.user).filter(group__run=self.run_of(run))
        rows = rows.select_related("group__life")
        return list_answer(request, rows, answers.DecisionOut, life="group__life__n", group="group__key")


class GroupVerdicts(MachineView):
    """A grader of your own; a run whose grader is `external` waits for its verdicts."""

    access = "token:ingest"

    @extend_schema(request=VerdictReply, parameters=[LIFE], responses={201: answers.VerdictOut} | REFUSALS)
    def post(self, request, run, key):
        """Hand in a verdict. It is checked like any grader's; one that is not valid is kept, with its problems."""
        group = group_of(self, self.run_of(run), key, whole_parameter(request, "life", least=1))
        reply = from_json(read_json(request))
        verdict = job.accept(group, reply, grader=f"{request.user.name}"[: job.GRADER_CHARS])
        return Response(answers.VerdictOut(verdict).data, status=201)
