"""REST for rollouts: posted as one JSON document or streamed as NDJSON; answered item by item."""

from drf_spectacular.utils import OpenApiParameter, OpenApiTypes, extend_schema
from rest_framework.response import Response

from grading.errors import WrongShape, WrongType
from grading.ingest import answers, lives, serializers
from grading.ingest.api import REFUSALS, said_by, whole_parameter
from grading.ingest.fields import checked
from grading.ingest.handing_in import HandIn
from grading.ingest.listing import FILTERED, list_answer, page_of
from grading.ingest.machine_view import MachineView
from grading.ingest.ndjson import TrajectoryLines
from grading.ingest.reading import JSON_TYPES, NDJSON_TYPES, content_type, read_json, read_lines
from grading.models import Run, Trajectory

BATCH = {
    "application/json": serializers.BatchSchema,
    "application/x-ndjson": {
        "type": "string",
        "description": "Lines {type: trajectory, …}, {type: event, …}…, {type: end}; the life is in the query.",
    },
}
ITEMS = {200: answers.ItemsOut, 201: answers.ItemsOut, 207: answers.ItemsOut} | REFUSALS


class Trajectories(MachineView):
    access = "token:ingest"

    @extend_schema(
        request=BATCH,
        parameters=[
            OpenApiParameter("life", int, description="With NDJSON: the job's life."),
            OpenApiParameter("Content-Encoding", OpenApiTypes.STR, OpenApiParameter.HEADER, enum=["gzip", "zstd"]),
        ],
        responses=ITEMS,
    )
    def post(self, request, run):
        """Hand in rollouts. One item answers with its own status; several with 200, or 207 if one was refused."""
        run, media = self.run_of(run), content_type(request)
        if media in JSON_TYPES:
            said = checked(serializers.BatchWire, read_json(request))
            with self._hand_in(run, said["life"]) as hand_in:
                hand_in.all_of(said["trajectories"])
        elif media in NDJSON_TYPES:
            n = whole_parameter(request, "life", least=1)
            if n is None:
                raise WrongShape("no life", expected="the job's life", where="?life")
            with self._hand_in(run, n) as hand_in:
                hand_in.all_streamed(TrajectoryLines(read_lines(request)))
        else:
            expected = " or ".join((*JSON_TYPES, NDJSON_TYPES[0]))
            raise WrongType("the body has another type", got=media or "none", expected=expected, where="Content-Type")
        return _answer(hand_in.answers)

    def _hand_in(self, run: Run, n: int) -> HandIn:
        life = lives.open_life(run, n)
        return HandIn(life, by=said_by(self.request))

    @extend_schema(
        operation_id="list_trajectories",
        parameters=FILTERED,
        responses={200: page_of(answers.TrajectoryOut)} | REFUSALS,
    )
    def get(self, request, run):
        """The run's rollouts."""
        rows = Trajectory.objects.visible_to(request.user).filter(run=self.run_of(run))
        rows = rows.select_related("group__life")
        return list_answer(request, rows, answers.TrajectoryOut, life="life__n", group="group__key")


def _answer(items: list[tuple[dict, int]]) -> Response:
    if not items:
        raise WrongShape("no trajectories", expected="at least one", where="the body")
    said = {"items": [item for item, _ in items]}
    if len(items) == 1:
        item, status = items[0]
        return Response(item.get("error", {}) | said, status=status)
    refused = any("error" in item for item, _ in items)
    return Response(said, status=207 if refused else 200)
