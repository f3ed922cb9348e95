"""One candidate of a comparison: its files, closed until they are wanted, shared changes folded."""

import time
from dataclasses import dataclass
from functools import cached_property

from django.urls import reverse
from django.utils.safestring import mark_safe

from grading.grader.gather import KEPT_BYTES
from grading.models import Trajectory
from grading.review.diffs import (
    FilePatch,
    Patch,
    RowOptions,
    Shares,
    closed_words,
    file_head_html,
    file_rows_html,
    header_facts,
    without_blank_changes,
)
from grading.review.diffs.facts import size_words
from grading.review.diffs.text import line_text, visible
from grading.review.drafts import is_ranked
from grading.review.pages import evidence
from grading.review.pages.bodies_read import patch_of, shares_of
from grading.review.pages.look import Look
from grading.review.pages.sitting import Sitting

ROWS_AT_ONCE = 2_000  # drawn in less than 0.2 s
SUBMITTED_BYTES = 4_000
COLOURING_S = 0.25  # of one request


def count_words(many: int, what: str) -> str:
    return f"{many:,} {what}{'s' * (many != 1)}"


@dataclass
class Side:
    """One candidate of the comparison, with what its files are drawn with."""

    sitting: Sitting
    trajectory: Trajectory
    look: Look

    @cached_property
    def patch(self) -> Patch:
        return patch_of(self.trajectory)

    @cached_property
    def letter(self) -> str:
        return self.trajectory.letter

    @cached_property
    def ranked(self) -> list[Trajectory]:
        return [t for t in self.sitting.trajectories if is_ranked(t, self.sitting.group)]

    @cached_property
    def shares(self) -> Shares:
        return shares_of(self.ranked)

    @cached_property
    def is_counted(self) -> bool:
        return self.trajectory.patch_bytes <= KEPT_BYTES and self.trajectory.pk in {t.pk for t in self.ranked}

    @cached_property
    def cited(self) -> dict[int, dict]:
        return evidence.cited_lines(self.sitting, self.trajectory)

    def shown(self, index: int) -> tuple[FilePatch, int]:
        """A file as the look wants it, and how many changes of white space it hides."""
        file = self.patch.files[index]
        return without_blank_changes(file, keep=self.cited.get(index, ())) if self.look.is_quiet else (file, 0)

    def see(self, index: int) -> "Seen":
        file = self.patch.files[index]
        large = closed_words(file) or ""
        shown, hidden = (file, 0) if large else self.shown(index)
        shares, is_open = self.shares, self.look.is_unfolded
        folded = tuple(not is_open and shares.folds(file.path, hunk.lines) > 0 for hunk in shown.hunks)
        return Seen(self, index, file, shown, hidden, large, folded)

    def touched_by(self, file: FilePatch) -> str:
        """“only C” where no other passing candidate touches the file."""
        others = self.shares.touching(file.path) - self.is_counted
        return f"only {self.letter}" if self.shares.of > 1 and not others else ""

    def blank_words(self, other: "Side", file: FilePatch) -> str:
        """What stands on this side where only the other one has the file."""
        if other.touched_by(file):
            return f"Only {other.letter} touches this file."
        if self.trajectory.pk == other.trajectory.pk or not self.shares.of:
            return f"{self.letter} does not touch this file."
        many = self.shares.touching(file.path)
        do = "does" if many == 1 else "do"
        return f"{self.letter} does not touch this file; {many} of {self.shares.of} passing candidates {do}."

    def rows(self, index: int, *, first: int = 0, fold: bool = False) -> dict:
        """A file's lines from one row on."""
        file, hidden = self.shown(index)
        end, until = first + ROWS_AT_ONCE, time.monotonic() + COLOURING_S
        options = RowOptions(
            letter=self.letter,
            index=index,
            shares=self.shares,
            fold=fold and not self.look.is_unfolded,
            view=self.look.view,
            caption=f"Changes of {self.letter}",
            first_row=first,
            max_rows=ROWS_AT_ONCE,
            is_late=lambda: time.monotonic() > until,
        )
        html = file_rows_html(file, cited=self.cited.get(index, {}), options=options) if file.hunks else ""
        return {
            "html": mark_safe(html),  # noqa: S308  (the engine escapes every byte of a patch)
            "hidden": hidden_words(hidden, is_all=not file.hunks) if not first else "",
            "next_url": f"{self.url(index)}&first={end}" if end < file.line_count else "",
            "next_words": count_words(min(file.line_count - end, ROWS_AT_ONCE), "more line"),
        }

    def url(self, index: int) -> str:
        address = reverse("group-file", args=[self.sitting.group.pk, self.letter, index])
        return f"{address}?{self.look.rows}"


def hidden_words(hidden: int, *, is_all: bool) -> str:
    if not hidden:
        return ""
    many = f"{hidden:,} changed line{'s differ' if hidden != 1 else ' differs'} in white space only"
    return f"{'All its changes are hidden' if is_all else 'Hidden'}: {many}."


@dataclass(frozen=True)
class Seen:
    """One file of a side as its look has it: what is shown of it, and what of that is folded."""

    side: "Side"
    index: int
    file: FilePatch
    shown: FilePatch
    hidden: int  # changes of white space only
    large: str  # why it stays closed until somebody opens it
    folded: tuple[bool, ...]  # of each hunk that is shown

    @property
    def cited(self) -> dict:
        return self.side.cited.get(self.index, {})

    @property
    def place(self) -> tuple[str, int]:
        return self.side.letter, self.index

    @property
    def is_folded(self) -> bool:
        return bool(self.folded) and all(self.folded) and not self.cited

    @property
    def open_rows(self) -> int:
        hunks = zip(self.shown.hunks, self.folded, strict=True)
        return sum(1 if is_folded else len(hunk.lines) + any(self.folded) for hunk, is_folded in hunks)


def file_of(seen: Seen, *, is_wanted: bool = False) -> dict:
    """One file as it stands on the page: with its rows where they are wanted or cited, else a line that loads them."""
    side, file = seen.side, seen.file
    row = {
        "id": f"{side.letter}-f{seen.index}",
        "path": file.path,
        "shown_path": visible(file.path),
        "head": mark_safe(file_head_html(file, touched_by=side.touched_by(file))),  # noqa: S308
        "html": None,
        "closed": seen.large,
        "hidden": hidden_words(seen.hidden, is_all=not seen.shown.hunks),
        "says": says(file),
        "rows": seen.open_rows,
        "url": side.url(seen.index),
        "next_url": "",
    }
    if seen.cited and file.hunks:
        # What is in the page itself must be readable without scripts: nothing is folded.
        row |= side.rows(seen.index)
    elif is_wanted and file.hunks:
        row |= side.rows(seen.index, fold=True)
    return row


def says(file: FilePatch) -> str:
    """Why there are no lines, for a file without hunks."""
    if file.hunks:
        return ""
    return visible(" · ".join((*file.problems, *header_facts(file))) or "No lines to show")


def opened_file(side: Side, index: int, *, first: int, fold: bool) -> dict | None:
    """One file with its rows; None where the patch has no such file."""
    if not 0 <= index < len(side.patch.files):
        return None
    file = side.patch.files[index]
    row = {"id": f"{side.letter}-f{index}", "path": file.path, "says": says(file), "url": side.url(index)}
    row["head"] = mark_safe(file_head_html(file, touched_by=side.touched_by(file)))  # noqa: S308
    return row | side.rows(index, first=first, fold=fold)


def submitted_words(patch: Patch) -> str:
    """The beginning of what was submitted instead of a diff, line by line."""
    lines = patch.preamble[:SUBMITTED_BYTES].split(b"\n")
    more = len(patch.preamble) - SUBMITTED_BYTES
    return "\n".join(visible(line_text(line)) for line in lines) + (f"\n… {size_words(more)} more" if more > 0 else "")


def patch_words(side: Side) -> dict:
    """What a column says of the whole patch."""
    patch, left_out = side.patch, sum(t.patch_bytes > KEPT_BYTES for t in side.ranked)
    only = sum(bool(side.touched_by(file)) for file in patch.files)
    foot = [f"{size_words(patch.size_bytes)} of patch"]
    if left_out:
        foot.append(f"{count_words(left_out, 'patch')} over {size_words(KEPT_BYTES)} not counted in the shares")
    return {
        "has_files": bool(patch.files),
        "stat": count_words(len(patch.files), "file") + (f", {only} only {side.letter}" if only else ""),
        "adds": f"{patch.added:,}",
        "dels": f"{patch.removed:,}",
        "notes": [visible(note) for note in (*patch.problems, *patch.notes)],
        "no_patch_words": f"{side.letter} submitted no patch." if patch.is_empty else "It begins like this:",
        "submitted": "" if patch.files or patch.is_empty else submitted_words(patch),
        "footnote": "; ".join(foot) + ".",
        "patch_url": reverse("candidate-patch", args=[side.sitting.group.pk, side.letter]) if patch.size_bytes else "",
    }
