"""The diff engine: bytes in, frozen dataclasses and HTML rows out. Core."""

from grading.review.diffs.facts import closed_words, header_facts
from grading.review.diffs.html import RowOptions, file_head_html, file_rows_html, row_id
from grading.review.diffs.parse import parse_patch
from grading.review.diffs.patch import FilePatch, Hunk, Line, Patch, Side
from grading.review.diffs.shares import Shares, shared_changes
from grading.review.diffs.words import word_changes

__all__ = [
    "FilePatch",
    "Hunk",
    "Line",
    "Patch",
    "RowOptions",
    "Shares",
    "Side",
    "closed_words",
    "file_head_html",
    "file_rows_html",
    "header_facts",
    "parse_patch",
    "row_id",
    "shared_changes",
    "word_changes",
]
