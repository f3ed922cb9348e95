"""The two candidates side by side: files of a diff closed until they are wanted, results, checks, trajectories."""

from django.urls import reverse
from django.utils.safestring import mark_safe

from grading.models import Signal, Trajectory
from grading.review.diffs import (
    FilePatch,
    RowOptions,
    closed_words,
    file_head_html,
    file_rows_html,
    header_facts,
)
from grading.review.diffs.facts import size_words
from grading.review.diffs.text import visible
from grading.review.drafts import is_ranked
from grading.review.pages import evidence
from grading.review.pages.bodies_read import patch_of, shares_of
from grading.review.pages.sitting import Sitting

TABS = (("diff", "Diff", "d"), ("events", "Trajectory", "t"), ("tests", "Tests", "s"), ("checks", "Checks", "h"))
ROWS_AT_ONCE = 4_000
EQUAL_TESTS = 50
MOST_TESTS = 5_000
NOBODY = {"letter": "", "outcome": "", "integrity": "", "tier": None, "files": (), "notes": (), "signals": ()}


def tabs(left: Trajectory | None, right: Trajectory | None, signals: list[Signal]) -> list[dict]:
    results = {test["name"] for t in (left, right) if t for test in t.tests}
    counts = {"diff": None, "events": None, "tests": len(results), "checks": len(signals)}
    return [{"key": key, "label": label, "shortcut": shortcut, "count": counts[key]} for key, label, shortcut in TABS]


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


def diff_column(sitting: Sitting, trajectory: Trajectory | None, shown: tuple[str, ...]) -> dict:
    """One candidate's files: cited ones open, the others as a line that loads on demand."""
    column = head(sitting, trajectory)
    if trajectory is None:
        return column
    patch, cited = patch_of(trajectory), evidence.cited_lines(sitting, trajectory)
    notes = [visible(note) for note in (*patch.problems, *patch.notes)]
    column |= {
        "stat": f"{len(patch.files)} file{'s' * (len(patch.files) != 1)}",
        "adds": f"{patch.added:,}",
        "dels": f"{patch.removed:,}",
        "notes": notes,
        "files": [_closed(sitting, trajectory, n, file, cited.get(n)) for n, file in enumerate(patch.files)],
        "no_patch_words": f"{trajectory.letter} submitted no patch." if patch.is_empty else "Nothing in it is a diff.",
        "footnote": f"{size_words(patch.size_bytes)} of patch.",
    }
    return column


def _closed(sitting: Sitting, trajectory: Trajectory, index: int, file: FilePatch, cited: dict | None) -> dict:
    url = reverse("group-file", args=[sitting.group.pk, trajectory.letter, index])
    shown = {
        "id": f"{trajectory.letter}-f{index}",
        "path": file.path,
        "head": mark_safe(file_head_html(file)),  # noqa: S308  (the engine escapes every byte of a patch)
        "html": None,
        "closed": closed_words(file) or "",
        "says": "" if file.hunks else visible(" · ".join((*file.problems, *header_facts(file))) or "No lines to show"),
        "rows": file.line_count,
        "url": url,
        "next_url": "",
    }
    if cited and file.hunks:
        # What is in the page itself must be readable without scripts: nothing is folded.
        shown |= _rows(sitting, trajectory, index, file, cited, url=url)
    return shown


def _rows(
    sitting: Sitting, trajectory: Trajectory, index: int, file: FilePatch, cited: dict, *, url: str, first=0, fold=False
) -> dict:
    shares = shares_of(t for t in sitting.trajectories if is_ranked(t, sitting.group))
    options = RowOptions(
        letter=trajectory.letter, index=index, shares=shares, fold=fold, first_row=first, max_rows=ROWS_AT_ONCE
    )
    end = first + ROWS_AT_ONCE
    return {
        "html": mark_safe(file_rows_html(file, cited=cited, options=options)),  # noqa: S308
        "next_url": f"{url}?first={end}" if end < file.line_count else "",
    }


def opened_file(sitting: Sitting, trajectory: Trajectory, index: int, *, first: int, fold: bool) -> dict | None:
    """One file with its rows; None where the patch has no such file."""
    files = patch_of(trajectory).files
    if not 0 <= index < len(files):
        return None
    file = _closed(sitting, trajectory, index, files[index], None)
    if files[index].hunks:
        cited = evidence.cited_lines(sitting, trajectory).get(index, {})
        file |= _rows(sitting, trajectory, index, files[index], cited, url=file["url"], first=first, fold=fold)
    else:
        file["html"] = file["says"]
    return file


def checks_column(sitting: Sitting, trajectory: Trajectory | None, signals: list[Signal], shown) -> dict:
    column = head(sitting, trajectory)
    if trajectory is None:
        return column
    mine = [signal for signal in signals if signal.trajectory_id == trajectory.pk]
    rows = evidence.signal_rows(sitting, trajectory, mine, shown)
    words = f"{len(rows)} signal{'s' * (len(rows) != 1)}" if trajectory.group.inspected_at else "not inspected yet"
    return column | {"signals": rows, "checks_words": words}


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
