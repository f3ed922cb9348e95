"""The patches agents and public tools really wrote, held against the real git binary."""

import shutil
import subprocess
from pathlib import Path

import pytest

from grading.review.diffs import (
    RowOptions,
    file_head_html,
    file_rows_html,
    interdiff,
    parse_patch,
    without_blank_changes,
)

REAL = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "real"
PATCHES = sorted(path for path in (REAL / "patches").glob("*") if path.suffix not in (".json", ".md"))
CANDIDATES = sorted((REAL / "groups").glob("*/candidates/*/patch.diff"))

pytestmark = [
    pytest.mark.skipif(not REAL.is_dir(), reason="../shared/data/real is not beside the repository"),
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
]
# git strips the first folder of any path; svn wrote these without a/ and b/, so the written path is the true one
UNPREFIXED = {"whatthepatch_mozilla-527452-5.comment", "whatthepatch_svn-mixed_line_ends.patch"}


def name(path: Path) -> str:
    return path.name if path in PATCHES else "/".join(path.parts[-4:-1:2])


def gits_numbers(path: Path, folder: Path) -> list[tuple[str, str, str]] | None:
    """(added, removed, path) per file as `git apply --numstat` counts them; None where git refuses the patch."""
    command = ["git", "apply", "--numstat", "-z", str(path)]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    if done.returncode:
        return None
    return [tuple(row.decode().split("\t", 2)) for row in done.stdout.split(b"\0") if row]


def test_all_the_real_patches_are_there():
    assert (len(PATCHES), len(CANDIDATES)) == (53, 98)


@pytest.mark.parametrize("path", PATCHES + CANDIDATES, ids=name)
def test_counts_equal_gits_and_refusals_have_a_reason(path, tmp_path):
    patch = parse_patch(path.read_bytes())
    ours = [("-", "-", f.path) if f.is_binary else (str(f.added), str(f.removed), f.path) for f in patch.files]
    theirs = gits_numbers(path, tmp_path)
    if theirs is None:
        notes = [*patch.notes, *(note for file in patch.files for note in file.notes)]
        prefixed = all(b" a/" in path.read_bytes() for _ in patch.files)
        assert patch.is_empty or patch.problems or notes or not prefixed
        return
    assert patch.parsed, patch.problems
    if path.name in UNPREFIXED:
        ours, theirs = ([row[:2] for row in rows] for rows in (ours, theirs))
    assert ours == theirs


@pytest.mark.parametrize("path", PATCHES + CANDIDATES, ids=name)
def test_every_real_file_renders_with_rows_for_all_its_lines(path):
    for index, file in enumerate(parse_patch(path.read_bytes()).files):
        html = file_rows_html(file, options=RowOptions(letter="C", index=index, max_rows=10**9), cited={})
        assert html.count('<td class="ln">') == file.line_count + len(file.hunks)
        assert f"+{file.added:,}" in file_head_html(file)


@pytest.mark.parametrize("path", CANDIDATES, ids=name)
def test_numbers_point_at_the_right_line_of_the_result(path):
    """Rebuild each side of a hunk from the numbers: they run without a gap and end where the header says."""
    for file in parse_patch(path.read_bytes()).files:
        if file.problems:
            continue
        for hunk in file.hunks:
            new = [line.new_no for line in hunk.lines if line.new_no is not None]
            old = [line.old_no for line in hunk.lines if line.old_no is not None]
            assert new == list(range(hunk.new_start, hunk.new_start + hunk.new_count))
            assert old == list(range(hunk.old_start, hunk.old_start + hunk.old_count))


def test_the_tally_of_the_98_candidates():
    # 3 gave no patch; 4 were stripped of their last blank context line, so their last hunk is cut, as git says too
    patches = [parse_patch(path.read_bytes()) for path in CANDIDATES]
    assert sum(patch.parsed for patch in patches) == 91
    assert sum(patch.unparsed for patch in patches) == 4
    assert sum(patch.is_empty for patch in patches) == 3


def test_numbers_equal_a_real_checkout_of_git(tmp_path):
    """git makes the diff of two trees; each numbered line must be that line of the file it names."""

    def git(*arguments: str) -> bytes:
        return subprocess.run(["git", *arguments], cwd=tmp_path, check=True, capture_output=True).stdout

    before = {"a.txt": b"1\n2\r\n3\n4\n5\n6\n7\n8\n9\n", "gone": b"x\ny", "ein stück": b"a\rb\n"}
    after = {"a.txt": b"0\n1\n2\n3\n4\n5\n6\n7\n9\nnew", "neu\t": b"\x0c\n\x85\n", "ein stück": b"a\rc\n"}
    git("init", "-q")
    for files in (before, after):
        for path in tmp_path.iterdir():
            path.unlink() if path.is_file() else None
        for file, content in files.items():
            (tmp_path / file).write_bytes(content)
        if files is before:
            git("add", "-A")
        else:
            git("add", "-N", "neu\t")
    patch = parse_patch(git("-c", "core.autocrlf=false", "diff"))
    assert patch.parsed and {file.path for file in patch.files} == {"a.txt", "gone", "ein stück", "neu\t"}
    for file in patch.files:
        for line in file.lines:
            for number, tree in ((line.old_no, before), (line.new_no, after)):
                if number is not None:
                    wanted = tree[file.path].split(b"\n")[number - 1]
                    assert line.content + (b"\r" if line.eol == "\r\n" else b"") == wanted


def base_of(file) -> bytes:
    """A file that the patch fits: its old lines at their numbers, filler between, no line after the last one."""
    known = {line.old_no: line for line in file.lines if line.old_no is not None}
    lines = []
    for number in range(1, max(known, default=0) + 1):
        line = known.get(number)
        lines.append(line.content + line.eol.encode() if line else b"not in the patch: %d\n" % number)
    return b"".join(lines)


@pytest.mark.parametrize("path", PATCHES + CANDIDATES, ids=name)
def test_every_line_stands_where_git_puts_it(path, tmp_path):
    """git applies the patch to a base made of our old numbers; each new number must be that line of git's result."""
    patch = parse_patch(path.read_bytes())
    places = [place for file in patch.files for place in {file.old_path, file.new_path} if place]
    plain = [file for file in patch.files if file.kind == "text" and not file.is_combined]
    if path.name in UNPREFIXED or patch.problems or len(plain) < len(patch.files) or len(set(places)) < len(places):
        return  # what git would need more than lines for
    for file in plain:
        # plain diff names the same file twice by two names, and git takes the second
        for base in [file.old_path] + [file.new_path] * (file.status == "modified"):
            if base:
                (tmp_path / base).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / base).write_bytes(base_of(file))
    command = ["git", "apply", "-v", "--whitespace=nowarn", str(path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    if gits_numbers(path, tmp_path) is None:
        return
    assert done.returncode == 0 and b"offset" not in done.stderr, done.stderr
    for file in plain:
        if file.new_path is None:
            left = tmp_path / file.old_path  # svn's word for a file that is gone makes git leave an empty one
            assert not left.exists() or left.read_bytes() == b""
            continue
        result = (tmp_path / file.new_path).read_bytes().split(b"\n")
        for line in file.lines:
            if line.new_no is not None:
                assert result[line.new_no - 1] == line.content + line.eol.encode().removesuffix(b"\n")


def test_most_real_patches_were_held_against_gits_result():
    whole = [patch for path in PATCHES + CANDIDATES if (patch := parse_patch(path.read_bytes())).parsed]
    plain = [p for p in whole if all(f.kind == "text" and not f.is_combined for f in p.files)]
    assert len(plain) >= 115


@pytest.mark.parametrize("path", PATCHES, ids=name)
def test_every_real_patch_can_be_split_quieted_and_compared(path):
    patch = parse_patch(path.read_bytes())
    for index, file in enumerate(patch.files):
        halves = sum((line.kind != "add") + (line.kind != "del") for line in file.lines)
        html = file_rows_html(file, options=RowOptions("C", index, view="split", max_rows=10**9), cited={})
        assert html.count('<td class="code') == (file.line_count if file.is_combined else halves)
        quiet, hidden = without_blank_changes(file)
        assert (file.added - quiet.added, file.removed - quiet.removed) == (hidden, hidden)
        found = interdiff(file, file)
        assert not found.file.hunks and (found.is_equal or found.why_not)
        alone = interdiff(None, file)
        spared = file.added - alone.file.added  # git's diff is not always the shortest
        assert alone.why_not or 0 <= spared == file.removed - alone.file.removed <= 1
