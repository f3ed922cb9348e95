"""Every task across steps: how often it passes lately, whether it always fails, is flaky or broken."""

from collections import Counter, defaultdict
from functools import reduce
from operator import or_

from django.core.paginator import Paginator
from django.db.models import Count, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce

from grading.models import Role, RolloutGroup, Task, TaskEvent, Trajectory
from grading.review.pages.group_page import title_of
from grading.states import Outcome
from grading.storable import storable

PAGE = 50
NEWEST = 40  # groups of a task that its numbers are counted from
ENOUGH = 8  # failed rollouts before a task is said to fail always
VALID = Q(is_late=False) & ~Q(outcome=Outcome.INFRA_INVALID)
PASSED = VALID & Q(outcome=Outcome.PASSED, integrity="")


def tasks_page(tasks, user, query: dict) -> dict:
    """Context of grading/tasks.html; `tasks` are those this user may see."""
    words, only_broken = storable(query.get("q", "").strip()[:200]), query.get("broken") == "1"
    found = tasks.filter(Q(key__icontains=words) | Q(statement__icontains=words)) if words else tasks
    found = found.filter(is_broken=True) if only_broken else found
    page = Paginator(found.select_related("team").order_by("-is_broken", "key"), PAGE).get_page(query.get("page"))
    return {
        "page": page,
        "query": words,
        "only_broken": only_broken,
        "newest": NEWEST,
        "rows": rows_of(list(page), user),
    }


def rows_of(tasks: list, user) -> list[dict]:
    pks = [task.pk for task in tasks]
    totals, newest = newest_groups(pks)
    steps, flaky = by_step(newest), _flaky(newest)
    marks = {event.task_id: event for event in TaskEvent.objects.filter(task__in=pks).order_by("pk")}
    mine = user.memberships.filter(role__in=Role.at_least(Role.REVIEWER)).values_list("team_id", flat=True)
    may = set(mine)
    rows = []
    for task in tasks:
        row = _row(task, [counts for _, counts in sorted(steps[task.pk].items())], marks.get(task.pk))
        row |= {"groups": totals[task.pk], "is_flaky": task.pk in flaky}
        rows.append(row | {"may_change": user.is_superuser or task.team_id in may})
    return rows


def newest_groups(tasks: list[int]) -> tuple[dict[int, int], dict[int, tuple[int, int]]]:
    """Task -> number of groups; group -> (task, step) of the newest: rollouts of old ones are not read."""
    mine = RolloutGroup.objects.filter(task=OuterRef("pk"))
    total = Coalesce(Subquery(mine.order_by().values("task").annotate(n=Count("pk")).values("n")), 0)
    nth = Subquery(mine.order_by("-pk").values("pk")[NEWEST - 1 : NEWEST])
    counted = list(Task.objects.filter(pk__in=tasks).annotate(total=total, nth=nth).values_list("pk", "total", "nth"))
    newest = [Q(task=task, pk__gte=nth or 0) for task, _, nth in counted]
    found = RolloutGroup.objects.filter(reduce(or_, newest, Q(pk__in=())))
    placed = {pk: (task, step) for pk, task, step in found.values_list("pk", "task", "step")}
    return {task: total for task, total, _ in counted}, placed


def by_step(groups: dict[int, tuple[int, int]]) -> dict[int, dict[int, Counter]]:
    """Task -> step -> how many valid rollouts, and how many of them passed."""
    steps = defaultdict(lambda: defaultdict(Counter))
    for group, (valid, passed) in counted(groups).items():
        task, step = groups[group]
        steps[task][step] += Counter(valid=valid, passed=passed)
    return steps


def counted(groups: dict[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """Group -> how many valid rollouts it has, and how many of them passed."""
    rollouts = Trajectory.objects.filter(group__in=groups.keys()).order_by().values("group")
    rows = rollouts.annotate(valid=Count("pk", VALID), passed=Count("pk", PASSED))
    return {group: (valid, passed) for group, valid, passed in rows.values_list("group", "valid", "passed")}


def _flaky(groups: dict[int, tuple[int, int]]) -> set[int]:
    """Tasks in which one and the same patch passed and failed."""
    return set(_both(groups).values_list("group__task", flat=True))


def patches_of_both(groups: dict[int, tuple[int, int]]) -> list[str]:
    """Patches that passed once and failed once."""
    return list(_both(groups).values_list("patch", flat=True))


def _both(groups: dict[int, tuple[int, int]]):
    same = Trajectory.objects.filter(VALID, group__in=groups.keys()).exclude(patch="").order_by()
    both = same.values("group__task", "patch").annotate(
        passed=Count("pk", Q(outcome=Outcome.PASSED)), failed=Count("pk", Q(outcome=Outcome.FAILED))
    )
    return both.filter(passed__gt=0, failed__gt=0)


def _row(task: Task, steps: list[Counter], mark: TaskEvent | None) -> dict:
    valid, passed = (sum(row[name] for row in steps) for name in ("valid", "passed"))
    return {
        "task": task,
        "title": title_of(task.statement),
        "rollouts": valid,
        "pass_rate": passed / valid if valid else None,
        "rates": [row["passed"] / row["valid"] if row["valid"] else None for row in steps],
        "always_fails": passed == 0 and valid >= ENOUGH,
        "broken_by": mark.by if mark else "",
        "broken_reason": mark.reason if mark else "",
    }
