"""Each rollout's version of the repository: shown in parts and scrubbed, apart from the others; and who attacks it."""

import os
from pathlib import Path

import pytest

from grading.errors import BadInput, NotFound
from grading.grader import trees
from grading.grader.trees import stays_inside
from tests.factories import PATCH
from tests.grading.grader.repositories import FILES, bundle, made, make_repository, names, opened, planted, stored_task

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def own_data(settings, tmp_path):
    settings.GAGAR_DATA_DIR = tmp_path / "data"


def test_each_rollout_has_its_own_version_and_the_base_stays(tmp_path):
    folder, commit = make_repository(tmp_path / "r")
    patches = [PATCH.replace(b"return 42", b"return %d" % n) for n in range(30)]
    with opened(stored_task(bundle(folder), base_commit=commit), patches) as ws:
        assert ws.repository.commit == commit
        assert ws.why_no_repository == ""
        assert names(ws) == sorted(FILES)
        for letter, shown in ws.passing.items():
            number = shown.raw.patch.split(b"return ")[2].split()[0]
            assert ws.read_file("app.py", letter) == b"def answer():\n    return " + number + b"\n"
            copy = ws.tree(letter)
            assert (copy / "app.py").read_bytes() == ws.read_file("app.py", letter)
        assert len({ws.tree(letter) for letter in ws.order}) == 30
        assert ws.read_file("app.py") == FILES["app.py"].encode()
        place = ws.folder
    assert not place.exists()


def test_answers_come_in_parts_with_their_totals(tmp_path):
    folder, commit = make_repository(tmp_path / "r", {f"d/f{n:03}.txt": f"line one\nneedle {n}\n" for n in range(50)})
    with opened(stored_task(bundle(folder), base_commit=commit), [b""]) as ws:
        page = ws.list_files("d", start=48, limit=10)
        assert ([file.path for file in page.items], page.total) == (["d/f048.txt", "d/f049.txt"], 50)
        part = ws.read_file("d/f007.txt", offset=5, limit=3)
        assert (part, part.offset, part.total) == (b"one", 5, 18)
        hits = ws.search_files("needle", limit=2)
        assert (hits.total, [(hit.path, hit.line, hit.text) for hit in hits.items]) == (
            50, [("d/f000.txt", 2, "needle 0"), ("d/f001.txt", 2, "needle 1")],
        )  # fmt: skip
        assert ws.search_files("NEEDLE 4[0-3]$", is_regex=True, ignore_case=True).total == 4
        assert ws.search_files("needle", under="d/f001.txt").total == 1
        assert ws.search_files("nowhere").total == 0
        for pattern in ("", "a\0b", "a\nb", "x" * 1000):
            with pytest.raises(BadInput):
                ws.search_files(pattern)
        with pytest.raises(BadInput):
            ws.search_files("(", is_regex=True)
        for path in ("d/none.txt", "../x", "/etc/passwd", "d", "", "\ud800"):
            with pytest.raises(NotFound):
                ws.read_file(path)


def test_of_a_very_long_file_the_length_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(trees, "BLOB_BYTES", 1000)
    folder, commit = make_repository(tmp_path / "r", {"long.txt": "x" * 5000})
    with opened(stored_task(bundle(folder), base_commit=commit), [b""]) as ws:
        part = ws.read_file("long.txt", offset=990)
        assert (part, part.total) == (b"x" * 10, 5000)


def test_a_candidates_own_files_are_shown_scrubbed_and_no_search_tells_who_made_them(tmp_path):
    base = {**FILES, "lib/claude.py": "# Claude by bob@corp.io\n"}
    folder, commit = make_repository(tmp_path / "r", base)
    patch = PATCH.replace(b"return 42", b"return 42  # by gpt-4o, a needle") + made(
        "notes_gpt4.md", text="gpt-4o was here"
    )
    with opened(stored_task(bundle(folder), base_commit=commit), [patch]) as ws:
        shown = "notes_[model].md"
        assert set(names(ws, "A")) == {*base, shown}
        assert ws.read_file(shown, "A") == b"[model] was here\n"
        assert ws.read_file("app.py", "A") == b"def answer():\n    return 42  # by [model], a needle\n"
        assert ws.read_file("lib/claude.py", "A") == base["lib/claude.py"].encode()  # the repository's own
        hits = ws.search_files("needle", "A", under="app.py").items
        assert [(hit.path, hit.line, hit.text) for hit in hits] == [
            ("app.py", 2, "    return 42  # by [model], a needle")
        ]
        assert [hit.path for hit in ws.search_files("was here", "A", under=shown).items] == [shown]
        for name, how in (("gpt-4o", {}), ("GPT", {"ignore_case": True}), ("gp[t]", {"is_regex": True})):
            assert ws.search_files(name, "A", **how).total == 0
        assert ws.search_files("Claude", "A").total == 1
        assert (ws.tree("A") / "notes_gpt4.md").read_text() == "gpt-4o was here\n"  # a check runs what was made


def test_a_patch_that_does_not_apply_is_said_in_gits_words(tmp_path):
    folder, commit = make_repository(tmp_path / "r")
    other = PATCH.replace(b"return 41", b"return 7")
    with opened(stored_task(bundle(folder), base_commit=commit), [other]) as ws:
        assert ws.tree("A") is None
        assert "does not apply" in ws.why_no_tree("A")
        assert "app.py:1" in ws.why_no_tree("A")
        with pytest.raises(NotFound, match="does not apply"):
            ws.read_file("app.py", "A")
        assert ws.tree() is not None
        assert "no candidate" in ws.why_no_tree("Q")


def attacks(host: Path) -> list[bytes]:
    up = "../" * 12
    targets = [str(host), f"{up}{str(host)[1:]}", "/etc/passwd", "/", "..", "../..", "/proc/self/environ", "/dev/zero",
               "/proc/self/fd/0", ".", "loop", "src/../../../../../etc/passwd", "app.py"]  # fmt: skip
    links = [planted("loop", target) for target in targets] + [planted("src/deep/in", target) for target in targets]
    through = [planted("way", str(host.parent)) + made(f"way/{host.name}"), planted("way", "/tmp") + made("way/x/y")]
    names = ["../out", "a/../../out", "/abs", ".git/hooks/post-checkout", ".git/config", "sub/.GIT/config", ".GIT/x"]
    files = [made(name) for name in names] + [made("sub", mode="160000", text=f"Subproject commit {'1' * 40}")]
    attributes = made(".gitattributes", text="* filter=evil diff=evil merge=evil")
    modules = made(".gitmodules", text='[submodule "x"]')
    renamed = b"diff --git a/app.py b/../../out\nsimilarity index 100%\nrename from app.py\nrename to ../../out\n"
    return [*links, *through, *files, attributes, modules, renamed]


@pytest.mark.timeout(150)
def test_no_patch_makes_us_read_or_write_a_file_of_this_machine(tmp_path):
    host = tmp_path / "host.txt"
    host.write_text("the canary of this machine")
    folder, commit = make_repository(tmp_path / "r", links={"own": "src/deep/a.txt", "out": str(host)})
    patches = attacks(host)
    assert len(patches) >= 30
    before = sorted(os.listdir(tmp_path))
    with opened(stored_task(bundle(folder), base_commit=commit), patches) as ws:
        for letter in ws.order:
            if (copy := ws.tree(letter)) is None:
                assert ws.why_no_tree(letter)
                continue
            for file in ws.list_files("", letter).items:
                if file.kind != "submodule":
                    assert b"canary" not in ws.read_file(file.path, letter)
            assert ws.search_files("canary", letter).total == 0
            links = [path for path in copy.rglob("*") if path.is_symlink()]
            assert [path.name for path in links] == ["own"]
            assert (copy / "own").read_bytes() == FILES["src/deep/a.txt"].encode()
            assert (copy / "out").read_text() == str(host)  # a file with the target, not a link
        assert ws.repository.is_intact()
    assert host.read_text() == "the canary of this machine"
    assert sorted(os.listdir(tmp_path)) == sorted({*before, "data"})


def test_a_link_of_the_repository_stays_inside_or_is_none():
    assert stays_inside("a/b/l", "../../x/y")
    assert stays_inside("l", "x")
    for path, target in (("l", "../x"), ("a/l", "../../x"), ("a/l", "/etc"), ("a/l", "b/../../../x"), ("l", "")):
        assert not stays_inside(path, target)


def test_what_one_candidate_writes_reaches_no_other_and_not_the_base(tmp_path):
    folder, commit = make_repository(tmp_path / "r")
    with opened(stored_task(bundle(folder), base_commit=commit), [PATCH, b""]) as ws:
        a, b, base = ws.tree("A"), ws.tree("B"), ws.tree()
        assert len({a, b, base}) == 3
        (a / "tests" / "test_app.py").write_text("assert True\n")
        (a / "conftest.py").symlink_to("/etc/passwd")
        assert ws.files.changed("A") == ["conftest.py", "tests/test_app.py"]
        assert ws.files.changed("B") == []
        fresh = ws.tree("A")
        assert fresh != a
        assert (fresh / "tests" / "test_app.py").read_text() == FILES["tests/test_app.py"]
        assert ws.tree("B") == b
        assert (b / "tests" / "test_app.py").read_text() == FILES["tests/test_app.py"]
        assert ws.repository.is_intact()
