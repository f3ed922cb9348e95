"""The review page and its actions. A view finds the row, calls one step and shows what came of it."""

from contextlib import contextmanager

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import trigger_client_event

from grading.access import reviewer_required, viewer_required
from grading.errors import BadInput, Conflict, GradingError, Overtaken
from grading.models import ReviewClaim, Role, RolloutGroup
from grading.review import corrections, drafts, findings, queue, refusal_words, reviews
from grading.review.correction_form import read_citations, read_form
from grading.review.pages import answers
from grading.review.pages.group_page import group_page, may, verdict_words
from grading.review.pages.ranking import ranking
from grading.review.pages.sitting import Sitting
from grading.review.posted import attention_of, posted_text

MOST_PROBLEMS = 6
WITH_ROWS = ("run__team", "run__rubric", "task__repository", "rubric", "life")


def find_group(request: HttpRequest, pk: int, role: str = Role.VIEWER, with_rows=WITH_ROWS) -> RolloutGroup:
    rows = RolloutGroup.objects.visible_to(request.user, role).select_related(*with_rows)
    return get_object_or_404(rows, pk=pk)


def group_to_decide(request: HttpRequest, pk: int) -> RolloutGroup:
    """The group, for somebody who may decide and whom nobody else's claim stops."""
    group = find_group(request, pk, Role.REVIEWER, with_rows=("run", "task"))
    ReviewClaim.refuse_others(group, request.user)
    return group


def refuse_stale(request: HttpRequest, group: RolloutGroup) -> None:
    """Raise Conflict where the page that is posted from has not seen the group's newest decision."""
    seen = request.POST.get("version", "")
    if seen and seen != str(group.version):
        last = group.decisions.order_by("-version").first()
        shown = "no decision" if seen == "0" else f"version {seen[:10]}"
        raise Conflict(
            f"group {group.key} was decided meanwhile, by {last.by}: version {group.version}, {last.kind}, counts now. "
            f"Your page still showed {shown}. Open the group again, and decide anew if something else should count"
        )


@contextmanager
def by_letters(sitting: Sitting):
    """A refusal names rollouts by their letters while the group is undecided."""
    try:
        yield
    except GradingError as e:
        e.what = sitting.lettered(e.what)
        e.got, e.expected = (value if value is None else sitting.lettered(str(value)) for value in (e.got, e.expected))
        raise


@viewer_required
@require_GET
def group(request, pk):
    sitting = Sitting(find_group(request, pk), request.user)
    return render(request, "grading/group.html", group_page(sitting, query=request.GET))


@reviewer_required
@require_POST
def draft(request, pk):
    """The ranking as it would stand with the posted edits. Nothing is saved."""
    sitting = Sitting(find_group(request, pk, Role.REVIEWER), request.user)
    posted = read_form(dict(request.POST.lists()))
    made = drafts.draft_of(sitting.standing, posted) if sitting.standing else None
    context = {"group": sitting.group, "verdict": verdict_words(sitting)}
    sides = {side: {"letter": request.POST.get(side, "")} for side in ("left", "right")}
    # The fields stay fields, whoever claimed the group meanwhile: a disabled one would not be posted.
    context |= sides | may(sitting) | ranking(sitting, made, posted) | {"may_edit": True}
    drawn = render(request, "grading/_ranking.html", context)
    # The panel of advantages writes into the cards, so it comes after them.
    return trigger_client_event(drawn, "ranking-drawn", after="settle")


@reviewer_required
@require_http_methods(["GET", "POST"])
def correct(request, pk):
    if request.method == "GET":  # links of a page that was refused start here
        return redirect(f"{reverse('group', args=[pk])}?{request.GET.urlencode()}")
    sitting = Sitting(find_group(request, pk, Role.REVIEWER), request.user)
    posted = read_form(dict(request.POST.lists()))
    saved, answer = _saved(request, sitting, posted, reviews.correct)
    if saved:
        messages.success(request, f"Your correction is saved, and decides nothing yet: {saved.said_by}, just now.")
    return answer


@reviewer_required
@require_http_methods(["GET", "POST"])
def review(request, pk):
    """Hand in one's own independent review: edits, or the ranking as it stands where `right` is pressed."""
    if request.method == "GET":
        return redirect("group", pk)
    sitting = Sitting(find_group(request, pk, Role.REVIEWER), request.user)
    posted = read_form(dict(request.POST.lists()))
    saved, answer = _saved(request, sitting, posted, reviews.submit, is_right=request.POST.get("right") == "1")
    if saved:
        messages.success(request, "Your review is in. It stays as it is, and so do the others'.")
    return answer


def _saved(request, sitting: Sitting, posted, step, **said) -> tuple[object | None, HttpResponse]:
    """Hand a form's edits to a step: what it saved, and the page that answers."""
    if sitting.standing is None:
        raise Conflict(f"group {sitting.group.key} has no verdict to correct")
    made = drafts.draft_of(sitting.standing, posted)
    if made.errors:
        return None, _not_saved(request, sitting, posted, made.errors, status=BadInput.status)
    edits = {"scores": made.scores, "flags": made.flags, "order": made.order, "citations": made.citations}
    said |= {"user": request.user, "reason": posted.reason, "attention_s": attention_of(request)}
    try:
        saved = step(sitting.group, parent=posted.verdict, **edits, **said)
    except Overtaken:
        return None, _overtaken(request, sitting, posted)
    except BadInput as e:
        return None, _not_saved(request, sitting, posted, _sentences(e, sitting), status=e.status)
    except Conflict as e:  # somebody holds the group by now: what was typed stays in the fields
        return None, _not_saved(request, sitting, posted, (str(e),), status=e.status)
    return saved, redirect("group", sitting.group.pk)


def _shown(request) -> dict[str, str]:
    """What stood in the workbench of the page that posts, so that the answer shows the same."""
    return {name: request.POST.get(name, "") for name in ("left", "right", "tab")}


def _sentences(refused: BadInput, sitting: Sitting) -> tuple[str, ...]:
    """A refusal that lists problems, one a line."""
    if not isinstance(refused, corrections.NotValid):
        return (str(refused),)
    said = refusal_words.sentences(refused.problems, refused.reply, refused.material, sitting.letter_of)
    more = len(said) - MOST_PROBLEMS
    return (*said[:MOST_PROBLEMS], *([f"And {more} problems more."] if more > 0 else []))


def _not_saved(request, sitting: Sitting, posted, errors: tuple[str, ...], *, status: int) -> HttpResponse:
    made = drafts.draft_of(sitting.standing, posted)
    context = group_page(sitting, query=_shown(request), draft=made, posted=posted, errors=errors) | {"may_edit": True}
    return render(request, "grading/group.html", context, status=status)


def _overtaken(request, sitting: Sitting, posted) -> HttpResponse:
    """Both versions on one page: the newer verdict, and over it what this person changed."""
    newest = Sitting(find_group(request, sitting.group.pk), request.user)
    seen = next((v for v in newest.verdicts if v.pk == posted.verdict), None)
    if seen is not None:
        was = drafts.stand(newest.group, verdict=seen, trajectories=newest.trajectories)
        posted = drafts.rebased(posted, seen=was, newest=newest.standing)
    made = drafts.draft_of(newest.standing, posted)
    conflict = answers.conflict_table(newest, seen, made, posted.reason)
    context = group_page(newest, query=_shown(request), draft=made, posted=posted, conflict=conflict)
    return render(request, "grading/group.html", context, status=Conflict.status)


@reviewer_required
@require_POST
def approve(request, pk):
    found = group_to_decide(request, pk)
    refuse_stale(request, found)
    seen = request.POST.get("verdict", "")
    if not (seen.isdecimal() and len(seen) < 19):
        raise BadInput(
            "no verdict to approve", got=seen[:40] or "nothing", expected="the number of the verdict you saw"
        )
    try:
        decision = reviews.approve(found, seen_verdict=int(seen), user=request.user, attention_s=attention_of(request))
    except Overtaken:
        newest = Sitting(found, request.user)
        was = next((v for v in newest.verdicts if v.pk == int(seen)), None)
        context = group_page(newest, query=request.GET, conflict=answers.conflict_table(newest, was, None, ""))
        return render(request, "grading/group.html", context, status=Conflict.status)
    messages.success(request, f"Approved: version {decision.version} of {found.task.key} counts.")
    return redirect("group", pk)


@reviewer_required
@require_POST
def fall_back(request, pk):
    found = group_to_decide(request, pk)
    refuse_stale(request, found)
    said = {"reason": posted_text(request, "reason"), "attention_s": attention_of(request)}
    decision = reviews.fall_back(found, user=request.user, **said)
    messages.success(request, f"No verdict counts: version {decision.version} carries the outcome advantages.")
    return redirect("group", pk)


@reviewer_required
@require_POST
def leak(request, pk):
    """Confirm a leak or a hack of one candidate, or take a confirmed one back."""
    sitting = Sitting(group_to_decide(request, pk), request.user)
    letter, kind = request.POST.get("letter", ""), request.POST.get("kind", "")
    reason, trajectory = posted_text(request, "reason"), sitting.by_letter.get(letter)
    if trajectory is None:
        raise BadInput("no such candidate", got=letter[:10] or "nothing", expected=", ".join(sorted(sitting.by_letter)))
    with by_letters(sitting):
        if kind:
            finding = findings.confirm(
                trajectory, kind=kind, reason=reason, citations=_places(request, trajectory), user=request.user
            )
        else:
            finding = findings.withdraw(trajectory, reason=reason, user=request.user)
    said = f"{letter} is confirmed: {finding.kind}" if finding.kind else f"The finding about {letter} is withdrawn"
    messages.success(request, f"{said}. The group counts anew.")
    return redirect("group", pk)


def _places(request, trajectory) -> list:
    fields = dict(request.POST.lists()) | {"cite-1-letter": [trajectory.external_id], "cite-1-about": [""]}
    rows = read_citations(fields)
    for row in rows:
        if row.error:
            raise BadInput("the place cannot be read", got=row.place[:80], expected=row.error)
    return [row.citation for row in rows]


@reviewer_required
@require_POST
def broken(request, pk):
    """Quarantine the group's task: its evaluation is broken."""
    found = group_to_decide(request, pk)
    findings.quarantine(found.task, reason=posted_text(request, "reason"), user=request.user, group=found)
    messages.success(request, f"Task {found.task.key} is quarantined; this group does not train.")
    return redirect("group", pk)


@reviewer_required
@require_POST
def count(request, pk):
    """Let one of the independent reviews count."""
    found = group_to_decide(request, pk)
    asked = request.POST.get("review", "")
    asked = int(asked) if asked.isdecimal() and len(asked) < 19 else 0
    with by_letters(Sitting(found, request.user)):
        decision = reviews.count(found, review=asked, user=request.user)
    messages.success(request, f"It counts: version {decision.version} of {found.task.key}.")
    return redirect("group", pk)


@reviewer_required
@require_POST
def decline(request, pk):
    reviews.decline(find_group(request, pk, Role.REVIEWER), user=request.user)
    messages.success(request, "Declined: the queue does not offer you this group again.")
    return redirect("queue")


@reviewer_required
@require_POST
def claim(request, pk):
    queue.claim(find_group(request, pk, Role.REVIEWER), user=request.user)
    return redirect("group", pk)


@reviewer_required
@require_POST
def release(request, pk):
    queue.release(find_group(request, pk, Role.REVIEWER), user=request.user)
    messages.success(request, "Released: somebody else can take it now.")
    return redirect("queue")
