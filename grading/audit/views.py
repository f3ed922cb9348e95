"""Pages of quality audits: list, new, one audit with its result, and the blind session."""

from django.conf import settings
from django.contrib import messages
from django.core.paginator import Paginator
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from grading.access import reviewer_required, viewer_required
from grading.audit import citing, figures, form, pages, pooling, reading, sessions
from grading.errors import BadInput, LeaseLost, NotAllowed
from grading.grader.graders import GRADERS
from grading.models import Audit, AuditGroup, Role, Run
from grading.models.audits import PERSON
from grading.review.posted import posted_text

PAGE = 50
MOST_RUNS = 300


@viewer_required
@require_GET
def audits(request):
    rows = Audit.objects.visible_to(request.user).select_related("team").order_by("-pk")
    page = Paginator(rows, PAGE).get_page(request.GET.get("page"))
    may_open = request.user.is_superuser or request.user.memberships.exclude(role=Role.VIEWER).exists()
    found = [pages.list_row(audit) for audit in page]
    return render(request, "grading/audits.html", {"page": page, "rows": found, "may_open": may_open})


@reviewer_required
@require_http_methods(["GET", "POST"])
def audit_new(request):
    runs = Run.objects.visible_to(request.user, Role.REVIEWER).select_related("team", "rubric").order_by("-pk")
    runs = {run.public_id: run for run in runs[:MOST_RUNS]}
    why = None
    if request.method == "POST":
        try:
            made = _opened(request, runs)
        except BadInput as e:
            why = e
        else:
            messages.success(request, "The audit is open. Who made what is told when it is revealed.")
            return redirect("audit", made.pk)
    context = {
        "runs": runs.values(),
        "arms": [_typed_arm(request, n) for n in form.ROWS],
        "graders": [PERSON, *GRADERS],
        "typed": request.POST,
        "model": settings.GAGAR_GRADER_MODEL,
        "why": why,
    }
    return render(request, "grading/audit_new.html", context, status=why.status if why else 200)


def _opened(request, runs) -> Audit:
    arms = form.read_arms({name: posted_text(request, name) for name in request.POST}, runs)
    if not arms:
        raise BadInput("no run is chosen", expected="two arms at least")
    return pooling.open_once(
        team=arms[0].run.team,
        name=posted_text(request, "name"),
        arms=arms,
        grader=posted_text(request, "grader"),
        model=posted_text(request, "model"),
        windows=form.read_windows(posted_text(request, "windows")),
        task_keys=posted_text(request, "task_keys").split(),
        task_count=form.read_count(posted_text(request, "task_count"), "how many tasks"),
        per_arm=form.read_count(posted_text(request, "per_arm"), "rollouts of an arm") or pooling.MOST_PER_ARM,
        seed=form.read_count(posted_text(request, "seed"), "the seed"),
        user=request.user,
    )


def _typed_arm(request, n: int) -> dict:
    return {"n": n} | {name: request.POST.get(f"{name}-{n}", "") for name in ("run", "name", "first", "last")}


def _audit(request, pk: int, role: str = Role.VIEWER) -> Audit:
    rows = Audit.objects.visible_to(request.user, role).select_related("team", "rubric", "created_by")
    return get_object_or_404(rows, pk=pk)


def _group(request, pk: int, code: str) -> AuditGroup:
    rows = AuditGroup.objects.visible_to(request.user, Role.REVIEWER).select_related("audit__rubric", "task")
    found = get_object_or_404(rows, audit=pk, code=code)
    if found.claimed_by != request.user.username and not found.audit.is_revealed:
        raise NotAllowed("this group is not in front of you: take the next one", where="audit")
    return found


@viewer_required
@require_GET
def audit(request, pk):
    found = _audit(request, pk)
    context = pages.audit_page(found, user=request.user)
    if found.is_revealed:
        result = reading.result_of(found)
        context |= {"result": result, "tables": figures.tables(result), "lines": figures.lines(result)}
        context |= {"groups": pages.group_links(found)}
    name = "grading/_audit_progress.html" if request.htmx and not found.is_revealed else "grading/audit.html"
    return render(request, name, context)


@reviewer_required
@require_POST
def audit_next(request, pk):
    group = sessions.next_group(_audit(request, pk, Role.REVIEWER), request.user)
    if group is None:
        messages.success(request, "Nothing is left to judge for you.")
        return redirect("audit", pk)
    return redirect("audit-group", pk, group.code)


@reviewer_required
@require_http_methods(["GET", "POST"])
def audit_group(request, pk, code):
    """A blind session. A post with `left` or `right` only looks at others; what was typed stays."""
    group = _group(request, pk, code)
    asked = request.POST if request.method == "POST" else request.GET
    session = pages.Session(group, asked.get("left", ""), asked.get("right", ""), asked.get("view") == "between")
    if request.method == "GET":
        name = "grading/_audit_pair.html" if request.htmx else "grading/audit_group.html"
        return render(request, name, session.pair() if request.htmx else session.page())
    posted = form.read_verdict({name: [posted_text(request, name)] if not name.startswith("flag-") else values
                                for name, values in request.POST.lists()}, session.letters)  # fmt: skip
    if "look" in request.POST:
        session.look(request.POST["look"])
        return render(request, "grading/audit_group.html", session.page(form.without_errors(posted)))
    try:
        if wrong := (*posted.errors, *citing.lost(posted.cited, session.workspace)):
            page = session.page(form.without_errors(posted), errors=wrong)
            return render(request, "grading/audit_group.html", page, status=BadInput.status)
        sessions.give(group, posted.said, user=request.user, notes=posted.notes)
    except (BadInput, LeaseLost) as e:
        return render(request, "grading/audit_group.html", session.page(posted, errors=(str(e),)), status=e.status)
    messages.success(request, "Your verdict is stored.")
    return audit_next(request, pk)


@reviewer_required
@require_POST
def audit_release(request, pk, code):
    sessions.release(_group(request, pk, code), user=request.user)
    return redirect("audit", pk)


@reviewer_required
@require_GET
def audit_events(request, pk, code, letter):
    start = request.GET.get("start", "")
    session = pages.Session(_group(request, pk, code))
    context = session.events(letter, int(start) if start.isdecimal() and len(start) < 8 else 0)
    name = "grading/_audit_events.html" if request.htmx else "grading/audit_events.html"
    return render(request, name, context)


@reviewer_required
@require_POST
def audit_again(request, pk):
    many = sessions.try_again(_audit(request, pk, Role.REVIEWER))
    messages.success(request, f"{many} group{'s are' if many != 1 else ' is'} judged once more.")
    return redirect("audit", pk)


@reviewer_required
@require_POST
def audit_reveal(request, pk):
    found = _audit(request, pk, Role.REVIEWER)
    may_early = request.user.may(Role.ADMIN, found.team_id)
    sessions.reveal(found, by=request.user.username, reason=posted_text(request, "reason"), may_early=may_early)
    messages.success(request, "Revealed: who made what stands below.")
    return redirect("audit", pk)
