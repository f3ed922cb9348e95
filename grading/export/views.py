"""A team's data to train graders with, for its admins: what there is, and the files."""

import logging
import tempfile
from collections import Counter

from django.http import FileResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from grading.access import admin_required
from grading.export.decided import counts
from grading.export.files import FORMATS, check_kind, json_lines, rows_of
from grading.models import Role, Run, Team
from grading.streamed import streamed

log = logging.getLogger(__name__)
ABOUT = {
    "sft": "what a model said and looked at while it graded, ending in the verdict that people let stand",
    "preferences": "two patches of a task, which is better or that neither is",
    "labels": "scores, flags, tiers and ranks by candidate, the grader’s own beside the person’s",
}


def _asked(request, slug: str) -> tuple[Team, list[Run], str]:
    team = get_object_or_404(Team.objects.visible_to(request.user, Role.ADMIN), slug=slug)
    rows = Run.objects.visible_to(request.user, Role.ADMIN).filter(team=team).order_by("-pk")
    one = request.GET.get("run", "")
    return team, [get_object_or_404(rows, public_id=one)] if one else list(rows), one


@admin_required
@require_GET
def export_page(request, slug):
    team, runs, one = _asked(request, slug)
    everything = Run.objects.visible_to(request.user, Role.ADMIN).filter(team=team).order_by("-pk")
    context = {
        "team": team,
        "runs": everything,
        "asked": one,
        "counts": counts(runs),
        "kinds": [{"key": kind, "about": ABOUT[kind], "formats": formats} for kind, formats in FORMATS.items()],
    }
    return render(request, "grading/export.html", context)


@admin_required
@require_GET
def export_file(request, slug, kind, format):
    team, runs, one = _asked(request, slug)
    check_kind(kind, format)
    log.info("%s exports %s of %s", request.user.username, kind, one or f"team {team.slug}")
    name = f"{one or team.slug}-{kind}.{format}"
    rows = rows_of(kind, runs, Counter())
    if format == "parquet":
        return _parquet(rows, kind, name)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingHttpResponse(streamed(json_lines(rows)), content_type="application/x-ndjson", headers=headers)


def _parquet(rows, kind: str, name: str) -> FileResponse:
    """On disk first, as its end is written last."""
    from grading.export.parquet import write_parquet  # the extra [export]

    file = tempfile.TemporaryFile()  # noqa: SIM115 - the response closes it
    write_parquet(rows, kind, file)
    file.seek(0)
    return FileResponse(file, as_attachment=True, filename=name, content_type="application/vnd.apache.parquet")
