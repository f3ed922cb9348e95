"""Teams and their members; runs with their policy and tokens."""

from django.conf import settings
from django.contrib import messages
from django.db.models import Count
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from grading import people
from grading.access import admin_required, viewer_required
from grading.errors import BadInput, Conflict
from grading.models import MachineToken, Membership, Role, Run, Team
from grading.models.people import PURPOSES
from grading.review.forms import NewRun, RunPolicy
from grading.review.pages.run_history import settings_history
from grading.review.posted import posted_text

INVITED, NEW_TOKEN = "invited", "new_token"  # shown once, then gone from the session


@viewer_required
@require_GET
def teams(request):
    found = Team.objects.visible_to(request.user).order_by("name")
    counted = found.annotate(people=Count("memberships", distinct=True), jobs=Count("runs", distinct=True))
    roles = dict(request.user.memberships.values_list("team_id", "role"))
    rows = [
        {"team": team, "role": roles.get(team.pk, "superuser"), "members": team.people, "runs": team.jobs}
        for team in counted
    ]
    may_open = request.user.is_superuser or Role.ADMIN in roles.values()
    return render(request, "grading/teams.html", {"rows": rows, "may_open": may_open})


@admin_required
@require_http_methods(["GET", "POST"])
def team_new(request):
    said, why = {name: posted_text(request, name) for name in ("name", "slug")}, None
    if request.method == "POST":
        try:
            made = people.open_team(**said, user=request.user)
        except (BadInput, Conflict) as e:
            why = e
        else:
            messages.success(request, f"{made.name} is a team now, and you are its admin.")
            return redirect("team", made.slug)
    return render(request, "grading/team_new.html", said | {"why": why}, status=why.status if why else 200)


def _team(request, slug: str, role: str = Role.VIEWER) -> Team:
    return get_object_or_404(Team.objects.visible_to(request.user, role), slug=slug)


@viewer_required
@require_GET
def team(request, slug):
    found = _team(request, slug)
    invited = request.session.get(INVITED)
    context = {
        "team": found,
        "may_admin": request.user.may(Role.ADMIN, found),
        "roles": Role.values,
        "members": found.memberships.select_related("user").order_by("user__username"),
        "runs": found.runs.order_by("-pk")[:200],
        "invited": request.session.pop(INVITED) if invited and invited["team"] == slug else None,
    }
    return render(request, "grading/team.html", context)


@admin_required
@require_POST
def member_add(request, slug):
    found = _team(request, slug, Role.ADMIN)
    username = request.POST.get("username", "").strip()
    membership, password = people.add_member(found, username=username, role=request.POST.get("role", ""))
    if password:
        request.session[INVITED] = {"team": slug, "username": username, "password": password}
    else:
        messages.success(request, f"{membership.user.username} is a member now, as {membership.role}.")
    return redirect("team", slug)


def _membership(request, slug: str, pk: int) -> Membership:
    rows = Membership.objects.visible_to(request.user, Role.ADMIN).filter(team__slug=slug)
    return get_object_or_404(rows.select_related("user", "team"), pk=pk)


@admin_required
@require_POST
def member_role(request, slug, pk):
    membership = _membership(request, slug, pk)
    people.change_role(membership, role=request.POST.get("role", ""))
    messages.success(request, f"{membership.user.username} is {request.POST['role']} now.")
    return redirect("team", slug)


@admin_required
@require_POST
def member_remove(request, slug, pk):
    membership = _membership(request, slug, pk)
    people.remove_member(membership)
    messages.success(request, f"{membership.user.username} is no longer a member.")
    return redirect("team", slug)


@admin_required
@require_http_methods(["GET", "POST"])
def run_new(request):
    teams = Team.objects.visible_to(request.user, Role.ADMIN).order_by("name")
    asked = teams.filter(slug=request.GET.get("team", "")).first() or teams.first()
    form = NewRun(request.POST or None, teams=teams, initial={"team": asked})
    if request.method == "POST" and form.is_valid():
        run = form.save(commit=False)
        token = people.open_run(run, user=request.user)
        request.session[NEW_TOKEN] = {"run": run.public_id, "token": token}
        return redirect("run-settings", run.public_id)
    return render(
        request,
        "grading/run_new.html",
        {"form": form, "grader": settings.GAGAR_GRADER},
        status=400 if form.errors else 200,
    )


def _run(request, public_id: str, role: str = Role.VIEWER) -> Run:
    rows = Run.objects.visible_to(request.user, role).select_related("team", "rubric")
    return get_object_or_404(rows, public_id=public_id)


@viewer_required
@require_http_methods(["GET", "POST"])
def run_settings(request, public_id):
    is_saving = request.method == "POST"
    run = _run(request, public_id, Role.ADMIN if is_saving else Role.VIEWER)
    form = RunPolicy(request.POST if is_saving else None, instance=run)
    if is_saving and form.is_valid():
        people.change_policy(run, policy=form.cleaned_data, user=request.user)
        messages.success(request, "The policy is saved. Groups that are complete keep theirs.")
        return redirect("run-settings", public_id)
    made = request.session.get(NEW_TOKEN)
    context = {
        "run": run,
        "form": form,
        "may_admin": request.user.may(Role.ADMIN, run.team_id),
        "tokens": run.tokens.select_related("created_by").order_by("-pk"),
        "purposes": PURPOSES,
        "history": settings_history(run),
        "new_token": request.session.pop(NEW_TOKEN)["token"] if made and made["run"] == public_id else None,
    }
    return render(request, "grading/run_settings.html", context, status=400 if form.errors else 200)


@admin_required
@require_POST
def token_new(request, public_id):
    run = _run(request, public_id, Role.ADMIN)
    name, purposes = posted_text(request, "name"), request.POST.getlist("purposes")
    token = people.new_token(run, name=name, purposes=purposes, user=request.user)
    request.session[NEW_TOKEN] = {"run": public_id, "token": token}
    return redirect("run-settings", public_id)


@admin_required
@require_POST
def token_revoke(request, public_id, pk):
    rows = MachineToken.objects.visible_to(request.user, Role.ADMIN).filter(run__public_id=public_id)
    token = get_object_or_404(rows, pk=pk)
    token.revoke()
    messages.success(request, f"Token {token.name} works no longer.")
    return redirect("run-settings", public_id)
