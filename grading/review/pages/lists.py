"""The queue: rows of one page, a constant number of queries."""

from django.core.paginator import Paginator
from django.db.models import Q

from grading import clock
from grading.models import Review, ReviewClaim, Role, Run
from grading.review import queue
from grading.review.pages.group_page import title_of
from grading.review.pages.sitting import Held, clock_of
from grading.review.rounds import Round, Turn
from grading.states import GroupState
from grading.storable import storable

PAGE = 50


def queue_page(groups, user, query: dict) -> dict:
    """Context of grading/queue.html; `groups` are those this user may see. A page reads its own rows only."""
    held = queue.ordered(groups)
    runs = {run.public_id: run for run in Run.objects.filter(pk__in=_distinct(held, "run")).order_by("name")}
    run, because, claimed = (storable(query.get(name, "")) for name in ("run", "because", "claimed"))
    rows = _filtered(held, user, run=runs.get(run) if run else None, is_run=bool(run), because=because, claimed=claimed)
    page = Paginator(rows.select_related("run", "task"), PAGE).get_page(query.get("page"))
    now, mine = clock.now(), teams_to_review(user)
    shown = queue.rows_of(list(page))
    return {
        "page": page,
        "rows": [_queue_row(w, user, now, mine) for w in shown],
        "grading_count": groups.filter(state__in=(GroupState.COMPLETE, GroupState.GRADING)).count(),
        "filters": {
            "runs": list(runs.values()),
            "run": run,
            "reasons": sorted(filter(None, _distinct(held, "hold_reason").values_list("hold_reason", flat=True))),
            "because": because,
            "claimed": claimed,
        },
    }


def _distinct(held, field: str):
    return held.order_by().values(field).distinct()


def _filtered(held, user, *, run: Run | None, is_run: bool, because: str, claimed: str):
    rows = held.filter(run=run) if is_run else held
    if because:
        rows = rows.filter(hold_reason=because)
    now = clock.now()
    claims = ReviewClaim.objects.filter(reviewer=user, until__gte=now)
    seats = Review.objects.filter(reviewer=user, state=Review.State.OPEN, until__gte=now)
    mine = Q(pk__in=claims.values("group")) | Q(pk__in=seats.values("group"))
    if claimed == "free":
        rows = queue.open_to(rows, user).exclude(mine)
    return rows.filter(mine) if claimed == "me" else rows


def teams_to_review(user) -> set[int] | None:
    """Teams in which this person may decide; None for all."""
    if user.is_superuser:
        return None
    return set(user.memberships.filter(role__in=Role.at_least(Role.REVIEWER)).values_list("team_id", flat=True))


def _queue_row(w: queue.Waiting, user, now, mine: set[int] | None) -> dict:
    group, found = w.group, Round(w.group, w.reviews, now)
    claim = w.claim and Held(w.claim.reviewer.name, w.claim.reviewer_id == user.pk, w.claim.until)
    is_reviewer = mine is None or group.run.team_id in mine
    turn = found.turn(user) if is_reviewer else Turn.DECIDE
    own = found.mine(user)
    seats = [row for row in found.seated(apart_from=user) if row.state == Review.State.OPEN] if found.is_shared else []
    is_seated = bool(found.is_shared and own and own.state == Review.State.OPEN and own.until and own.until >= now)
    if found.is_shared and not found.is_complete:
        may_claim = turn in (Turn.REVIEW, Turn.BLIND) and found.has_seat_for(user) and not is_seated
    else:
        may_claim = not claim and turn in (Turn.DECIDE, Turn.THIRD, Turn.AGREED, Turn.BLIND)
    return {
        "group": group,
        "title": title_of(group.task.statement),
        "passed": w.passed,
        "valid": w.valid,
        "priority": w.priority,
        "is_hidden": is_reviewer and found.hides_verdict(user),
        "is_strong": w.is_strong,
        "deadline": clock_of(group, now, is_valid=w.is_valid),
        "claim": Held(user.name, True, own.until) if is_seated else claim,
        "seats": [row.reviewer.name for row in seats],
        "round_words": _round_words(found, turn),
        "is_declined": bool(own and own.state == Review.State.DECLINED),
        "may_claim": may_claim and is_reviewer,
    }


def _round_words(found: Round, turn: Turn) -> str:
    if not found.is_shared:
        return ""
    words = f"{len(found.submitted)} of {found.group.reviews_wanted} reviews"
    if found.is_complete:
        words += ", they differ" if found.differs else ", they agree"
    return f"{words}, yours is in" if turn == Turn.WAIT else words
