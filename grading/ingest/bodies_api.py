"""REST for bodies: a rollout's events page by page, its patch and its log as they are."""

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.response import Response

from grading import bodies
from grading.errors import NotFound
from grading.ingest import answers
from grading.ingest.api import LIFE, REFUSALS, whole_parameter
from grading.ingest.machine_view import MachineView, name_in_url
from grading.models import Trajectory

EVENTS_AT_ONCE = 500
BYTES_AT_ONCE = 4 * 2**20
RAW = {(200, "application/octet-stream"): OpenApiTypes.BINARY} | REFUSALS


class BodyView(MachineView):
    def trajectory_of(self, run: str, external_id: str) -> Trajectory:
        """The rollout of this id in the life asked for, else in the newest that has it."""
        rows = Trajectory.objects.visible_to(self.request.user)
        rows = rows.filter(run=self.run_of(run), external_id=name_in_url(external_id, "external_id"))
        life = whole_parameter(self.request, "life", least=1)
        found = (rows if life is None else rows.filter(life__n=life)).order_by("-life__n").first()
        if found is None:
            raise NotFound("no such rollout", got=external_id, expected="one of this run and life", where="external_id")
        return found


class Events(BodyView):
    @extend_schema(
        parameters=[OpenApiParameter("start", int), OpenApiParameter("stop", int), LIFE],
        responses={200: answers.EventsOut} | REFUSALS,
    )
    def get(self, request, run, external_id):
        """Events start..stop-1 of a rollout, at most 500 or about 4 MiB at once."""
        trajectory = self.trajectory_of(run, external_id)
        start = whole_parameter(request, "start", least=0, default=0)
        stop = whole_parameter(request, "stop", least=0, default=start + EVENTS_AT_ONCE)
        total = trajectory.event_count or 0
        stop, events, size = min(stop, start + EVENTS_AT_ONCE, total), [], 0
        if trajectory.event_body:
            for event in bodies.iter_events(trajectory.event_body, start, stop):
                events.append(event)
                size += len(str(event))
                if size > BYTES_AT_ONCE:
                    break
        after = start + len(events)
        said = {"total": total, "start": start, "next": after if events and after < total else None, "events": events}
        return Response(said)


class Raw(BodyView):
    """Bytes as they were sent, for saving: never shown by a browser as a page of ours."""

    @extend_schema(parameters=[LIFE], responses=RAW)
    def get(self, request, run, external_id, body):
        """A rollout's patch or log."""
        key = getattr(self.trajectory_of(run, external_id), body)
        if not key:
            raise NotFound(f"this rollout has no {body}", got=external_id, where=body)
        headers = {"Content-Disposition": f'attachment; filename="{body}"', "X-Content-Type-Options": "nosniff"}
        return HttpResponse(bodies.read_bytes(key), content_type="application/octet-stream", headers=headers)
