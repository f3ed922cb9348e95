"""REST for rollouts: posted as one JSON document or streamed as NDJSON; answered item by item."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from drf_spectacular.utils import OpenApiParameter, OpenApiTypes, extend_schema
from rest_framework.response import Response

from grading.errors import Conflict, GradingError, WrongShape, WrongType
from grading.ingest import answers, assemble, refusals, serializers
from grading.ingest.api import REFUSALS, group_of, said_by, whole_parameter
from grading.ingest.fields import checked, unknown_fields
from grading.ingest.listing import FILTERED, list_answer, page_of
from grading.ingest.machine_view import MachineView
from grading.ingest.ndjson import TrajectoryLines
from grading.ingest.reading import JSON_TYPES, NDJSON_TYPES, content_type, read_json, read_lines
from grading.ingest.serializers import rollout_of
from grading.models import Life, Run, Trajectory
from grading.storable import storable

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
            life = assemble.open_life(run, said["life"])
            items = list(_each(said["trajectories"], self._adder(run, life)))
        elif media in NDJSON_TYPES:
            n = whole_parameter(request, "life", least=1)
            if n is None:
                raise WrongShape("no life", expected="the job's life", where="?life")
            items = list(_each_streamed(read_lines(request), self._adder(run, assemble.open_life(run, n))))
        else:
            expected = " or ".join((*JSON_TYPES, NDJSON_TYPES[0]))
            raise WrongType("the body has another type", got=media or "none", expected=expected, where="Content-Type")
        return _answer(items)

    def _adder(self, run: Run, life: Life) -> Callable[..., tuple[dict, int]]:
        known = {}

        def add(fields, *, where: str, events=None) -> tuple[dict, int]:
            """One item's answer and its HTTP status."""
            try:
                said = checked(serializers.TrajectoryWire, fields, where=where)
                key = said["group"]
                group = known.get(key) or known.setdefault(key, group_of(self, run, key, life.n))
                rollout = rollout_of(said, events=events and events())
                if events and rollout.events is None and rollout.log is not None:
                    rollout = replace(rollout, events=[])  # a body of a log alone: there are no events to wait for
                added = assemble.add_trajectory(group, rollout, by=said_by(self.request))
            except GradingError as refused:
                return _refused(fields, refused)
            item = {"external_id": added.trajectory.external_id, "status": str(added.status)}
            if unknown := unknown_fields(serializers.TrajectoryWire, fields):
                item["ignored"] = unknown
            return item, 201 if added.is_new else 200

        return add

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


def _each(trajectories: list, add) -> Iterator[tuple[dict, int]]:
    for at, fields in enumerate(trajectories):
        yield add(fields, where=f"trajectories[{at}]")


def _each_streamed(lines, add) -> Iterator[tuple[dict, int]]:
    stream = TrajectoryLines(lines)
    try:
        for number, fields in stream:
            yield add(fields, where=f"line {number}", events=stream.events)
    except GradingError as broken:  # the body itself, between two trajectories: what came before is stored
        yield _refused({}, broken)


def _refused(fields, error: GradingError) -> tuple[dict, int]:
    external_id = fields.get("external_id") if isinstance(fields, dict) else None
    item = {
        "external_id": storable(external_id)[:200] if isinstance(external_id, str) else None,
        "status": "conflict" if isinstance(error, Conflict) else "error",
        "error": refusals.as_json(error),
    }
    return item, error.status


def _answer(items: list[tuple[dict, int]]) -> Response:
    if not items:
        raise WrongShape("no trajectories", expected="at least one", where="the body")
    said = {"items": [item for item, _ in items]}
    if len(items) == 1:
        item, status = items[0]
        return Response(item.get("error", {}) | said, status=status)
    refused = any("error" in item for item, _ in items)
    return Response(said, status=207 if refused else 200)
