"""What a list and a group's head say of a task: its statement's first paragraph, on one line."""

import pytest

from grading.review.pages.group_page import TITLE_CHARS, title_of


@pytest.mark.parametrize(
    ("statement", "title"),
    [
        ("one\n\ntwo", "one"),
        ("It is wrong (nor\r\nback for a\r\nnumber).\r\n\r\nMore.", "It is wrong (nor back for a number)."),
        ("\n## A heading\nand its text", "A heading"),
        ("wrapped\nwords\n# Next\nmore", "wrapped words"),
        ("call it\n```\nx()\n```", "call it"),
        ("  \n***\n* a point", "a point"),
        ("\x1b[31mred\x1b[0m words", "red words"),
        ("", ""),
        ("w" * 400, "w" * TITLE_CHARS + "…"),
    ],
)
def test_the_first_paragraph_is_the_title(statement, title):
    assert title_of(statement) == title
