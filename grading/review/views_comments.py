"""What people say about a group."""

from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from grading.access import reviewer_required
from grading.models import Role
from grading.review import comments
from grading.review.posted import posted_text
from grading.review.views import find_group


@reviewer_required
@require_POST
def comment(request, pk):
    comments.add(find_group(request, pk, Role.REVIEWER), user=request.user, text=posted_text(request, "text"))
    return redirect(f"{reverse('group', args=[pk])}#comments")
