"""One task: what it asks, what it stands on, how often it passes by step, its newest groups, its history."""

from django.utils.safestring import mark_safe

from grading import bodies
from grading.models import Role, RolloutGroup, Task, Trajectory
from grading.review.diffs import Patch, RowOptions, file_head_html, file_rows_html, parse_patch
from grading.review.pages import task_register
from grading.review.pages.ansi import to_html
from grading.review.pages.compare import says
from grading.review.pages.group_page import title_of

STATEMENT_CHARS = 200_000
PATCH_BYTES = 2_000_000
ROWS = 2_000  # of the reference patch that are drawn


def task_page(task: Task, user) -> dict:
    """Context of grading/task.html; only the newest groups are counted, so that nothing grows with the run."""
    [row] = task_register.rows_of([task], user)
    _, placed = task_register.newest_groups([task.pk])
    steps = task_register.by_step(placed)[task.pk]
    return (
        row
        | {
            "title": title_of(task.statement),
            "statement": mark_safe(to_html(task.statement[:STATEMENT_CHARS])),  # noqa: S308  (ansi escapes)
            "is_cut": len(task.statement) > STATEMENT_CHARS,
            "steps": [_step(step, counts) for step, counts in sorted(steps.items(), reverse=True)],
            "newest": task_register.NEWEST,
            "newest_groups": _groups(placed),
            "both": _both(placed),
            "events": task.events.order_by("-pk")[:200],
            "reference": _reference(task),
            "may_change": user.may(Role.REVIEWER, task.team_id),
        }
    )


def _step(step: int, counts) -> dict:
    valid, passed = counts["valid"], counts["passed"]
    return {"step": step, "valid": valid, "passed": passed, "rate": passed / valid if valid else None}


def _groups(placed: dict[int, tuple[int, int]]) -> list[RolloutGroup]:
    rows = RolloutGroup.objects.filter(pk__in=placed).select_related("run").order_by("-pk")
    counted = task_register.counted(placed)
    for group in rows:
        group.valid, group.passed = counted.get(group.pk, (0, 0))
    return list(rows)


def _both(placed: dict[int, tuple[int, int]]) -> list[Trajectory]:
    """Two rollouts of one and the same patch, one passed and one failed: why the task is called flaky."""
    patches = task_register.patches_of_both(placed)
    rows = Trajectory.objects.filter(task_register.VALID, group__in=placed, patch__in=patches)
    return list(rows.select_related("group__run").order_by("patch", "pk")[:20])


def _reference(task: Task) -> dict | None:
    if not task.reference_patch:
        return None
    raw = bodies.read_bytes(task.reference_patch)
    if len(raw) > PATCH_BYTES:
        return {"bytes": len(raw), "files": [], "words": "It is too long to be drawn here."}
    patch = parse_patch(raw)
    words = "" if patch.files else "It has no file that can be read as a patch."
    return {"bytes": len(raw), "files": _files(patch), "words": words}


def _files(patch: Patch) -> list[dict]:
    files, left = [], ROWS
    for index, file in enumerate(patch.files):
        options = RowOptions("reference", index, caption=f"reference patch, {file.path}", max_rows=max(left, 0))
        html = file_rows_html(file, cited={}, options=options) if file.hunks and left > 0 else ""
        left -= file.line_count
        files.append({"head": mark_safe(file_head_html(file)), "html": mark_safe(html), "says": says(file)})  # noqa: S308
    return files
