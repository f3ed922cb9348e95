"""The diff engine: bytes in, frozen dataclasses and HTML rows out. Core."""

from grading.review.diffs.facts import closed_words, header_facts
from grading.review.diffs.html import file_head_html, file_rows_html
from grading.review.diffs.interdiff import Interdiff, interdiff, paired_files
from grading.review.diffs.parse import parse_patch
from grading.review.diffs.patch import FilePatch, Hunk, Line, Patch, Side
from grading.review.diffs.rows import RowOptions, row_id
from grading.review.diffs.shares import Shares, shared_changes
from grading.review.diffs.whitespace import without_blank_changes
from grading.review.diffs.words import word_changes

__all__ = [
    "FilePatch",
    "Hunk",
    "Interdiff",
    "Line",
    "Patch",
    "RowOptions",
    "Shares",
    "Side",
    "closed_words",
    "file_head_html",
    "file_rows_html",
    "header_facts",
    "interdiff",
    "paired_files",
    "parse_patch",
    "row_id",
    "shared_changes",
    "without_blank_changes",
    "word_changes",
]
