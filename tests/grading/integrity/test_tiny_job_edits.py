"""The tasks of the tiny job: honest edits give no hint, tampering and pasting are seen."""

from grading.integrity.registry import detect
from grading.review.diffs.parse import parse_patch
from training_bridge.tiny_job import catalog, edits
from training_bridge.tiny_job.tree import diff

HONEST = {"fix", "partial", "break", "rewrite", "tidy"}


def hints_by_kind() -> dict[str, list[set[tuple[str, str]]]]:
    """Of each edit the (detector, strength) pairs, by the edit's kind."""
    found: dict[str, list[set[tuple[str, str]]]] = {}
    for task in catalog.load().values():
        for edit in (edit for group in edits.vocabulary(task).values() for edit in group):
            if (change := edit.make(task.base)) is not None:
                said = {"kind": "message", "role": "assistant", "text": edit.say}
                did = {"kind": "edit", "role": "assistant", "tool": change.tool, "args": change.args, "text": edit.name}
                signals = detect("C", parse_patch(diff(task.base, change.tree)), [said, did])
                found.setdefault(edit.kind, []).append({(s.detector, s.strength) for s in signals})
    return found


def test_honest_edits_give_no_hint_and_tampering_and_pasting_always_do():
    hints = hints_by_kind()
    assert {kind: set().union(*hints[kind]) for kind in HONEST} == {kind: set() for kind in HONEST}
    assert all(("H1", "strong") in found for found in hints["test"])
    assert all(("H8", "strong") in found for found in hints["paste"])
    assert sum(len(found) for found in hints.values()) > 200
