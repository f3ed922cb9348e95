"""Results compared over the whole file of the base; a line of their difference leads to a line of a patch."""

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.review.diffs import parse_patch
from grading.review.diffs.whole import Misfit, Own, applied, lines_of, own_line, whole_interdiff

TEXTS = st.lists(st.sampled_from([f"line {n}" for n in range(5)]), max_size=25)


def patch_of(old: list[str], new: list[str], context: int = 1):
    lines = difflib.unified_diff(old, new, "a/x.py", "b/x.py", lineterm="", n=context)
    text = "diff --git a/x.py b/x.py\n" + "".join(f"{line}\n" for line in lines)
    files = parse_patch(text.encode()).files
    return files[0] if files else None


def whole(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


@given(TEXTS, TEXTS)
def test_a_patch_applied_to_its_base_is_its_result(old, new):
    file = patch_of(old, new)
    if file and file.hunks:
        assert applied(lines_of(whole(old)), file) == lines_of(whole(new))


@given(TEXTS, TEXTS, TEXTS)
def test_both_sides_of_the_difference_are_the_two_results(base, one, other):
    left, right = patch_of(base, one), patch_of(base, other)
    if not (left and left.hunks and right and right.hunks):
        return
    found = whole_interdiff(left, right, {"x.py": whole(base)})
    assert bool(found.file.hunks) == (one != other)
    for line in found.file.lines:
        texts = {"del": one, "add": other}
        if line.kind != "add":
            assert one[line.old_no - 1] == line.content.decode()
        if line.kind != "del":
            assert other[line.new_no - 1] == line.content.decode()
        if line.is_changed and (own := own_line(left, right, line)):
            file = (left, right)[own.of]
            kind = "add" if own.side == "new" else "del"
            cited = next(one for one in file.lines if one.kind == kind and one.number == own.line)
            assert cited.content.decode() == texts[line.kind][(line.number or 0) - 1]


def test_a_line_leads_to_who_added_it_or_to_who_took_it_away():
    base = ["a", "b", "c", "d"]
    left, right = patch_of(base, ["a", "B", "c", "d"]), patch_of(base, ["a", "b", "c"])
    found = whole_interdiff(left, right, {"x.py": whole(base)}).file
    owners = {(line.kind, line.content): own_line(left, right, line) for line in found.lines if line.is_changed}
    assert owners == {
        ("del", b"B"): Own(0, "new", 2),  # left added it
        ("add", b"b"): Own(0, "old", 2),  # left took it away, right has it from the base
        ("del", b"d"): Own(1, "old", 4),  # right took it away
    }


def test_a_patch_that_does_not_fit_the_base_says_where():
    file = patch_of(["a", "b"], ["a", "c"])
    with pytest.raises(Misfit, match="line 2 of the base is “x”, the patch has “b”"):
        whole_interdiff(file, None, {"x.py": b"a\nx\n"})


def test_the_last_line_without_an_end_and_crlf_are_kept():
    assert lines_of(b"a\r\nb") == [(b"a", "\r\n"), (b"b", "")]
    assert lines_of(b"") == [] and lines_of(b"a\n") == [(b"a", "\n")]
