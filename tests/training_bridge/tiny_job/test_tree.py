import random
import subprocess

import pytest

from training_bridge.tiny_job import catalog, edits, tree

TASKS = catalog.load()


def write(folder, files):
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode())


def read(folder):
    paths = [path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts]
    return {str(path.relative_to(folder)): path.read_bytes().decode() for path in paths}


def apply_with_git(folder, old, new):
    write(folder, old)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    patch = tree.diff(old, new)
    done = subprocess.run(["git", "-C", str(folder), "apply", "-"], input=patch, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode() + patch.decode()
    return read(folder)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"a.py": "x\n"}, {"a.py": "y\n"}),
        ({"a.py": "x"}, {"a.py": "x\n"}),
        ({"a.py": "x\n"}, {"a.py": "x"}),
        ({"a.py": "x\n"}, {"a.py": "x\n", "new/file.md": "one\ntwo\n"}),
        ({"a.py": "x\n", "gone.py": "1\n2\n"}, {"a.py": "x\n"}),
        ({"a.py": "x\f\ny\r\nz\n"}, {"a.py": "x\f\ny\r\nzz\n"}),
        ({"a.py": "x\n" * 40}, {"a.py": "x\n" * 20 + "ü€\n" + "x\n" * 20}),
        ({"a.py": "x\n"}, {"b.py": "no end"}),
    ],
)
def test_git_turns_the_old_tree_into_the_new_one(tmp_path, old, new):
    assert apply_with_git(tmp_path, old, new) == new


def test_git_applies_what_a_rollout_of_several_edits_leaves(tmp_path):
    rng = random.Random(0)
    for task in TASKS.values():
        project = dict(task.base)
        choices = [edit for group in edits.vocabulary(task).values() for edit in group]
        for edit in rng.sample(choices, 6):
            change = edit.make(project)
            project = change.tree if change else project
        folder = tmp_path / task.key
        folder.mkdir()
        assert apply_with_git(folder, task.base, project) == project


def test_equal_trees_have_an_empty_diff():
    assert tree.diff({"a": "1\n"}, {"a": "1\n"}) == b""


def test_the_index_line_carries_the_ids_git_computes(tmp_path):
    (tmp_path / "a").write_text("hello\n")
    found = subprocess.run(["git", "hash-object", str(tmp_path / "a")], capture_output=True, check=True).stdout
    assert tree.blob_id("hello\n") == found.decode()[:7]


def test_the_digest_tells_path_from_content():
    assert tree.digest({"ab": "c"}) != tree.digest({"a": "bc"})
    assert tree.digest({"a": "1", "b": "2"}) == tree.digest({"b": "2", "a": "1"})


def test_equal_trees_have_equal_archives():
    assert tree.archive({"a": "1", "b/c": "2"}) == tree.archive({"b/c": "2", "a": "1"})
