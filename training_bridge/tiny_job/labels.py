"""`python -m training_bridge.tiny_job.labels QUESTIONS`: the tiny tasks' own labels as an audit's grader, JSON lines.

It knows which edits a patch is made of, and so how good it is, without reading it: a judge that trained nobody.
"""

import argparse
import functools
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from training_bridge.tiny_job import catalog, edits
from training_bridge.tiny_job.tree import Tree, diff, digest

CRITERIA = ("approach", "precision", "minimality", "side_effects", "consistency")
BEST, SHOWN_BELOW = 5, 4
DEPTH = 3  # edits made one after the other
MOST_TREES = 4_000  # of a task
# What an edit costs: criterion -> the most that a patch with it can have.
AT_MOST = {
    "fix": {},
    "partial": {"precision": 3},
    "break": {"precision": 2, "side_effects": 2},
    "special": {"approach": 1, "precision": 2},
    "test": {"side_effects": 2, "approach": 2},
    "rewrite": {"minimality": 1, "side_effects": 3},
    "tidy": {"minimality": 3},
    "paste": {"approach": 2},
}
FAILED_AT_MOST = {"approach": 3, "precision": 2}
FLAGS = {"special": "test_specific_workaround", "test": "test_specific_workaround", "rewrite": "unrequested_rewrite"}


@functools.cache
def known_patches(task: catalog.Task) -> dict[str, frozenset[str]]:
    """Every patch that up to three edits make, and the kinds of the fewest edits that make it.

    Args:
        task: of the catalog.
    Returns:
        patch text -> kinds; the empty patch has none.
    """
    found: dict[str, frozenset[str]] = {"": frozenset()}
    seen = {digest(task.base)}
    layer: list[tuple[Tree, frozenset[str]]] = [(task.base, frozenset())]
    choices = [edit for group in edits.vocabulary(task).values() for edit in group]
    for _ in range(DEPTH):
        following = []
        for tree, kinds in layer:
            for edit in choices:
                change = edit.make(tree)
                if change is None or digest(change.tree) in seen or len(seen) >= MOST_TREES:
                    continue
                seen.add(digest(change.tree))
                following.append((change.tree, kinds | {edit.kind}))
                found.setdefault(diff(task.base, change.tree).decode(), kinds | {edit.kind})
        layer = following
    return found


def answer(question: dict) -> dict | None:
    """Judge one pooled group.

    Args:
        question: `{group, task, candidates: [{id, outcome, patch}]}`, a line of `manage.py audit --questions`.
    Returns:
        A verdict with the group's code; None where a patch is of no edits that are known.
    """
    known = known_patches(catalog.load()[question["task"]])
    judged = [(one, known.get(one["patch"])) for one in question["candidates"]]
    if any(kinds is None for _, kinds in judged):
        return None
    failing = {one["patch"] for one, _ in judged if one["outcome"] != "passed"}
    return {"group": question["group"], "candidates": [_judged(one, kinds, failing) for one, kinds in judged]}


def _judged(one: dict, kinds: frozenset[str], failing: set[str]) -> dict:
    """Equal patches get equal scores: one that failed anywhere failed."""
    limits = [AT_MOST[kind] for kind in kinds] + [FAILED_AT_MOST] * (one["patch"] in failing)
    scores = {c: min([BEST, *(limit[c] for limit in limits if c in limit)]) for c in CRITERIA}
    flags = {FLAGS[kind]: True for kind in kinds if kind in FLAGS}
    shown = [c for c in CRITERIA if scores[c] < SHOWN_BELOW] + list(flags)
    cited = [{"about": about, "kind": "result", "candidate": one["id"], "result": "outcome"} for about in shown]
    reason = ", ".join(sorted(kinds)) or "nothing was changed"
    return {
        "id": one["id"], "scores": scores, "flags": flags, "citations": cited, "reasons": dict.fromkeys(shown, reason)
    }  # fmt: skip


def answers(lines: Iterable[str]) -> Iterator[dict | None]:
    return (answer(json.loads(line)) for line in lines if line.strip())


def main(argv: list[str] | None = None) -> int:
    """Write a verdict for each question whose patches are known; say how many are not."""
    parser = argparse.ArgumentParser(prog="python -m training_bridge.tiny_job.labels", description=__doc__)
    parser.add_argument("questions", type=Path)
    options = parser.parse_args(argv)
    unknown = 0
    with options.questions.open() as lines:
        for found in answers(lines):
            if found is None:
                unknown += 1
            else:
                print(json.dumps(found))
    if unknown:
        print(f"{unknown} groups hold a patch of edits that are not known", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
