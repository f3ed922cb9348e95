"""Numbers out for people: a panel's CSV, a series as JSON, the history of a step."""

from django.http import JsonResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_GET

from grading.access import viewer_required
from grading.errors import BadInput
from grading.models import Run
from grading.streamed import streamed
from training_bridge.monitor import alerts, export, series
from training_bridge.monitor.curves import LAST

WIDEST = 4000
MOST_NAMES = 100


def whole(query, name: str, default: int) -> int:
    """A whole number of the query. Raises BadInput for anything else."""
    text = query.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= LAST):
        raise BadInput(f"{name} is no step", got=text[:40], expected=f"a whole number from 0 to {LAST}", where=name)
    return int(text)


def names_in(query) -> list[str] | None:
    """`?name=` as often as there are names; None where there is none."""
    names = list(dict.fromkeys(query.getlist("name")))
    if len(names) > MOST_NAMES:
        raise BadInput("too many names", got=len(names), expected=f"at most {MOST_NAMES}", where="name")
    return names or None


def series_answer(run: Run, query) -> dict:
    """What `?after=` a cursor changed, or the range `from` to `to`, thinned to `width` points."""
    names = names_in(query)
    if "after" in query:
        found = series.changes(run, series.Cursor.read(query["after"]), names)
        if found is not None:
            return found
    width = min(max(whole(query, "width", series.MOST), 2), WIDEST)
    return series.snapshot(run, names, first=whole(query, "from", 0), last=whole(query, "to", LAST), most=width)


def csv_answer(run: Run, query) -> StreamingHttpResponse:
    """Whole series as a table; all of the run's where none is named."""
    names = names_in(query) or export.names_of(run)
    lines = export.csv_lines(run, names, whole(query, "from", 0), whole(query, "to", LAST))
    answer = StreamingHttpResponse(streamed(line.encode() for line in lines), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{run.public_id}.csv"'
    return answer


def _run(request, public_id: str) -> Run:
    return get_object_or_404(Run.objects.visible_to(request.user), public_id=public_id)


@viewer_required
@require_GET
def series_json(request, public_id):
    """The curves: a snapshot, thinned; or with `?after=` what changed. And where alerts fired."""
    run = _run(request, public_id)
    return JsonResponse(series_answer(run, request.GET) | {"marks": alerts.marks(run, whole(request.GET, "from", 0))})


@viewer_required
@require_GET
def series_csv(request, public_id):
    """Whole series of the panel whose button was pressed."""
    return csv_answer(_run(request, public_id), request.GET)


@viewer_required
@require_GET
def history(request, public_id):
    """Every value that was told of one name at one step, the newest first."""
    run = _run(request, public_id)
    step = whole(request.GET, "step", 0)
    return JsonResponse({"history": export.history(run, request.GET.get("name", ""), step)})
