"""What one person reviewed, and what a run's reviews say: who did how much, how near orders stand, who was told."""

from collections import defaultdict

from django.core.paginator import Paginator

from grading.models import Notice, Review, Run, User
from grading.review import blind
from grading.review.effort import effort_of
from grading.review.pages.group_page import title_of
from grading.states import OPEN

PAGE = 50
NEWEST = 1_000  # reviews that the sums are made of
MOST_NOTICES = 20


def reviewer_page(person: User, reviews, query: dict, *, reader: User) -> dict:
    """Context of grading/reviewer.html; `reviews` are those of any person that the reader may see.

    Answers about groups that still wait are shown to nobody but who gave them: others answer those alone.
    """
    done = reviews.filter(reviewer=person, state=Review.State.SUBMITTED).order_by("-submitted_at", "-pk")
    done = done if person == reader else done.exclude(group__state__in=OPEN)
    page = Paginator(done.select_related("group__run", "group__task"), PAGE).get_page(query.get("page"))
    return {
        "person": person,
        "effort": effort_of(list(done[:NEWEST])),
        "newest": NEWEST,
        "page": page,
        "rows": [_row(row) for row in page],
    }


def _row(row: Review) -> dict:
    said = "let it fall back"
    if row.answer:
        said = "changed it" if row.answer.get("is_changed") else "found it right"
    return {
        "group": row.group,
        "title": title_of(row.group.task.statement),
        "at": row.submitted_at,
        "minutes": None if row.attention_s is None else row.attention_s / 60,
        "said": said,
        "is_blind": row.is_blind,
    }


def run_page(run: Run) -> dict:
    """Context of grading/run_reviews.html."""
    done = Review.objects.filter(group__run=run, state=Review.State.SUBMITTED).select_related("reviewer")
    done = done.exclude(group__state__in=OPEN)  # others still answer alone
    by_person = defaultdict(list)
    for row in done.order_by("-pk")[:NEWEST]:
        by_person[row.reviewer].append(row)
    people = [{"person": person, "effort": effort_of(rows)} for person, rows in by_person.items()]
    return {
        "run": run,
        "people": sorted(people, key=lambda row: (-row["effort"].reviews, row["person"].name)),
        "newest": NEWEST,
        "anchoring": blind.anchoring(run),
        "notices": Notice.objects.filter(run=run).order_by("-pk")[:MOST_NOTICES],
    }
