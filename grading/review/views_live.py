"""What open pages ask again: news of a group when its socket hints that something changed, deadlines that come near."""

from django.shortcuts import render
from django.views.decorators.http import require_GET

from grading.access import viewer_required
from grading.review.pages.near import near_page
from grading.review.pages.news import news_of
from grading.review.pages.sitting import Sitting
from grading.review.views import find_group


@viewer_required
@require_GET
def news(request, pk):
    """The alerts about what the page has not seen yet. Nothing under the reader's hands is swapped."""
    sitting = Sitting(find_group(request, pk), request.user)
    context = {"group": sitting.group, "news": news_of(sitting, request.GET)}
    return render(request, "grading/_group_news.html", context)


@viewer_required
@require_GET
def near(request):
    """Held groups near their deadline, for the head of any page."""
    but = request.GET.get("but", "")
    but = int(but) if but.isdecimal() and len(but) < 19 else None
    return render(request, "grading/_near.html", near_page(request.user, but=but))
