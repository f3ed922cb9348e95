"""What differs between two results, from the patches alone; and changes without those of white space."""

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.review.diffs import alike, interdiff, paired_files, parse_patch, without_blank_changes
from grading.review.diffs.alike import equal_blocks

HEAD = b"diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n"
LINES = st.lists(st.sampled_from([f"line {n}\n" for n in range(6)]), max_size=40)


def only_file(body: bytes, head: bytes = HEAD):
    patch = parse_patch(head + body)
    assert patch.problems == ()
    return patch.files[0]


def rows(file):
    return [(line.kind, line.old_no, line.new_no, line.content.decode()) for line in file.lines]


def test_the_two_results_are_compared_and_not_the_two_patches():
    left = only_file(b"@@ -3,3 +3,4 @@\n a\n-b\n+B\n+C\n c\n")
    right = only_file(b"@@ -4,3 +4,3 @@\n b\n-c\n+X\n d\n")
    found = interdiff(left, right)
    # left: a B C c d, right: a b X d; d is known to the left from the right's patch alone
    assert rows(found.file) == [
        ("context", 3, 3, "a"),
        ("del", 4, None, "B"),
        ("del", 5, None, "C"),
        ("del", 6, None, "c"),
        ("add", None, 4, "b"),
        ("add", None, 5, "X"),
        ("context", 7, 6, "d"),
    ]
    assert (found.words, found.why_not, found.same) == ((), "", 0)


def test_what_both_change_alike_is_no_difference_whatever_stands_above_it():
    left = only_file(b"@@ -1 +1,2 @@\n-a\n+A\n+B\n@@ -9 +10 @@\n-q\n+Q\n")
    found = interdiff(left, only_file(b"@@ -9 +9 @@\n-q\n+Q\n"))
    assert rows(found.file) == [("del", 1, None, "A"), ("del", 2, None, "B"), ("add", None, 1, "a")]
    assert found.same == 1


def test_equal_results_are_equal_though_the_hunks_are_cut_otherwise():
    left = only_file(b"@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n")
    found = interdiff(left, only_file(b"@@ -2 +2 @@\n-b\n+B\n"))
    assert found.is_equal and found.same == 1


def test_a_file_that_one_side_leaves_alone_is_the_other_sides_change():
    right = only_file(b"@@ -2 +2 @@\n-b\n+B\n")
    assert rows(interdiff(None, right).file) == [("del", 2, None, "b"), ("add", None, 2, "B")]
    assert rows(interdiff(right, None).file) == [("del", 2, None, "B"), ("add", None, 2, "b")]


def test_two_new_files_are_compared_line_by_line_and_a_missing_newline_counts():
    head = b"diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n"
    left = only_file(b"@@ -0,0 +1,2 @@\n+a\n+b\n", head)
    right = only_file(b"@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n", head)
    assert rows(interdiff(left, right).file) == [("context", 1, 1, "a"), ("del", 2, None, "b"), ("add", None, 2, "b")]
    alone = interdiff(None, right)
    assert alone.words == (("no such file", "has the file"),) and alone.file.added == 2


@pytest.mark.parametrize(
    ("left", "right", "words"),
    [
        (b"rename from x.py\nrename to y.py\n", b"old mode 100644\nnew mode 100755\n", ("named y.py", "named x.py")),
        (b"old mode 100644\nnew mode 100755\n", None, ("mode 100755", "mode 100644")),
        (None, b"deleted file mode 100644\nindex e69de29..0000000\n", ("has the file", "no such file")),
    ],
)
def test_names_modes_and_existence_are_said_in_words(left, right, words):
    git = b"diff --git a/x.py b/%b\n"
    sides = [
        header and only_file(header, git % (b"y.py" if header.startswith(b"rename") else b"x.py"))
        for header in (left, right)
    ]
    found = interdiff(*sides)
    assert found.words[0] == words and not found.file.hunks


@pytest.mark.parametrize(
    ("left", "right", "why"),
    [
        (HEAD + b"@@ -1 +1 @@\n-a\n+b\n", HEAD + b"@@ -1 +1 @@\n-z\n+b\n", "not of one base: line 1 is “a” in one"),
        (HEAD + b"@@ -1 +1 @@\n-a\n+b\n", HEAD + b"Binary files a/x.py and b/x.py differ\n", "binary"),
        (HEAD + b"@@ -1 +1 @@\n-a\n+b\n", HEAD + b"@@ -1,9 +1,9 @@\n-a\n+b\n", "a patch is broken here: line 4"),
        (b"diff --git a/a b/x.py\ncopy from a\ncopy to x.py\n", b"", "copied from another file"),
        (b"diff --cc x.py\nindex 1,2..3\n--- a/x.py\n+++ b/x.py\n@@@ -1 -1 +1 @@@\n++a\n", b"", "of a merge"),
    ],
)
def test_what_cannot_be_compared_says_why_and_invents_nothing(left, right, why):
    files = [parse_patch(data).files[0] if data else None for data in (left, right)]
    found = interdiff(*files)
    assert why in found.why_not and not found.file.hunks and not found.is_equal


def test_binaries_with_one_blob_name_are_equal():
    def binary(blob: bytes):
        head = b"diff --git a/p b/p\nindex 1111111..%b 100644\nBinary files a/p and b/p differ\n"
        return only_file(b"", head % blob)

    assert interdiff(binary(b"2222222"), binary(b"2222222aa")).is_equal
    assert not interdiff(binary(b"2222222"), binary(b"3333333")).is_equal


def test_files_are_aligned_by_their_path_on_the_base():
    def header(old: bytes, new: bytes, *more: bytes) -> bytes:
        return b"".join([b"diff --git a/%b b/%b\n" % (old, new), *more])

    mode = b"old mode 100644\nnew mode 100755\n"
    left = parse_patch(header(b"a", b"z", b"rename from a\nrename to z\n") + header(b"b", b"b", mode))
    right = parse_patch(header(b"c", b"c", mode) + header(b"a", b"a", mode))
    assert paired_files(left, right) == [(0, 1), (1, None), (None, 0)]
    twice = parse_patch(header(b"b", b"b", mode) * 2)
    assert paired_files(left, twice) == [(0, None), (1, 0), (None, 1)]


def diff_of(base: list[str], result: list[str]):
    text = "".join(difflib.unified_diff(base, result, "a/x", "b/x"))
    return parse_patch(text.encode()).files[0] if text else None


@given(LINES, LINES, LINES)
def test_the_interdiff_turns_the_left_result_into_the_right_one(base, left, right):
    """Any three texts: each row has the number and the text of its line, and what no row shows is equal."""
    files = diff_of(base, left), diff_of(base, right)
    if files == (None, None):
        return
    lines = list(interdiff(*files).file.lines)
    for line in lines:
        for number, text in ((line.old_no, left), (line.new_no, right)):
            assert number is None or text[number - 1].encode() == line.content + b"\n"
    gone = {line.old_no for line in lines if line.kind == "del"}
    come = {line.new_no for line in lines if line.kind == "add"}
    kept = [text for n, text in enumerate(left, 1) if n not in gone]
    assert kept == [text for n, text in enumerate(right, 1) if n not in come]


@given(LINES, LINES)
def test_common_lines_are_found_in_order_also_where_texts_are_long(old, new):
    for cells in (10**9, 20):
        alike.MAX_CELLS, before = cells, alike.MAX_CELLS
        try:
            blocks = equal_blocks(old, new)
        finally:
            alike.MAX_CELLS = before
        at = (0, 0)
        for i, j, many in blocks:
            assert many > 0 and i >= at[0] and j >= at[1] and old[i : i + many] == new[j : j + many]
            at = i + many, j + many


def test_two_long_texts_are_compared_at_once():
    old = [f"line {n}" for n in range(100_000)]
    blocks = equal_blocks(old, ["new", *old[:50_000], "more", *old[50_001:], "end"])
    assert blocks == [(0, 1, 50_000), (50_001, 50_002, 49_999)]


def test_changes_of_white_space_only_are_hidden_and_counted():
    body = b"@@ -1,4 +1,4 @@\n-a\n-b\n+ a\n+b\r\n+C\n c\n-d\n@@ -20 +20 @@\n-e f\n+e  f\n"
    file, hidden = without_blank_changes(only_file(body))
    assert hidden == 3 and len(file.hunks) == 1
    assert rows(file) == [
        ("context", 1, 1, " a"),
        ("context", 2, 2, "b"),
        ("add", None, 3, "C"),
        ("context", 3, 4, "c"),
        ("del", 4, None, "d"),
    ]


def test_a_cited_line_stays_a_change_though_only_its_white_space_differs():
    file, hidden = without_blank_changes(only_file(b"@@ -1 +1 @@\n-a\n+ a\n"), keep={("new", 1)})
    assert (hidden, file.added, file.removed) == (0, 1, 1)


def test_a_no_break_space_and_a_utf16_character_made_of_blanks_are_no_white_space():
    assert without_blank_changes(only_file("@@ -1 +1 @@\n-a b\n+a\u00a0b\n".encode()))[1] == 0
    dagger, plain = ("\ufeff" + text for text in ("a\u2020", "a"))
    body = b"@@ -1 +1 @@\n-" + dagger.encode("utf-16-le") + b"\n+" + plain.encode("utf-16-le") + b"\n"
    assert without_blank_changes(only_file(body))[1] == 0
