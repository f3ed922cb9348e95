"""What people reviewed: one person's finished reviews, and a run's."""

from django.http import Http404
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET

from grading.access import viewer_required
from grading.models import Review, Run, Team, User
from grading.review.pages import reviewers


@viewer_required
@require_GET
def mine(request):
    return redirect("reviewer", request.user.pk)


@viewer_required
@require_GET
def reviewer(request, pk):
    """Somebody of one's own teams; what they did elsewhere is not shown."""
    person = get_object_or_404(User, pk=pk)
    teams = Team.objects.visible_to(request.user)
    if person != request.user and not person.memberships.filter(team__in=teams.values("pk")).exists():
        raise Http404("nobody of your teams")
    reviews = Review.objects.visible_to(request.user)
    context = reviewers.reviewer_page(person, reviews, request.GET, reader=request.user)
    return render(request, "grading/reviewer.html", context)


@viewer_required
@require_GET
def run_reviews(request, public_id):
    run = get_object_or_404(Run.objects.visible_to(request.user).select_related("team"), public_id=public_id)
    return render(request, "grading/run_reviews.html", reviewers.run_page(run))
