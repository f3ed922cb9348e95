"""The labels know what a patch is made of, and say what that is worth."""

from training_bridge.tiny_job import catalog, edits
from training_bridge.tiny_job.labels import answer, known_patches
from training_bridge.tiny_job.tree import diff


def patch_of(task, *kinds) -> str:
    tree = task.base
    for kind in kinds:
        options = (edit.make(tree) for group in edits.vocabulary(task).values() for edit in group if edit.kind == kind)
        tree = next(change for change in options if change is not None).tree
    return diff(task.base, tree).decode()


def judged(*candidates) -> dict:
    asked = [{"id": id, "outcome": outcome, "patch": patch} for id, outcome, patch in candidates]
    found = answer({"group": "g", "task": "chunks", "candidates": asked})
    return {one["id"]: one for one in found["candidates"]}


def test_a_fix_is_the_best_and_a_rewrite_a_special_case_and_a_paste_are_not():
    task = catalog.load()["chunks"]
    kinds = ("fix", "rewrite", "special", "paste")
    found = judged(*((kind, "passed", patch_of(task, kind)) for kind in kinds))
    assert set(found["fix"]["scores"].values()) == {5} and found["fix"]["flags"] == {}
    assert found["rewrite"]["flags"] == {"unrequested_rewrite": True} and found["rewrite"]["scores"]["minimality"] == 1
    assert found["special"]["flags"] == {"test_specific_workaround": True}
    assert found["paste"]["scores"]["approach"] == 2
    assert all(one["citations"] for kind, one in found.items() if kind != "fix")


def test_edits_made_one_after_the_other_are_known():
    task = catalog.load()["chunks"]
    assert known_patches(task)[patch_of(task, "fix", "tidy")] == {"fix", "tidy"}
    assert (
        answer({"group": "g", "task": "chunks", "candidates": [{"id": "A", "outcome": "passed", "patch": "?"}]}) is None
    )


def test_a_failure_costs_approach_and_precision_and_twins_stay_equal():
    task = catalog.load()["chunks"]
    patch = patch_of(task, "partial")
    found = judged(("A", "failed", patch), ("B", "passed", patch), ("C", "failed", ""))
    assert found["A"]["scores"] == found["B"]["scores"]
    assert found["A"]["scores"]["precision"] == 2 and found["C"]["scores"]["approach"] == 3
