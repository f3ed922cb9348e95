"""Parts of the comparison: one file's lines, one file of the interdiff, a patch as it came, what a check printed."""

from django.http import Http404
from django.shortcuts import get_object_or_404, render
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_GET

from grading import bodies
from grading.access import viewer_required
from grading.grader import gather
from grading.models import Trajectory
from grading.review.pages import compare, compare_results
from grading.review.pages.aligned import Aligned
from grading.review.pages.ansi import to_html
from grading.review.pages.look import Look
from grading.review.pages.sitting import Sitting
from grading.review.saved import download
from grading.review.views import find_group

SHOWN_BYTES = 200_000
NOBODY = "-"  # in the address of a comparison that has one side only


def _candidate(sitting: Sitting, letter: str) -> Trajectory:
    found = sitting.by_letter.get(letter)
    if found is None:
        raise Http404("no such candidate")
    return found


def _first(request) -> int:
    first = request.GET.get("first", "")
    return int(first) if first.isdecimal() and len(first) < 10 else 0


def _shown(request, sitting: Sitting, whose: str, file: dict | None):
    if file is None:
        raise Http404("no such file in this patch")
    template = "grading/_diff_rows.html" if request.htmx else "grading/diff_file.html"
    return render(request, template, {"group": sitting.group, "whose": whose, "file": file})


@viewer_required
@require_GET
def group_file(request, pk, letter, index):
    sitting = Sitting(find_group(request, pk), request.user)
    side = compare.Side(sitting, _candidate(sitting, letter), Look.of(request.GET))
    file = compare.opened_file(side, index, first=_first(request), fold=bool(request.htmx))
    return _shown(request, sitting, f"Candidate {letter}", file)


@viewer_required
@require_GET
def group_pairs(request, pk, left, right):
    """Files of the comparison from one on, and to one that is wanted: the page itself has the first."""
    sitting = Sitting(find_group(request, pk), request.user)
    pair = tuple(None if letter == NOBODY else _candidate(sitting, letter) for letter in (left, right))
    look = Look.of(request.GET, left=left, right=right)
    context = Aligned(sitting, pair, look).part(_first(request), to=request.GET.get("to", ""))
    context |= {"group": sitting.group, "look": look, "left": {"letter": left}, "right": {"letter": right}}
    return render(request, "grading/_diff_pairs.html" if request.htmx else "grading/diff_pairs.html", context)


@viewer_required
@require_GET
def group_interdiff(request, pk, left, right, index):
    sitting = Sitting(find_group(request, pk), request.user)
    pair = _candidate(sitting, left), _candidate(sitting, right)
    file = compare_results.opened(sitting, pair, Look.of(request.GET), index, first=_first(request))
    return _shown(request, sitting, f"From the result of {left} to that of {right}", file)


@viewer_required
@require_GET
def candidate_patch(request, pk, letter):
    """The bytes as they were submitted."""
    found = _candidate(Sitting(find_group(request, pk), request.user), letter)
    if not found.patch:
        raise Http404("no patch was submitted")
    return download(gather.patch_of(found)[0], f"{letter}.patch")


@viewer_required
@require_GET
def check_output(request, pk, check):
    """What a check printed: its beginning as a part or a page, the whole as a download."""
    sitting = Sitting(find_group(request, pk), request.user)
    found = get_object_or_404(sitting.group.checks, pk=check)
    output = bodies.read_bytes(found.output) if found.output else b""
    if request.GET.get("part") == "whole":
        return download(output, f"{found.name.replace(':', '-')}.txt")
    text = sitting.lettered(output[:SHOWN_BYTES].decode("utf-8", errors="replace"))
    context = {"group": sitting.group, "check": found, "is_cut": len(output) > SHOWN_BYTES, "shown": SHOWN_BYTES}
    context |= {"output": mark_safe(to_html(text)), "words": sitting.lettered(found.words)}  # noqa: S308
    return render(request, "grading/_check_output.html" if request.htmx else "grading/check_output.html", context)
