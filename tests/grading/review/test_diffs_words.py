"""Changed words, paired lines and what candidates share."""

from grading.review.diffs import parse_patch, shared_changes, word_changes
from grading.review.diffs.words import pair_lines


def marked(text, ranges):
    return [text[start:end] for start, end in ranges]


def test_words_that_differ_are_found_by_hand():
    old, new = "return self._get(k)", "return self._get(k, None)"
    olds, news = word_changes(old, new)
    assert (marked(old, olds), marked(new, news)) == ([], [", None"])


def test_equal_foreign_and_giant_lines_have_no_marks():
    for old, new in [("same", "same"), ("alpha beta gamma", "one two three"), ("a " * 300, "a " * 299 + "b ")]:
        assert word_changes(old, new) == ((), ())


def test_a_change_of_white_space_only_is_marked():
    olds, news = word_changes("x = 1", "x  =  1")
    assert marked("x  =  1", news) == ["  ", "  "] and len(olds) == 2


def test_lines_are_paired_by_likeness_and_in_order():
    olds = ["value = compute(a)", "return value"]
    news = ["# new comment here", "value = compute(a, b)", "return value or None"]
    assert pair_lines(olds, news) == [(0, 1), (1, 2)]


def test_a_huge_block_is_paired_by_position_at_once():
    assert pair_lines(["x"] * 3_000, ["y"] * 2_000) == [(n, n) for n in range(2_000)]


def patch_of(*lines: bytes, path: bytes = b"x"):
    body = b"".join(b"+" + line + b"\n" for line in lines)
    head = b"diff --git a/%b b/%b\n--- a/%b\n+++ b/%b\n@@ -0,0 +1,%d @@\n" % (path, path, path, path, len(lines))
    return parse_patch(head + body)


def test_a_line_counts_once_per_candidate_and_never_across_files_or_line_ends():
    patches = [patch_of(b"a", b"a"), patch_of(b"a"), patch_of(b"a", path=b"y"), patch_of(b"a\r")]
    shares = shared_changes(patches)
    line = patches[0].files[0].hunks[0].lines[0]
    assert (shares.of, shares.count("x", line), shares.count("y", line)) == (4, 2, 1)
    assert shares.common("x", patches[0].files[0].lines) == 2


def test_no_candidates_share_nothing():
    shares = shared_changes([])
    assert (shares.of, shares.common("x", ()), shares.lines) == (0, 0, {})
