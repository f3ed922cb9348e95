import re

from grading.grader.compare import Compared, compared
from grading.grader.tool_texts import listed, patch_lines, picked_files
from grading.review.anchors import Citation, resolve
from grading.review.diffs.parse import parse_patch
from tests.grading.grader.seen import changed

HEAD = "diff --git a/f.py b/f.py\n--- a/f.py\n+++ b/f.py\n"
ONE = parse_patch(f"{HEAD}@@ -10,3 +10,4 @@\n a\n-b\n+B\n+shared\n c\n@@ -40,1 +41,2 @@\n x\n+only one\n".encode())
TWO = parse_patch(f"{HEAD}@@ -9,3 +9,4 @@\n z\n a\n+shared\n-b\n+BB\n@@ -80,1 +81,1 @@\n-q\n+Q\n".encode())


def lines(one, other, path=None):
    return list(compared(Compared("A", one), Compared("B", other), path))


def test_two_patches_stand_side_by_side_on_the_base():
    assert lines(ONE, TWO) == [
        "file f.py: A f.py +3 -1; B f.py +3 -2",
        "  around old lines 9-12:",
        "  A = old     11 | - b",
        "  A   new     11 | + B",
        "  A = new     12 | + shared",
        "  B   new     12 | + BB",
        "  B   and 2 lines as marked with = (new 11, old 11)",
        "  around old lines 40-40:",
        "  A   new     42 | + only one",
        "  around old lines 80-80:",
        "  B   old     80 | - q",
        "  B   new     81 | + Q",
    ]


def test_a_file_of_one_of_them_is_said_to_be_only_its():
    assert lines(parse_patch(changed("a.py", new=["x"])), parse_patch(changed("b.py", old=["y"]))) == [
        "file a.py: only A a.py +1 -0",
        "  A new      1 | + x",
        "file b.py: only B b.py +0 -1",
        "  B old      1 | - y",
    ]


def test_the_same_patch_is_said_to_be_the_same():
    assert lines(ONE, ONE)[0] == "A and B make the same changes."


def test_one_file_is_compared_by_its_path_on_either_side():
    moved = parse_patch(
        b"diff --git a/f.py b/g.py\nrename from f.py\nrename to g.py\n"
        b"--- a/f.py\n+++ b/g.py\n@@ -10,1 +10,1 @@\n-a\n+A\n"
    )
    assert lines(ONE, moved, "g.py") == lines(ONE, moved, "f.py") == lines(ONE, moved)
    assert lines(ONE, moved, "h.py") == []


def test_every_number_shown_is_one_that_a_citation_needs():
    cite = re.compile(r"^  ([AB]) [= ] (new|old) +(\d+) \| [+-] (.*)$")
    found = [cite.match(line) for line in lines(ONE, TWO)]
    assert sum(bool(one) for one in found) == 7
    for one in filter(None, found):
        letter, side, number, text = one.groups()
        citation = Citation("patch_line", letter, path="f.py", side=side, line=int(number), quote=text)
        patch = ONE if letter == "A" else TWO
        got = resolve(citation, patch=patch, event_text=lambda _: None, event_count=0, results=())
        assert got.state == "exact", (one.group(), got)


def test_a_patch_is_listed_with_the_numbers_of_its_citations():
    got = list(patch_lines(ONE.files))
    assert got[:6] == [
        "file f.py +3 -1",
        "  @@ old 10+3, new 10+4 @@",
        "        10 |   a",
        "old     11 | - b",
        "new     11 | + B",
        "new     12 | + shared",
    ]


def test_a_renamed_file_names_both_of_its_paths():
    moved = parse_patch(b"diff --git a/f.py b/g.py\nsimilarity index 90%\nrename from f.py\nrename to g.py\n")
    assert "  path on side new: g.py; path on side old: f.py" in list(patch_lines(moved.files))
    assert picked_files(moved, "f.py") == picked_files(moved, "g.py") == list(moved.files)


def test_a_listing_that_is_cut_says_where_to_go_on_and_nothing_is_lost():
    rows = [f"row {n} " + "x" * 50 for n in range(1, 101)]
    start, read = 1, []
    while start:
        piece = listed(rows, start=start, room=700)
        read += piece.body.split("\n")
        assert len(piece.body) <= 700
        start = int(piece.cut.rpartition("start=")[2].rstrip(".")) if piece.cut else 0
    assert read == rows
    assert "Lines 1-12 of 100 are shown" in listed(rows, room=700).cut


def test_a_line_longer_than_the_room_is_shown_alone_and_what_follows_is_counted():
    long = parse_patch(changed("a.py", new=["y" * 5000]))
    line = list(patch_lines(long.files))[-1]
    assert line.endswith("…(+4600 characters)")
    assert list(patch_lines(long.files, offset=4900))[-1] == "new      1 | + " + "y" * 100
