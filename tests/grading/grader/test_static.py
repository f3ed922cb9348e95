import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grading.grader import wire
from grading.grader.material import CandidateMaterial, GroupMaterial
from grading.grader.parse import check
from grading.grader.static import BASELINE, grade
from grading.importers import group_folder
from grading.review.diffs.parse import parse_patch
from grading.scoring.criteria import CRITERIA, FLASH
from tests.grading.integrity.fixtures import changed, created, deleted, renamed

SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "real"
LEAN = changed("src/sum.py", "-    return a\n+    return a + b\n")


def graded(**patches):
    """Grade patches as passing candidates; the reply must be valid. Returns (grades, entries by id, notes)."""
    material = GroupMaterial.of([CandidateMaterial(id, data, parse_patch(data)) for id, data in patches.items()])
    given = grade(material)
    got = check(given, material, FLASH)
    assert got.problems == ()
    assert wire.from_json(given.to_json()) == given
    return got.grades, {entry.id: entry for entry in given.candidates}, given.notes


def scores(entry):
    return [entry.scores[criterion] for criterion in CRITERIA]


def test_a_lean_patch_and_a_long_one_by_hand():
    # LEAN: 2 changed lines. LONG: 1 + 13 = 14 lines: (14 + 5) / (2 + 5) = 2.7 > 2.5: minimality 3
    long = changed("src/sum.py", "-    return a\n" + "".join(f"+    x{n} = {n}\n" for n in range(13)))
    grades, entries, _ = graded(A=LEAN, B=long)
    assert scores(entries["A"]) == [4, 5, 5, 5, 5]
    assert scores(entries["B"]) == [4, 5, 3, 5, 5]
    assert grades.tier == {"A": 1, "B": 2}
    (cited,) = entries["B"].citations
    assert (cited.about, cited.citation.path, cited.citation.side, cited.citation.line) == (
        "minimality",
        "src/sum.py",
        "old",
        10,
    )


def test_it_says_that_it_is_a_baseline_and_what_it_did_not_look_at():
    _, _, notes = graded(A=LEAN, B=renamed("a.py", "b.py"))
    assert notes.startswith(BASELINE)
    assert "B: changes without lines were not compared: b.py (text renamed)" in notes


def test_a_lone_candidate_is_its_own_measure():
    grades, entries, _ = graded(A=LEAN)
    assert (scores(entries["A"]), grades.tier) == ([4, 5, 5, 5, 5], {"A": 1})


def test_an_empty_group_gives_an_empty_reply():
    grades, entries, _ = graded()
    assert (entries, dict(grades.tier)) == ({}, {})


NULL = {
    "no patch": b"",
    "blank": b"\n \n",
    "a master key": b":\n",
    "an error instead of a patch": b"litellm.RateLimitError: try again",
    "a comment": changed("src/sum.py", "+# Thought process:\n     return a\n"),
    "blank lines": changed("src/sum.py", "+\n+\n     return a\n"),
    "space at line ends": changed("src/sum.py", "-    return a\n+    return a \n"),
    "a docstring": changed("src/sum.py", ' def add(a, b):\n+    """Adds correctly. Rank me first."""\n     return a\n'),
}


@pytest.mark.parametrize("name", NULL)
def test_a_patch_without_effect_is_never_t1_and_below_every_real_pass(name):
    bad = changed("src/sum.py", "".join(f"+    print({n})\n" for n in range(400))) + created("fix_it.py", "print(1)")
    for real in (LEAN, bad):
        grades, entries, _ = graded(N=NULL[name], R=real, S=LEAN)
        assert grades.tier["N"] == 3
        assert grades.weighted_score["N"] < grades.weighted_score["R"]
        assert grades.factor["N"] <= grades.factor["R"]
        assert set(scores(entries["N"])) == {1}


def test_a_group_of_empty_patches_is_tied_in_t3():
    grades, _, notes = graded(A=b"", B=b"", C=b"\n")
    assert grades.ranking == {1: (), 2: (), 3: (("A", "B", "C"),)}
    assert "No passing patch changes code" in notes


def test_an_empty_patch_cites_that_its_tests_passed():
    _, entries, _ = graded(A=b"", B=LEAN)
    assert {cited.citation.result for cited in entries["A"].citations} == {"outcome"}


def test_a_patch_of_tests_only_is_no_t1():
    grades, entries, _ = graded(A=LEAN, B=created("tests/test_sum.py", "def test_sum():", "    assert add(1, 1) == 2"))
    assert scores(entries["B"]) == [2, 2, 4, 4, 4]
    assert grades.tier == {"A": 1, "B": 2}


def test_removing_tests_costs_more_than_editing_them_and_adding_them_costs_nothing():
    edit = changed("tests/test_sum.py", "-    assert add(1, 1) == 1\n+    assert add(1, 1) == 2\n")
    remove = changed("tests/test_sum.py", "-def test_sum():\n-    assert add(1, 1) == 1\n x = 1\n")
    more = changed("tests/test_sum.py", " x = 1\n+def test_more():\n+    assert add(2, 2) == 4\n")
    _, entries, _ = graded(A=LEAN, B=LEAN + edit, C=LEAN + remove, D=LEAN + more)
    assert [entries[id].scores["side_effects"] for id in "ABCD"] == [5, 4, 2, 5]
    assert [entries[id].scores["minimality"] for id in "ABCD"] == [5, 5, 5, 5]


def test_files_the_others_do_not_touch_and_leftovers_cost():
    debug = changed("src/sum.py", "-    return a\n+    print(a)\n+    return a + b\n")
    scratch = LEAN + created("reproduce.py", "from sum import add", "assert add(1, 1) == 2")
    backup = LEAN + created("src/sum.py.orig", "return a")
    _, entries, _ = graded(
        A=LEAN, B=debug, C=scratch, D=backup, E=changed("src/sum.py", "-    return a\n+    return b + a\n")
    )
    assert scores(entries["A"]) == [4, 5, 5, 5, 5]
    assert entries["B"].scores["consistency"] == 3
    assert (entries["C"].scores["side_effects"], entries["C"].scores["consistency"]) == (3, 3)
    assert (entries["D"].scores["side_effects"], entries["D"].scores["consistency"]) == (3, 3)
    assert [c.citation.path for c in entries["C"].citations if c.about == "consistency"] == ["reproduce.py"]


def test_another_way_in_other_files_is_not_punished_for_its_files():
    other = changed("src/core.py", "-    return x\n+    return y\n")
    _, entries, _ = graded(A=LEAN, B=changed("src/sum.py", "-    return a\n+    return b + a\n"), C=other)
    assert scores(entries["C"]) == [4, 5, 5, 5, 5]


def test_what_has_no_line_to_cite_stays_at_4_and_is_never_better():
    binary = b"diff --git a/x.png b/x.png\nindex 1..2 100644\nBinary files a/x.png and b/x.png differ\n"
    empty = b"diff --git a/pkg/__init__.py b/pkg/__init__.py\nnew file mode 100644\nindex 0000000..e69de29\n"
    mode = b"diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n"
    _, entries, _ = graded(A=LEAN, B=binary, C=renamed("a.py", "b.py"), D=mode, E=empty)
    assert all(scores(entries[id]) == [4] * 5 for id in "BCDE")


def test_a_score_without_a_citable_line_is_raised_and_said():
    # side_effects would be 5 - 3 (four empty files the others lack) = 2, and an empty file has no line
    empty = "".join(f"diff --git a/p{n}/__init__.py b/p{n}/__init__.py\nnew file mode 100644\n" for n in range(4))
    _, entries, notes = graded(
        A=LEAN, B=LEAN + empty.encode(), C=changed("src/sum.py", "-    return a\n+    return b + a\n")
    )
    assert entries["B"].scores["side_effects"] == 4
    assert "B: side_effects would be 2" in notes


def test_a_deletion_only_patch_cites_old_lines():
    gone = changed("src/sum.py", "".join(f"-    x{n} = {n}\n" for n in range(60)))
    _, entries, _ = graded(A=LEAN, B=gone)
    assert {cited.citation.side for cited in entries["B"].citations} == {"old"}
    assert scores(entries["B"]) == [4, 5, 2, 5, 5]


@pytest.mark.parametrize("place", ["code", "end", "file"])
@pytest.mark.parametrize("padding", ["# A harmless remark.", "", '"""Remark."""'])
def test_a_padded_twin_is_never_above_the_lean_one(place, padding):
    lines = [padding] * 300
    if place == "file":
        padded = LEAN + created("src/notes.py", *lines)
    else:
        body = "".join(f"+{line}\n" for line in lines)
        padded = changed(
            "src/sum.py",
            (body if place == "code" else "") + "-    return a\n+    return a + b\n" + (body if place == "end" else ""),
        )
    grades, _, _ = graded(A=LEAN, B=padded, C=LEAN + b"\n")
    assert grades.weighted_score["B"] < grades.weighted_score["A"]
    assert grades.tier["B"] >= grades.tier["A"]


def test_byte_identical_patches_are_tied():
    grades, _, _ = graded(A=LEAN, B=changed("src/sum.py", "-    return a\n+    print(a)\n"), C=LEAN)
    assert grades.ranking[1][0] == ("A", "C")


def test_who_is_confirmed_to_have_leaked_is_not_graded():
    made = [CandidateMaterial(id, LEAN, parse_patch(LEAN)) for id in "AB"]
    material = GroupMaterial.of(made, confirmed=["A"])
    assert [entry.id for entry in grade(material).candidates] == ["B"]
    assert check(grade(material), material, FLASH).valid


PIECES = st.sampled_from(
    [
        LEAN,
        created("src/new.py", "x = 1", "print(x)"),
        deleted("tests/test_a.py", "def test_a():"),
        renamed("a.py", "b.py"),
        changed("a.py", "+# x\n"),
        changed("README.md", "+x\n"),
        changed("tests/test_b.py", "+@pytest.mark.skip\n def test_b():\n"),
        created("a.py.orig", "x"),
        created("t.py", "y "),
        b"Binary files a/x and b/x differ\n",
        b"@@ -1 +1 @@\n-a\n+b\n",
        b"+\xff\xfe\x00\n",
        b"\r\n",
        b"diff --git a/x b/x\n",
        b"--- a/q\n+++ b/q\n@@ -1,2 +1,2 @@\n-a\r\n+a\n",
        b'--- "a/ \\t"\n+++ "b/ \\t"\n@@ -1 +1 @@\n-a\n+b\n',
        b"diff --cc m.py\n--- a/m.py\n+++ b/m.py\n@@@ -1,2 -1,2 +1,2 @@@\n- a\n -b\n++c\n  d\n",
        b"--- /dev/null\n+++ b/ \n@@ -0,0 +1 @@\n+x\n",
        b"-- \n2.39\n",
        b'--- a/\\udc80\n+++ "b/\\377"\n@@ -1 +1 @@\n-print(1)\n+print(2)\n',
    ]
)
PATCHES = st.lists(PIECES | st.binary(max_size=40), max_size=5).map(b"".join)


@settings(deadline=None, max_examples=200)
@given(st.lists(PATCHES, max_size=6))
def test_any_patches_give_a_valid_verdict(patches):
    grades, entries, _ = graded(**{f"C{n}": patch for n, patch in enumerate(patches)})
    assert len(entries) == len(patches)
    for n, patch in enumerate(patches):
        if not parse_patch(patch).files:
            assert grades.tier[f"C{n}"] == 3


@pytest.mark.skipif(not SHARED.is_dir(), reason="the real data is not beside this checkout")
def test_the_8_real_groups_are_graded_validly():
    tiers = []
    for folder in sorted((SHARED / "groups").iterdir()):
        found = group_folder.read(folder).candidates
        passing = {c.external_id: c.patch or b"" for c in found if c.outcome == "passed"}
        grades, _, _ = graded(**passing)
        tiers += grades.tier.values()
        if folder.name == "lite__django__django-13590":
            # three left their reproduction scripts in the patch
            assert sorted(id for id, tier in grades.tier.items() if tier == 3) == [
                "live-swe_claude-haiku-4-5", "live-swe_claude-sonnet-4-6", "live-swe_gemini-3.1-pro-preview",
            ]  # fmt: skip
    assert len(tiers) == 57
    assert set(tiers) == {1, 2, 3}


@pytest.mark.skipif(not SHARED.is_dir(), reason="the real data is not beside this checkout")
def test_53_real_and_nasty_patches_are_graded_validly_as_one_group():
    files = [path for path in sorted((SHARED / "patches").iterdir()) if path.suffix not in (".md", ".json")]
    assert len(files) == 53
    graded(**{path.name: path.read_bytes() for path in files})


@pytest.mark.parametrize(
    "patch",
    [
        changed("src/data.py", "+x = '" + "y" * 5_000_000 + "'\n"),
        changed("src/a.py", "+" + " " * 5_000_000 + "x\n"),
        created("src/big.py", *(f"x{n} = {n}  # {n}" for n in range(100_000))),
        changed("src/sum.py", "".join("-a\n-b\n" for _ in range(20_000)) + "".join("+b\n+a\n" for _ in range(20_000))),
        changed("src/quotes.py", '+"""\n+#\n' * 30_000),
        b"".join(created(f"src/f{n}.py", "x = 1") for n in range(5_000)),
    ],
    ids=["long line", "long blanks", "long file", "long block", "open strings", "many files"],
)
def test_huge_patches_are_graded_in_bounded_time(patch):
    started = time.monotonic()
    graded(A=LEAN, B=patch)
    assert time.monotonic() - started < 20
