"""What differs between the results of two candidates of an audit, from their scrubbed patches alone."""

from django.utils.safestring import mark_safe

from grading.grader.shown import Shown
from grading.review.diffs import FilePatch, Line, RowOptions, closed_words, file_rows_html, interdiff, paired_files
from grading.review.diffs.text import visible
from grading.review.diffs.whole import own_line

ROWS_AT_ONCE = 400  # of one file
FILES_AT_ONCE = 60


def between(left: Shown, right: Shown) -> dict:
    """Context of grading/_audit_between.html: files that differ, and in how many the results are equal."""
    pairs = list(paired_files(left.parsed, right.parsed))
    rows = [_file(left, right, *pair, n) for n, pair in enumerate(pairs[:FILES_AT_ONCE])]
    differing = [row for row in rows if row]
    return {"compared": differing, "equal": len(rows) - len(differing), "more_files": len(pairs) - len(rows)}


def _file(left: Shown, right: Shown, one: int | None, other: int | None, n: int) -> dict | None:
    """One file as rows; None where both results are equal. A file of one candidate alone is that file."""
    files = [None if k is None else shown.parsed.files[k] for shown, k in ((left, one), (right, other))]
    path = visible(next(file.path for file in files if file))
    if closed := next((words for file in files if file and (words := closed_words(file))), ""):
        return {"path": path, "says": f"not compared: {closed}", "html": "", "hidden": 0}
    found = interdiff(*files)
    if found.is_equal:
        return None
    says = visible(found.why_not) or ("" if found.file.hunks else "No line differs.")
    row = {"path": path, "raw_path": next(file.path for file in files if file), "says": says}
    return row | {"only": _only(left, right, files)} | _rows(found.file, left, right, files, n)


def _only(left: Shown, right: Shown, files: list[FilePatch | None]) -> str:
    alone = [shown.letter for shown, file in zip((left, right), files, strict=True) if file]
    return f"only {alone[0]} touches it" if len(alone) == 1 else ""


def _rows(file: FilePatch, left: Shown, right: Shown, files: list[FilePatch | None], n: int) -> dict:
    def cites(line: Line) -> str:
        """Letter, side and line of a candidate's own patch; "" where neither changes it."""
        own = own_line(*files, line)
        return f"{(left, right)[own.of].letter} {own.side} {own.line}" if own else ""

    caption = f"From the result of {left.letter} to that of {right.letter}"
    options = RowOptions(f"{left.letter}.{right.letter}", n, caption=caption, max_rows=ROWS_AT_ONCE, cites=cites)
    html = mark_safe(file_rows_html(file, cited={}, options=options)) if file.hunks else ""  # noqa: S308  (escaped)
    return {"html": html, "hidden": max(0, file.line_count - ROWS_AT_ONCE) if file.hunks else 0}
