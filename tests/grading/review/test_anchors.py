"""Citations: read strictly, resolved by the rules of method.md 2."""

import pytest

from grading.review.anchors import Citation, Place, resolve
from grading.review.diffs import parse_patch

PATCH = parse_patch(
    b"""diff --git a/src/cache.py b/src/cache.py
--- a/src/cache.py
+++ b/src/cache.py
@@ -40,4 +40,6 @@ class Cache:
     def get(self, key):
-        return self._get(key)
+        value = self._lookup(key)
+        if value is None:
+            return None
         # end
         pass
@@ -90,2 +92,3 @@ class Cache:
     def put(self, key):
+        return None
         pass
diff --git a/old.py b/new.py
similarity index 80%
rename from old.py
rename to new.py
--- a/old.py
+++ b/new.py
@@ -1 +1 @@
-import os
+import   sys
"""
)
EVENTS = ["ran the tests", "edited  the\nlookup", None, "all tests pass", "all tests pass"]


def line_at(line, *, side="new", path="src/cache.py", **more):
    return Citation.from_json(
        {"kind": "patch_line", "candidate": "C", "path": path, "side": side, "line": line, **more}
    )


def event_at(event, quote):
    return Citation.from_json({"kind": "event", "candidate": "C", "event": event, "quote": quote})


def resolved(citation, patch=PATCH, results=("tests/test_a.py::test_x",)):
    return resolve(citation, patch=patch, event_text=EVENTS.__getitem__, event_count=len(EVENTS), results=results)


def test_the_patch_of_these_tests_is_whole():
    # old 41 is deleted; new 41, 42, 43 and 93 are added
    changed = [(line.side, line.number) for line in PATCH.files[0].lines if line.is_changed]
    assert PATCH.parsed and changed == [("old", 41), ("new", 41), ("new", 42), ("new", 43), ("new", 93)]


@pytest.mark.parametrize(
    "raw",
    [
        {"kind": "patch_line", "candidate": "C", "path": "a", "side": "new", "line": 3, "line_end": 5, "quote": "x"},
        {"kind": "event", "candidate": "C", "event": 0, "quote": "x"},
        {"kind": "result", "candidate": "C", "result": "test_x"},
    ],
)
def test_a_citation_goes_to_json_and_back(raw):
    assert Citation.from_json(raw).to_json() == raw
    assert Citation.from_json({**raw, "kind": raw["kind"]}) == Citation.from_json(raw)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("text", "a citation is str, expected a JSON object"),
        ({"kind": "line"}, "citation kind is 'line', expected one of patch_line, event, result"),
        ({"kind": ["event"]}, "citation kind is"),
        ({"line": None}, "lacks line"),
        ({"candidate": None}, "lacks candidate"),
        ({"line": 0}, "citation line is 0, expected a whole number from 1 on"),
        ({"line": True}, "citation line is True"),
        ({"line": "3"}, "citation line is '3'"),
        ({"line": 3.0}, "citation line is 3.0"),
        ({"line_end": 2}, "line_end is 2, expected at least its line 3"),
        ({"side": "left"}, "side is 'left', expected new or old"),
        ({"quote": "  "}, "quote is '  ', expected text that is not blank"),
        ({"event": 1}, "has event, expected"),
        ({"tier": 1}, "has tier, expected"),
    ],
)
def test_a_bad_citation_says_what_was_got_and_expected(change, words):
    good = {"kind": "patch_line", "candidate": "C", "path": "a", "side": "new", "line": 3}
    with pytest.raises(ValueError, match="citation") as error:
        Citation.from_json({**good, **change} if isinstance(change, dict) else change)
    assert words in str(error.value)


def test_an_event_without_quoted_words_is_refused():
    with pytest.raises(ValueError, match="lacks quote"):
        Citation.from_json({"kind": "event", "candidate": "C", "event": 0})


def test_a_changed_line_is_exact():
    got = resolved(line_at(42))
    place = Place(kind="patch_line", path="src/cache.py", side="new", line=42, file=0)
    assert (got.state, got.resolves, got.place, got.places) == ("exact", True, place, (place,))
    assert resolved(line_at(41, side="old")).state == "exact"


@pytest.mark.parametrize(
    ("citation", "why"),
    [
        (line_at(40), "shown, but unchanged"),
        (line_at(60), "not in this patch"),
        (line_at(42, path="src/other.py"), "in no file of this patch"),
        (line_at(42, side="old"), "unchanged"),
        (line_at(42, line_end=93), "its hunk does not reach to line 93"),
        (line_at(42, quote="no such words"), "no changed line of this candidate has the quoted words"),
        (line_at(40, quote="def get(self, key):"), "no changed line"),
    ],
)
def test_what_is_no_changed_line_is_lost(citation, why):
    got = resolved(citation)
    assert (got.state, got.resolves, got.place) == ("lost", False, None)
    assert why in got.why


def test_a_quote_matches_to_the_letter_whatever_its_diff_sign():
    for quote in ("value = self._lookup(key)", "+        value = self._lookup(key)", "self._lookup"):
        assert resolved(line_at(41, quote=quote)).state == "exact"
    for both in (
        "+        if value is None:\n+            return None",
        "if value is None:\r\n            return None",
    ):
        assert resolved(line_at(42, line_end=43, quote=both)).state == "exact"


@pytest.mark.parametrize(
    "citation",
    [
        line_at(41, quote="value  =\tself._lookup(key)"),
        line_at(42, line_end=43, quote="if value is None: return None"),
        line_at(1, path="new.py", quote="import sys"),
    ],
)
def test_a_quote_with_other_white_space_moves_where_it_stands(citation):
    got = resolved(citation)
    assert (got.state, got.resolves) == ("moved", True)
    assert (got.place.line, got.place.line_end) == (citation.line, citation.line_end)
    assert "other white space" in got.why


def test_a_quote_that_is_verbatim_only_in_another_line_of_its_hunk_is_not_exact():
    patch = parse_patch(b"--- a/x\n+++ b/x\n@@ -0,0 +1,2 @@\n+a  = 1\n+a = 1\n")
    assert resolved(line_at(1, path="x", quote="a = 1"), patch=patch).state == "moved"
    assert resolved(line_at(2, path="x", quote="a = 1"), patch=patch).state == "exact"


def test_a_quote_that_stands_elsewhere_once_has_moved():
    got = resolved(line_at(42, quote="self._lookup(key)"))
    assert (got.state, got.resolves) == ("moved", True)
    assert (got.place.line, got.place.side, got.place.path) == (41, "new", "src/cache.py")
    got = resolved(line_at(7, path="gone.py", quote="import sys"))
    assert (got.state, got.place.path, got.place.line, got.place.file) == ("moved", "new.py", 1, 1)


def test_a_quote_of_the_other_side_has_moved_there():
    got = resolved(line_at(41, quote="return self._get(key)"))
    assert (got.state, got.place.side, got.place.line) == ("moved", "old", 41)


def test_a_quote_that_stands_at_its_line_is_exact_though_others_have_it_too():
    assert resolved(line_at(43, quote="return None")).place.line == 43
    assert resolved(line_at(93, quote="return None")).place.line == 93


def test_a_quote_that_stands_elsewhere_twice_is_ambiguous():
    got = resolved(line_at(41, quote="return None"))
    assert (got.state, got.resolves, got.place) == ("ambiguous", False, None)
    assert [place.line for place in got.places] == [43, 93]


def test_a_quote_in_a_line_that_is_long_and_dull_is_found_at_once():
    patch = parse_patch(b"--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+" + b"a" * 1_000_000 + b"\n")
    assert resolved(line_at(1, path="x", quote="a"), patch=patch).state == "exact"


def test_a_path_that_a_mail_changes_twice_is_ambiguous_without_a_quote():
    one = b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
    patch = parse_patch(one + one.replace(b"-a\n+b", b"-b\n+c"))
    got = resolved(line_at(1, path="x"), patch=patch)
    assert (got.state, [place.file for place in got.places]) == ("ambiguous", [0, 1])
    assert resolved(line_at(1, path="x", quote="c"), patch=patch).place.file == 1


def test_a_candidate_without_a_patch_has_no_line_to_cite():
    assert resolved(line_at(1), patch=parse_patch(None)).state == "lost"


def test_an_event_must_have_the_quoted_words():
    got = resolved(event_at(1, "edited  the\nlookup"))
    assert (got.state, got.place.event) == ("exact", 1)
    got = resolved(event_at(1, "edited the lookup"))
    assert (got.state, got.place.event) == ("moved", 1)
    assert "other white space" in got.why


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("\x1b[31m1 failed\x1b[0m, 6 passed", "1 failed, 6 passed"),
        ("10 %\r50 %\r100 % done\r\nnext", "100 % done\nnext"),
        ("\x1b]8;;https://evil.example\x07link\x1b]8;;\x07 here", "link here"),
        ("user\u202etxt.exe\tx", "user⟨U+202E⟩txt.exe\tx"),
    ],
)
def test_words_of_a_terminal_are_quoted_as_they_were_written_and_as_they_are_seen(written, seen):
    for quote in (written, seen):
        got = resolve(
            event_at(0, quote), patch=PATCH, event_text=lambda _: written, event_count=1, results=()
        )  # fmt: skip
        assert (got.state, got.place.event) == ("exact", 0)


@pytest.mark.parametrize(
    ("event", "quote", "state", "places"),
    [
        (0, "edited the lookup", "moved", [1]),
        (99, "ran the", "moved", [0]),
        (0, "all tests pass", "ambiguous", [3, 4]),
        (0, "deleted the tests", "lost", []),
        (2, "anything", "lost", []),
    ],
)
def test_words_that_are_not_in_the_event_are_looked_for_in_the_others(event, quote, state, places):
    got = resolved(event_at(event, quote))
    assert (got.state, [place.event for place in got.places]) == (state, places)


def test_a_result_is_cited_by_its_name():
    named = {"kind": "result", "candidate": "C", "result": "tests/test_a.py::test_x"}
    assert resolved(Citation.from_json(named)).state == "exact"
    assert resolved(Citation.from_json({**named, "result": "test_y"})).state == "lost"
