"""The diff engine: bytes in, frozen dataclasses and HTML rows out. Core."""

from grading.review.diffs.parse import parse_patch
from grading.review.diffs.patch import FilePatch, Hunk, Line, Patch, Side

__all__ = ["FilePatch", "Hunk", "Line", "Patch", "Side", "parse_patch"]
