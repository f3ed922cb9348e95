"""REST for readers of numbers: any series as JSON or CSV, the history of a step, and the page that Prometheus reads."""

from django.http import HttpResponse, JsonResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.response import Response

from grading.ingest.api import REFUSALS, whole_parameter
from grading.ingest.machine_view import MachineView
from training_bridge.models import MetricSeries
from training_bridge.monitor import export, prometheus
from training_bridge.monitor.curves import LAST
from training_bridge.monitor.export_views import csv_answer, names_in, series_answer

AT_ONCE = 1000
NAME = OpenApiParameter("name", str, many=True, description="A series; may be given often. All where left out.")
FROM = OpenApiParameter("from", int, description="The first step.")
TO = OpenApiParameter("to", int, description="The last step.")
WIDTH = OpenApiParameter("width", int, description="Thin to about so many points, extremes and gaps kept; 1200.")
AFTER = OpenApiParameter("after", str, description="`cursor` of an answer before: only what changed since.")
LIMIT = OpenApiParameter("limit", int, description="Steps a page, 1 to 1000.")


class SeriesNames(MachineView):
    @extend_schema(responses={200: OpenApiTypes.OBJECT} | REFUSALS)
    def get(self, request, run):
        """Every series of the run: what the job reported, with unit, points and newest step, and what the rows say."""
        run = self.run_of(run)
        rows = MetricSeries.objects.visible_to(request.user).filter(run=run).order_by("name")
        reported = list(rows.values("name", "unit", "points", "last_step"))
        known = {row["name"] for row in reported}
        return Response({"reported": reported, "derived": [n for n in export.names_of(run) if n not in known]})


class SeriesCurves(MachineView):
    @extend_schema(parameters=[NAME, FROM, TO, WIDTH, AFTER], responses={200: OpenApiTypes.OBJECT} | REFUSALS)
    def get(self, request, run):
        """Curves as the monitor draws them: thinned, or what changed after a cursor."""
        return JsonResponse(series_answer(self.run_of(run), request.query_params))


class SeriesRows(MachineView):
    @extend_schema(parameters=[NAME, FROM, TO, LIMIT], responses={200: OpenApiTypes.OBJECT} | REFUSALS)
    def get(self, request, run):
        """Whole series, a page of steps at a time: `next` is the `from` of the page after, null at the end."""
        run, query = self.run_of(run), request.query_params
        names = names_in(query) or export.names_of(run)
        first = whole_parameter(request, "from", least=0, default=0)
        last = whole_parameter(request, "to", least=0, default=LAST)
        limit = min(whole_parameter(request, "limit", least=1, default=AT_ONCE), AT_ONCE)
        found = []
        for step, values in export.rows(run, names, first, last):
            if len(found) == limit:
                return Response({"items": found, "next": step})
            found.append({"step": step, "values": values})
        return Response({"items": found, "next": None})


class SeriesCsv(MachineView):
    @extend_schema(parameters=[NAME, FROM, TO], responses={(200, "text/csv"): OpenApiTypes.STR} | REFUSALS)
    def get(self, request, run):
        """Whole series as a table, streamed: a line a step, a column a name; NaN and Infinity as words."""
        return csv_answer(self.run_of(run), request.query_params)


class SeriesHistory(MachineView):
    @extend_schema(
        parameters=[OpenApiParameter("name", str, required=True), OpenApiParameter("step", int, required=True)],
        responses={200: OpenApiTypes.OBJECT} | REFUSALS,
    )
    def get(self, request, run):
        """Every value that was told of one name at one step, the newest first."""
        step = whole_parameter(request, "step", least=0, default=0)
        return Response({"history": export.history(self.run_of(run), request.query_params.get("name", ""), step)})


class Prometheus(MachineView):
    @extend_schema(responses={(200, "text/plain"): OpenApiTypes.STR} | REFUSALS)
    def get(self, request, run):
        """The run now, in the format that Prometheus scrapes; the token goes into its `authorization`."""
        text, kind = prometheus.page(self.run_of(run), accept=request.headers.get("Accept", ""))
        return HttpResponse(text, content_type=kind)
