"""What differs between the results of two candidates, file by file, closed until it is wanted."""

import time
from dataclasses import dataclass
from functools import cached_property, lru_cache

from django.urls import reverse
from django.utils.safestring import mark_safe

from grading.grader.gather import KEPT_BYTES, kept_patch
from grading.grader.repository import Base, kept_base
from grading.models import Trajectory
from grading.review.diffs import (
    FilePatch,
    Interdiff,
    Line,
    Patch,
    RowOptions,
    closed_words,
    file_rows_html,
    interdiff,
    paired_files,
    without_blank_changes,
)
from grading.review.diffs.text import visible
from grading.review.diffs.whole import Misfit, own_line, paths_needed, whole_interdiff
from grading.review.pages.base_files import files_of, why_not_applied
from grading.review.pages.bodies_read import patch_of
from grading.review.pages.compare import COLOURING_S, ROWS_AT_ONCE, count_words, hidden_words
from grading.review.pages.look import Look
from grading.review.pages.sitting import Sitting

EQUAL_NAMED = 12
Pair = tuple[Trajectory, Trajectory]


@lru_cache(maxsize=8)
def _kept_interdiffs(left: str, right: str) -> tuple[Interdiff | None, ...]:
    return _interdiffs(kept_patch(left)[1], kept_patch(right)[1])


def _interdiffs(left: Patch, right: Patch) -> tuple[Interdiff | None, ...]:
    """For each pair of files what differs; None for one that is too large to be compared before somebody asks."""
    found = []
    for one, other in paired_files(left, right):
        files = [None if n is None else patch.files[n] for patch, n in ((left, one), (right, other))]
        is_large = any(file and closed_words(file) for file in files)
        found.append(None if is_large else interdiff(*files))
    return tuple(found)


def compared(sitting: Sitting, candidates: Pair, look: Look) -> dict:
    """The interdiff of two candidates: files that differ, and those that come out equal in one line."""
    patches = [patch_of(t) for t in candidates]
    if max(t.patch_bytes for t in candidates) <= KEPT_BYTES:
        found = _kept_interdiffs(*(t.patch for t in candidates))
    else:
        found = _interdiffs(*patches)
    files, equal = [], []
    for n, one in enumerate(found):
        place = _Place(sitting, candidates, look, n)
        if one is not None and one.is_equal:
            equal.append(visible(place.path))
        else:
            files.append(_listed(place, one))
    more = len(equal) - EQUAL_NAMED
    base = kept_base(sitting.group.task)
    differing = f"{count_words(len(files), 'file')} differ{'s' * (len(files) == 1)}"
    return {
        "compared": files,
        "equal_words": ", ".join(equal[:EQUAL_NAMED]) + (f" and {more} more" if more > 0 else ""),
        "pair_words": f"{differing}, {len(equal)} come out equal",
        "blanks": sum(file["blanks"] for file in files),
        "is_whole": base is not None,
        "not_applied": _not_applied(base, candidates) if base else [],
    }


def _not_applied(base: Base, candidates: Pair) -> list[str]:
    said = [(t.letter, why_not_applied(base, t.patch, t.patch_bytes)) for t in candidates]
    return [f"The patch of {letter} does not apply to the base commit: {visible(why)}" for letter, why in said if why]


@dataclass
class _Place:
    """The n-th file of the pair."""

    sitting: Sitting
    candidates: Pair
    look: Look
    n: int

    @cached_property
    def letters(self) -> tuple[str, str]:
        left, right = self.candidates
        return left.letter, right.letter

    @cached_property
    def files(self) -> list[FilePatch | None]:
        """Raises IndexError where the pair has no such file."""
        patches = [patch_of(t) for t in self.candidates]
        places = paired_files(*patches)[self.n]
        return [None if k is None else patch.files[k] for patch, k in zip(patches, places, strict=True)]

    @cached_property
    def path(self) -> str:
        return next(file.path for file in self.files if file)

    @property
    def url(self) -> str:
        address = reverse("group-interdiff", args=[self.sitting.group.pk, *self.letters, self.n])
        return f"{address}?{self.look.rows}"

    def compared(self) -> Interdiff:
        """Over the whole file where the base is here and both patches fit it, else from the patches alone."""
        base = kept_base(self.sitting.group.task)
        found = base and files_of(base, paths_needed(*self.files))
        try:
            return whole_interdiff(*self.files, found) if found is not None else interdiff(*self.files)
        except Misfit:
            return interdiff(*self.files)

    def cites(self, line: Line) -> str:
        """Letter, side and line of the candidate's own patch; "" where neither changes it."""
        own = own_line(*self.files, line)
        return f"{self.letters[own.of]} {own.side} {own.line}" if own else ""

    def shown(self, one: Interdiff) -> tuple[FilePatch, int]:
        return without_blank_changes(one.file) if self.look.is_quiet else (one.file, 0)


def _listed(place: _Place, one: Interdiff | None) -> dict:
    """A file of the interdiff as a line that loads it."""
    left, right = place.letters
    row = {"id": f"{left}.{right}-f{place.n}", "path": place.path, "shown_path": visible(place.path), "blanks": 0}
    row |= {"url": place.url, "says": "", "closed": ""}
    if one is None:
        return row | {"closed": "large, so not compared yet"}
    file, hidden = place.shown(one)
    only = [letter for letter, of in zip(place.letters, place.files, strict=True) if of]
    words = [f"{left}: {ours}, {right}: {theirs}" for ours, theirs in one.words]
    if one.same:
        words.append(f"{count_words(one.same, 'place')} changed alike")
    return row | {
        "words": visible(" · ".join(words)),
        "only": f"only {only[0]} touches it" if len(only) == 1 else "",
        "removed": f"{file.removed:,}",
        "added": f"{file.added:,}",
        "says": visible(one.why_not) or ("" if file.hunks or hidden else "No line differs."),
        "hidden": hidden_words(hidden, is_all=not file.hunks),
        "blanks": hidden,
        "closed": closed_words(file) or "",
        "rows": file.line_count + len(file.hunks),
    }


def opened(sitting: Sitting, candidates: Pair, look: Look, n: int, *, first: int) -> dict | None:
    """The rows of one file of the interdiff; None where the pair has no such file."""
    place = _Place(sitting, candidates, look, n)
    try:
        one = place.compared()
    except IndexError:
        return None
    file, hidden = place.shown(one)
    end, until = first + ROWS_AT_ONCE, time.monotonic() + COLOURING_S
    left, right = place.letters
    options = RowOptions(
        letter=f"{left}.{right}",
        index=n,
        view=look.view,
        caption=f"From the result of {left} to that of {right}",
        first_row=first,
        max_rows=ROWS_AT_ONCE,
        is_late=lambda: time.monotonic() > until,
        cites=place.cites,
    )
    return _listed(place, one) | {
        "html": mark_safe(file_rows_html(file, cited={}, options=options)) if file.hunks else "",  # noqa: S308
        "hidden": hidden_words(hidden, is_all=not file.hunks) if not first else "",
        "next_url": f"{place.url}&first={end}" if end < file.line_count else "",
        "next_words": count_words(min(file.line_count - end, ROWS_AT_ONCE), "more line"),
    }
