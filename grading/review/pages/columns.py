"""What stands above and beside the two diffs: tabs, heads, test results, checks, signals."""

from collections.abc import Iterable

from django.urls import reverse

from grading.models import Check, Signal, Trajectory
from grading.review.diffs.facts import size_words
from grading.review.diffs.text import visible
from grading.review.pages import evidence
from grading.review.pages.look import Look
from grading.review.pages.sitting import FAILING, Sitting

TABS = (
    ("diff", "Diff", "d"),
    ("interdiff", "Interdiff", "i"),
    ("events", "Trajectory", "t"),
    ("tests", "Tests", "s"),
    ("checks", "Checks", "h"),
)
FAILING_BESIDE = 20
EQUAL_TESTS = 50
MOST_TESTS = 5_000
NOBODY = {"letter": "", "outcome": "", "integrity": "", "tier": None, "files": (), "notes": (), "signals": ()}


def tabs(pair: Iterable[Trajectory | None], signals: list[Signal], checks: list[Check], look: Look) -> list[dict]:
    results = {test["name"] for t in pair if t for test in t.tests}
    counts = {"tests": len(results), "checks": len(signals) + len(checks)}
    return [
        {"key": key, "label": label, "shortcut": shortcut, "count": counts.get(key), "href": look.href(tab=key)}
        for key, label, shortcut in TABS
    ]


def head(sitting: Sitting, trajectory: Trajectory | None) -> dict:
    """What every tab says above a column."""
    if trajectory is None:
        no_patch = "The rollouts have no letters yet: they get them when the group is complete."
        return {**NOBODY, "no_patch_words": no_patch, "no_events_words": no_patch}
    tier = next((p.tier for p in sitting.placements if p.trajectory_id == trajectory.pk), None)
    return {
        "letter": trajectory.letter,
        "outcome": trajectory.outcome,
        "integrity": trajectory.integrity,
        "tier": tier,
        "has_events": bool(trajectory.event_count),
        "events_words": "events: none given" if trajectory.event_count is None else f"{trajectory.event_count} events",
        "no_events_words": no_events_words(trajectory),
    }


def no_events_words(trajectory: Trajectory) -> str:
    if trajectory.raw_body:
        return "Its trajectory is kept raw: it has a format that is not read yet."
    return "Events: none given." if trajectory.event_count is None else "The trajectory that was given has no event."


def checks_of(left: Trajectory | None, right: Trajectory | None) -> list[Check]:
    """The targeted checks of both candidates, and those of the base."""
    one = left or right
    if one is None:
        return []
    shown = {t.pk for t in (left, right) if t}
    return [check for check in one.group.checks.all() if check.trajectory_id is None or check.trajectory_id in shown]


def checks_column(
    sitting: Sitting, trajectory: Trajectory | None, signals: list[Signal], checks: list[Check], shown
) -> dict:
    column = head(sitting, trajectory)
    if trajectory is None:
        return column
    mine = [signal for signal in signals if signal.trajectory_id == trajectory.pk]
    rows = evidence.signal_rows(sitting, trajectory, mine, shown)
    words = f"{len(rows)} signal{'s' * (len(rows) != 1)}" if trajectory.group.inspected_at else "not inspected yet"
    ran = check_rows(sitting, trajectory, checks)
    if ran:
        words = f"{len(ran)} check{'s' * (len(ran) != 1)}, {words}"
    return column | {"signals": rows, "checks": ran, "checks_words": words}


def check_rows(sitting: Sitting, trajectory: Trajectory, checks: list[Check]) -> list[dict]:
    """A candidate's checks, then those of the base; what a check printed is loaded when it is asked for."""
    mine = [check for check in checks if check.trajectory_id == trajectory.pk]
    return [_check(sitting, check) for check in [*mine, *(c for c in checks if c.trajectory_id is None)]]


def _check(sitting: Sitting, check: Check) -> dict:
    argv = check.asked.get("argv") if isinstance(check.asked, dict) else None
    return {
        "name": check.name,
        "of": "base" if check.trajectory_id is None else "",
        "outcome": check.outcome,
        "words": visible(sitting.lettered(check.words)),
        "argv": visible(sitting.lettered(" ".join(map(str, argv or ())))[:300]),
        "duration": f"{check.duration_s:.1f} s",
        "output_url": reverse("check-output", args=[sitting.group.pk, check.pk]) if check.output else "",
        "output_words": size_words(check.output_bytes),
    }


def beside(sitting: Sitting, trajectory: Trajectory | None, checks: list[Check], look: Look) -> dict:
    """Results in the head of a diff: in a few words, and in full where the reader wants them beside it."""
    if trajectory is None:
        return {}
    failing = [test for test in trajectory.tests if test.get("status") in FAILING]
    ran = check_rows(sitting, trajectory, checks)
    words = []
    if trajectory.tests:
        many = f"{len(trajectory.tests):,} test{'s' * (len(trajectory.tests) != 1)}"
        words.append(f"{len(failing)} of {many} fail{'s' * (len(failing) == 1)}" if failing else f"{many}, none fails")
    if ran:
        words.append(f"{sum(check['outcome'] == 'passed' for check in ran)} of {len(ran)} checks passed")
    found = {"results_words": ", ".join(words) or "no test results"}
    if look.has_results:
        tests = [
            {"name": visible(str(test["name"])), "message": visible(str(test.get("message") or "")[:500])}
            for test in failing[:FAILING_BESIDE]
        ]
        found |= {"failing": tests, "more_failing": len(failing) - len(tests), "checks": ran}
    return found


def results(left: Trajectory | None, right: Trajectory | None, *, show_all: bool) -> dict:
    """Both candidates' tests in one table, those that differ first."""
    sides = [{test["name"]: test for test in t.tests} if t else {} for t in (left, right)]
    names = list(dict.fromkeys([*sides[0], *sides[1]]))
    rows = []
    for name in names:
        one, other = (side.get(name, {}) for side in sides)
        differs = one.get("status") != other.get("status")
        message = one.get("message") or other.get("message") or ""
        rows.append(
            {
                "name": visible(str(name)),
                "left": one.get("status"),
                "right": other.get("status"),
                "differs": differs,
                "message": visible(str(message)[:500]),
            }
        )
    differing = [row for row in rows if row["differs"]]
    equal = [row for row in rows if not row["differs"]]
    kept = equal[: MOST_TESTS if show_all else EQUAL_TESTS]
    many = f"{len(rows)} test{'s' * (len(rows) != 1)}"
    words = f"differ on {len(differing)} of {many}" if differing else f"agree on all {many}" if rows else ""
    if rows and not all(sides):
        words = f"cannot be compared: one of them reported no tests, the other {many}"
    return {"words": words, "rows": [*differing[:MOST_TESTS], *kept], "more": len(equal) - len(kept)}
