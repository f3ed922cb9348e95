"""The plain form of a correction, field by field."""

import pytest

from grading.review.anchors import Citation
from grading.review.correction_form import read_form, read_place


def test_a_whole_form_is_read():
    form = read_form(
        {
            "verdict": ["7"],
            "reason": ["  rewrites the parser "],
            "score-C-minimality": ["2"],
            "score-C-approach": ["5"],
            "flag-C": ["unrequested_rewrite"],
            "place-C": ["3"],
            "cite-1-letter": ["C"],
            "cite-1-about": ["minimality"],
            "cite-1-kind": ["new"],
            "cite-1-place": ["src/a.py:41-43"],
            "cite-1-quote": [""],
            "cite-2-letter": ["C"],
            "cite-2-place": [""],
        }
    )
    assert (form.verdict, form.reason, form.errors) == (7, "rewrites the parser", ())
    assert form.scores == {"C": {"minimality": 2, "approach": 5}}
    assert form.flags == {"C": frozenset({"unrequested_rewrite"})}
    assert form.places == {"C": 3}
    (cited,) = form.citations  # a row with an empty place is left out
    assert cited.citation == Citation("patch_line", "C", path="src/a.py", side="new", line=41, line_end=43)


def test_an_unchecked_flag_is_an_absent_field():
    assert read_form({"score-A-approach": ["4"]}).flags == {"A": frozenset()}


def test_a_form_says_where_the_page_drew_a_card():
    fields = {"drawn-A": ["1-2"], "drawn-B": ["4-1"], "drawn-C": ["x"], "drawn-d": ["1-1"]}
    assert read_form(fields).drawn == {"A": (1, 2)}


@pytest.mark.parametrize("typed", ["", "0", "6", "4.5", "five", "-1", "1e3", "٣x"])
def test_a_score_that_is_none_is_said_and_kept_as_typed(typed):
    form = read_form({"score-C-precision": [typed]})
    assert form.scores == {"C": {"precision": typed}}
    assert "C precision" in form.errors[0] and "from 1 to 5" in form.errors[0]


def test_fields_of_no_criterion_and_unknown_flags_do_not_pass():
    form = read_form({"score-C-beauty": ["5"], "score-C-approach": ["5"], "flag-C": ["lovely"], "place-C": ["x"]})
    assert form.scores == {"C": {"approach": 5}} and form.flags == {"C": frozenset()} and form.places == {}
    assert len(form.errors) == 2


@pytest.mark.parametrize(
    ("place", "cited"),
    [
        (("new", "a:b.py:4", ""), Citation("patch_line", "C", path="a:b.py", side="new", line=4)),
        (
            ("old", "a.py:4-9", "x = 1"),
            Citation("patch_line", "C", path="a.py", side="old", line=4, line_end=9, quote="x = 1"),
        ),
        (("event", "16", "rm -rf"), Citation("event", "C", event=16, quote="rm -rf")),
        (("event", "e16", "rm -rf"), Citation("event", "C", event=16, quote="rm -rf")),
        (("result", "tests/test_a.py::test_b", "ignored"), Citation("result", "C", result="tests/test_a.py::test_b")),
    ],
)
def test_places_as_people_write_them(place, cited):
    kind, where, quote = place
    assert read_place(letter="C", kind=kind, place=where, quote=quote) == cited


@pytest.mark.parametrize(
    ("kind", "place", "quote", "words"),
    [
        ("new", "a.py", "", "src/app.py:41-43"),
        ("new", "a.py:9-4", "", "at least its line 9"),
        ("event", "first", "x", "number of an event"),
        ("event", "3", "", "words that stand there"),
        ("page", "3", "", "kind of place"),
    ],
)
def test_a_place_that_is_none_says_what_is_expected(kind, place, quote, words):
    with pytest.raises(ValueError, match=words):
        read_place(letter="C", kind=kind, place=place, quote=quote)


def test_a_bad_citation_is_an_error_of_its_row():
    form = read_form(
        {"cite-3-letter": ["C"], "cite-3-kind": ["event"], "cite-3-place": ["x"], "cite-3-about": ["approach"]}
    )
    assert form.errors[0].startswith("Citation 3: ") and form.citations[0].citation is None
    assert read_form({"cite-1-letter": [""], "cite-1-kind": ["result"], "cite-1-place": ["t"]}).errors
    assert read_form({"cite-1-about": ["charm"], "cite-1-kind": ["result"], "cite-1-place": ["t"]}).errors


def test_a_nul_in_what_was_typed_becomes_visible():
    assert read_form({"reason": ["a\x00b"]}).reason == "a\\u0000b"
