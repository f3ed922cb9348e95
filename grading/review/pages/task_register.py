"""Every task across steps: how often it passes, whether it always fails, is flaky or broken."""

from collections import defaultdict

from django.core.paginator import Paginator
from django.db.models import Count, Q

from grading.models import Role, TaskEvent, Trajectory
from grading.review.pages.group_page import title_of
from grading.states import Outcome
from grading.storable import storable

PAGE = 50
STEPS = 40  # newest steps drawn
ENOUGH = 8  # failed rollouts before a task is said to fail always
VALID = Q(is_late=False) & ~Q(outcome=Outcome.INFRA_INVALID)
PASSED = VALID & Q(outcome=Outcome.PASSED, integrity="")


def tasks_page(tasks, user, query: dict) -> dict:
    """Context of grading/tasks.html; `tasks` are those this user may see."""
    words, only_broken = storable(query.get("q", "").strip()[:200]), query.get("broken") == "1"
    found = tasks.filter(Q(key__icontains=words) | Q(statement__icontains=words)) if words else tasks
    found = found.filter(is_broken=True) if only_broken else found
    page = Paginator(found.select_related("team").order_by("-is_broken", "key"), PAGE).get_page(query.get("page"))
    return {"page": page, "query": words, "only_broken": only_broken, "rows": _rows(list(page), user)}


def _rows(tasks: list, user) -> list[dict]:
    pks = [task.pk for task in tasks]
    rollouts = Trajectory.objects.filter(group__task__in=pks)
    steps = defaultdict(list)
    counted = rollouts.values("group__task", "group__step")
    counted = counted.annotate(
        groups=Count("group", distinct=True), valid=Count("pk", VALID), passed=Count("pk", PASSED)
    )
    for row in counted.order_by("group__task", "group__step"):
        steps[row["group__task"]].append(row)
    flaky = _flaky(rollouts)
    marks = {event.task_id: event for event in TaskEvent.objects.filter(task__in=pks).order_by("pk")}
    mine = user.memberships.filter(role__in=Role.at_least(Role.REVIEWER)).values_list("team_id", flat=True)
    may = set(mine)
    return [
        _row(task, steps[task.pk], marks.get(task.pk), task.pk in flaky, user.is_superuser or task.team_id in may)
        for task in tasks
    ]


def _flaky(rollouts) -> set[int]:
    """Tasks in which one and the same patch passed and failed."""
    same = rollouts.filter(VALID).exclude(patch="").values("group__task", "patch")
    both = same.annotate(
        passed=Count("pk", Q(outcome=Outcome.PASSED)), failed=Count("pk", Q(outcome=Outcome.FAILED))
    ).filter(passed__gt=0, failed__gt=0)
    return set(both.values_list("group__task", flat=True))


def _row(task, steps: list[dict], mark: TaskEvent | None, is_flaky: bool, may_change: bool) -> dict:
    valid, passed = (sum(row[name] for row in steps) for name in ("valid", "passed"))
    return {
        "task": task,
        "title": title_of(task.statement),
        "groups": sum(row["groups"] for row in steps),
        "rollouts": valid,
        "pass_rate": passed / valid if valid else None,
        "rates": [row["passed"] / row["valid"] if row["valid"] else None for row in steps[-STEPS:]],
        "always_fails": passed == 0 and valid >= ENOUGH,
        "is_flaky": is_flaky,
        "broken_by": mark.by if mark else "",
        "broken_reason": mark.reason if mark else "",
        "may_change": may_change,
    }
