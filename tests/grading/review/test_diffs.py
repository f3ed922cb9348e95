"""Patches by hand: every nasty kind, its numbers, and the words that say what it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.review.diffs import header_facts, parse_patch

HEAD = b"diff --git a/x.py b/x.py\nindex 1111111..2222222 100644\n--- a/x.py\n+++ b/x.py\n"


def only_file(data: bytes):
    patch = parse_patch(data)
    assert patch.problems == ()
    assert len(patch.files) == 1
    return patch.files[0]


def rows(file):
    return [(line.kind, line.old_no, line.new_no, line.content, line.eol) for line in file.lines]


def test_lines_carry_the_numbers_of_both_sides():
    file = only_file(HEAD + b"@@ -3,3 +3,4 @@ def f():\n a\n-b\n+B\n+C\n c\n")
    assert rows(file) == [
        ("context", 3, 3, b"a", "\n"),
        ("del", 4, None, b"b", "\n"),
        ("add", None, 4, b"B", "\n"),
        ("add", None, 5, b"C", "\n"),
        ("context", 5, 6, b"c", "\n"),
    ]
    assert (file.path, file.status, file.added, file.removed) == ("x.py", "modified", 2, 1)
    assert (file.hunks[0].section, file.hunks[0].header_line) == (b"def f():", 5)


@pytest.mark.parametrize("data", [None, b"", b"\n\n  \n"])
def test_no_patch_is_neither_parsed_nor_unparsed(data):
    patch = parse_patch(data)
    assert patch.is_empty and not patch.parsed and not patch.unparsed and patch.problems == ()


def test_a_change_of_line_ends_only_stays_visible():
    file = only_file(HEAD + b"@@ -1 +1 @@\n-a\n+a\r\n")
    assert rows(file) == [("del", 1, None, b"a", "\n"), ("add", None, 1, b"a", "\r\n")]
    assert "line ends LF → CRLF" in header_facts(file)


def test_a_bare_cr_and_other_line_breaks_stay_inside_a_line():
    content = b"a\rb\x0cc\x1cd\xc2\x85e\xe2\x80\xa8f"
    file = only_file(HEAD + b"@@ -0,0 +1 @@\n+" + content + b"\n")
    assert rows(file) == [("add", None, 1, content, "\n")]


def test_a_missing_final_newline_is_a_fact_of_its_side():
    data = HEAD + b"@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"
    file = only_file(data)
    assert rows(file) == [("del", 1, None, b"a", ""), ("add", None, 1, b"a", "\n")]
    assert "newline added at the end" in header_facts(file)


def test_a_cr_before_a_missing_newline_belongs_to_the_line():
    file = only_file(HEAD + b"@@ -0,0 +1 @@\n+a\r\n\\ No newline at end of file\n")
    assert rows(file) == [("add", None, 1, b"a\r", "")]


def test_a_rename_with_spaces_says_both_names():
    data = (
        b"diff --git a/old name.py b/new dir/new name.py\nsimilarity index 96%\n"
        b"rename from old name.py\nrename to new dir/new name.py\n"
    )
    file = only_file(data)
    assert (file.status, file.old_path, file.new_path) == ("renamed", "old name.py", "new dir/new name.py")
    assert header_facts(file)[0] == "renamed from old name.py, 96 % alike"


def test_a_copy_says_where_it_comes_from():
    file = only_file(b"diff --git a/a b/b\nsimilarity index 100%\ncopy from a\ncopy to b\n")
    assert (file.status, header_facts(file)) == ("copied", ("copied from a",))


def test_a_name_with_spaces_is_found_without_labels():
    file = only_file(b"diff --git a/has b/spaces x b/has b/spaces x\nold mode 100644\nnew mode 100755\n")
    assert (file.path, file.status) == ("has b/spaces x", "mode")
    assert header_facts(file) == ("mode 100644 → 100755 (now executable), no other change",)


def test_an_octal_quoted_path_is_read_as_utf8():
    data = rb'diff --git "a/\346\216\222 \"q\"\t.md" "b/\346\216\222 \"q\"\t.md"' + b"\nnew file mode 100755\n"
    file = only_file(data)
    assert file.path == '排 "q"\t.md'
    assert header_facts(file) == ("new empty file", "executable")


def test_a_path_that_is_not_utf8_is_read_as_latin1():
    assert only_file(b'diff --git "a/\\351" "b/\\351"\ndeleted file mode 100644\nindex e69de29..0000000\n').path == "é"


def test_a_symlink_says_where_it_points():
    data = (
        b"diff --git a/l b/l\nnew file mode 120000\nindex 0000000..1\n--- /dev/null\n+++ b/l\n"
        b"@@ -0,0 +1 @@\n+../target\n\\ No newline at end of file\n"
    )
    file = only_file(data)
    assert (file.kind, file.status, header_facts(file)) == (
        "symlink",
        "added",
        ("new file", "symbolic link to ../target"),
    )


def test_a_submodule_says_from_which_commit_to_which():
    data = (
        b"diff --git a/m b/m\nindex 111..222 160000\n--- a/m\n+++ b/m\n@@ -1 +1 @@\n"
        b"-Subproject commit 1111111111aaaa\n+Subproject commit 2222222222bbbb\n"
    )
    file = only_file(data)
    assert (file.kind, header_facts(file)) == ("submodule", ("submodule 1111111111 → 2222222222",))


def test_a_binary_without_data_says_so():
    data = b"diff --git a/p b/p\nindex 1..2 100644\nBinary files a/p and b/p differ\n"
    file = only_file(data)
    assert file.is_binary and "binary; its content is not in the patch" in header_facts(file)


def test_a_binary_with_data_says_its_size_and_the_next_file_is_found():
    block = b"GIT binary patch\nliteral 3\nKcmZQzWMT#Y01f~L\n\nliteral 0\nHcmV?d00001\n\n"
    patch = parse_patch(
        b"diff --git a/p b/p\nnew file mode 100644\nindex 0..1\n" + block + HEAD + b"@@ -1 +1 @@\n-a\n+b\n"
    )
    assert patch.parsed and [file.path for file in patch.files] == ["p", "x.py"]
    assert "binary, 3 bytes" in header_facts(patch.files[0])


def test_broken_binary_data_is_a_problem():
    patch = parse_patch(b"diff --git a/p b/p\nindex 1..2\nGIT binary patch\nliteral 3\n!!\n\n")
    assert not patch.parsed and "binary data of p is broken: line 5" in patch.problems[0]


def test_a_combined_diff_is_read_against_all_parents():
    data = (
        b"diff --cc x\nindex 1,2..3\n--- a/x\n+++ b/x\n@@@ -1,2 -1,3 +1,3 @@@\n"
        b"  both\n- first\n -second\n+ from second\n++new\n"
    )
    file = only_file(data)
    assert file.is_combined and "git cannot apply it" in header_facts(file)[0]
    assert [(line.kind, line.old_no, line.new_no, line.marks) for line in file.lines] == [
        ("context", 1, 1, "  "),
        ("del", 2, None, "- "),
        ("del", 2, None, " -"),
        ("add", None, 2, "+ "),
        ("add", None, 3, "++"),
    ]


def test_a_truncated_hunk_keeps_what_is_there_and_says_what_is_missing():
    patch = parse_patch(HEAD + b"@@ -1,3 +1,4 @@\n a\n+b\n c\n")
    assert patch.unparsed and patch.files[0].added == 1
    assert patch.problems == (
        "line 5: the hunk @@ -1,3 +1,4 @@ of x.py promises 3 old and 4 new lines, it has 2 and 3, then the patch ends",
    )


def test_a_truncated_hunk_does_not_swallow_the_next_file():
    patch = parse_patch(b"--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n-a\n+b\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-c\n+d\n")
    assert [(file.path, file.added, file.removed) for file in patch.files] == [("x", 1, 1), ("y", 1, 1)]
    assert len(patch.problems) == 1 and "then line 6 is '--- a/y'" in patch.problems[0]


def test_changed_lines_that_look_like_labels_are_changes():
    data = b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n--- a\n+++ b\n@@ -5 +5 @@\n-c\n+d\n"
    assert [line.content for line in only_file(data).lines] == [b"-- a", b"++ b", b"c", b"d"]


def test_mail_headers_fences_and_prose_around_are_no_part_of_it():
    data = (
        b"From: A <a@b>\nSubject: x\n---\n\n```diff\n" + HEAD + b"@@ -1 +1 @@\n-a\n+b\n```\nHope it helps\n-- \n2.39\n"
    )
    patch = parse_patch(data)
    assert patch.parsed and patch.prose_lines == 9 and patch.preamble.startswith(b"From: A")
    assert patch.files[0].line_count == 2 and header_facts(patch.files[0]) == ()


def test_error_text_instead_of_a_patch_is_quoted():
    patch = parse_patch(b"litellm.RateLimitError: 429\nTraceback \xff\n")
    assert patch.unparsed and patch.files == ()
    assert patch.problems == ("no diff in 2 lines of text, which begin with 'litellm.RateLimitError: 429'",)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"*** a\t2001\n--- b\t2001\n***************\n*** 1 ****\n", "a context diff"),
        (b"1c1\n< a\n---\n> b\n", "without context ('normal')"),
        (b"11a\nmore\n.\n4c\nx\n.\n", "an ed script"),
        (b"@@ -1 +1 @@\n-a\n+b\n", "line 1: a hunk without a file header"),
        (b"--- a/x\n+++ b/x\n@@ ... @@\n-a\n+b\n", "'@@ ... @@' of x is no hunk header"),
        (b"diff --git a/x b/x\n", "nothing follows the header of x"),
    ],
)
def test_what_is_not_read_says_why(data, words):
    patch = parse_patch(data)
    assert patch.unparsed and words in patch.problems[0]


def test_lines_outside_the_counts_are_not_shown_as_changes():
    patch = parse_patch(HEAD + b"@@ -1 +1 @@\n-a\n+b\n+c\n")
    assert patch.added == 1 and "1 line after the hunk in line 5" in patch.files[0].notes[0]
    patch = parse_patch(HEAD + b"@@ -1 +1 @@\n-a\n+b\n+c\n@@ -9 +9 @@\n-d\n+e\n")
    assert patch.unparsed and patch.added == 2 and "outside its counts" in patch.problems[0]


def test_svn_labels_and_no_prefix_keep_the_written_path():
    data = b"Index: src/x\n===\n--- src/x\t(revision 0)\n+++ src/x\t(working copy)\n@@ -0,0 +1 @@\n+a\n"
    file = only_file(data)
    assert (file.path, file.old_path, file.status) == ("src/x", None, "added")


def test_a_stripped_blank_context_line_is_context():
    assert rows(only_file(HEAD + b"@@ -1,2 +1,3 @@\n a\n\n+b\n"))[1] == ("context", 2, 2, b"", "\n")


def test_a_patch_without_final_line_end_is_read_and_said():
    patch = parse_patch(HEAD + b"@@ -1 +1 @@\n-a\n+b")
    assert patch.parsed and patch.added == 1 and "ends without a line end" in patch.notes[0]


def test_a_patch_saved_as_utf16_is_read_and_said():
    data = (HEAD + "@@ -1 +1 @@\n-a\n+é\n".encode()).decode().encode("utf-16")
    patch = parse_patch(data)
    assert patch.parsed and "UTF-16" in patch.notes[0]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b"\xe9", b"\xe8", "encoding Latin-1"),
        (b"\xe9", "é".encode(), "encoding Latin-1 -> UTF-8"),
        (b"a", b"\xff\xfea\x00", "encoding UTF-8 -> UTF-16 little endian"),
    ],
)
def test_the_encoding_is_said_in_words(old, new, words):
    assert words in header_facts(only_file(HEAD + b"@@ -1 +1 @@\n-" + old + b"\n+" + new + b"\n"))


def test_a_file_of_mixed_encodings_says_how_many_lines_are_foreign():
    facts = header_facts(only_file(HEAD + b"@@ -0,0 +1,2 @@\n+" + "é".encode() + b"\n+\xe9\n"))
    assert facts == ("encoding mixed: 1 of 2 lines beyond ASCII are not UTF-8, shown as Latin-1",)


@given(
    st.lists(
        st.sampled_from(
            HEAD.split(b"\n")
            + [
                b"@@ -1,2 +1,2 @@",
                b"+a",
                b"-b",
                b" c",
                b"",
                b"\\ No newline",
                b"\r",
                b"GIT binary patch",
                b"literal 9",
                b"zcmV",
                b"diff --cc x",
                b"@@@ -1 -1 +1,2 @@@",
                b"++a",
                b"--- /dev/null",
            ]
        ),
        max_size=25,
    )
)
def test_no_order_of_diff_lines_makes_it_raise(lines):
    patch = parse_patch(b"\n".join(lines))
    assert patch.is_empty or patch.parsed != patch.unparsed
    assert all(line.number is not None or line.marks for file in patch.files for line in file.lines)


@given(st.binary(max_size=400))
def test_no_bytes_make_it_raise(data):
    parse_patch(HEAD + b"@@ -1,3 +1,3 @@\n" + data)
    parse_patch(data)
