"""The queue and the list of groups: rows of one page, a constant number of queries."""

from collections import Counter

from django.core.paginator import Paginator

from grading import clock
from grading.models import Decision, Role, RolloutGroup, Run, Verdict, VerdictCandidate
from grading.review import decisions, queue
from grading.review.pages.group_page import title_of
from grading.review.pages.sitting import Held, clock_of
from grading.states import GroupState
from grading.storable import storable

PAGE = 50


def queue_page(groups, user, query: dict) -> dict:
    """Context of grading/queue.html; `groups` are those this user may see."""
    held = queue.waiting(groups)
    runs = Run.objects.filter(pk__in={w.group.run_id for w in held}).order_by("name")
    runs = {found.public_id: found for found in runs}
    reasons = sorted({w.group.hold_reason for w in held if w.group.hold_reason})
    run, because, claimed = (query.get(name, "") for name in ("run", "because", "claimed"))
    rows = [w for w in held if not run or (run in runs and w.group.run_id == runs[run].pk)]
    rows = [w for w in rows if not because or w.group.hold_reason == because]
    rows = [w for w in rows if claimed != "free" or not w.claim]
    rows = [w for w in rows if claimed != "me" or (w.claim and w.claim.reviewer_id == user.pk)]
    page = Paginator(rows, PAGE).get_page(query.get("page"))
    shown = groups.select_related("run", "task").in_bulk([w.group.pk for w in page])
    now, mine = clock.now(), _teams_to_review(user)
    return {
        "page": page,
        "rows": [_queue_row(w, shown[w.group.pk], user, now, mine) for w in page if w.group.pk in shown],
        "grading_count": groups.filter(state__in=(GroupState.COMPLETE, GroupState.GRADING)).count(),
        "filters": {
            "runs": list(runs.values()),
            "run": run,
            "reasons": reasons,
            "because": because,
            "claimed": claimed,
        },
    }


def _teams_to_review(user) -> set[int] | None:
    """Teams in which this person may decide; None for all."""
    if user.is_superuser:
        return None
    return set(user.memberships.filter(role__in=Role.at_least(Role.REVIEWER)).values_list("team_id", flat=True))


def _queue_row(w: queue.Waiting, group: RolloutGroup, user, now, mine: set[int] | None) -> dict:
    claim = w.claim and Held(w.claim.reviewer.name, w.claim.reviewer_id == user.pk, w.claim.until)
    return {
        "group": group,
        "title": title_of(group.task.statement),
        "passed": w.passed,
        "valid": w.valid,
        "priority": w.priority,
        "influence": w.influence,
        "uncertainty": w.uncertainty,
        "is_strong": w.is_strong,
        "deadline": clock_of(group, now, is_valid=w.is_valid),
        "claim": claim,
        "may_claim": not claim and (mine is None or group.run.team_id in mine),
    }


def groups_page(groups, runs, query: dict) -> dict:
    """Context of grading/groups.html: newest first, filtered."""
    run, step, task, state = (storable(query.get(name, "").strip()) for name in ("run", "step", "task", "state"))
    corrected = query.get("corrected") == "1"
    rows = groups.filter(run__public_id=run) if run else groups
    if step.isdecimal() and len(step) < 10:
        rows = rows.filter(step=int(step))
    if task:
        rows = rows.filter(task__key__icontains=task)
    if state in GroupState.values:
        rows = rows.filter(state=state)
    if corrected:
        rows = rows.filter(pk__in=Verdict.objects.filter(grader=decisions.PERSON).values("group"))
    page = Paginator(rows.order_by("-pk"), PAGE).get_page(query.get("page"))
    filters = {"run": run, "step": step, "task": task, "state": state, "corrected": corrected}
    return {
        "page": page,
        "rows": _group_rows(groups, [group.pk for group in page]),
        "filters": {
            "runs": list(runs.order_by("name")[:500]),
            "states": GroupState.choices,
            "is_set": any(filters.values()),
            **filters,
        },
    }


def _group_rows(groups, pks: list[int]) -> list[dict]:
    rows = queue.with_counts(groups.filter(pk__in=pks).select_related("run", "task")).order_by("-pk")
    decided = {d.group_id: d for d in Decision.objects.filter(group__in=pks).order_by("version")}
    verdicts = [d.verdict_id for d in decided.values() if d.verdict_id]
    placed = VerdictCandidate.objects.filter(verdict__in=verdicts).values_list("verdict_id", "tier")
    tiers = Counter(placed)
    return [
        {
            "group": group,
            "passed": group.passed,
            "valid": group.valid,
            "decision": (decision := decided.get(group.pk)),
            "tiers": [tiers[decision.verdict_id, t] for t in (1, 2, 3)] if decision and decision.verdict_id else None,
        }
        for group in rows
    ]
