import pytest

pytest.importorskip("torch")

from training_bridge.tiny_job import catalog, edits  # noqa: E402
from training_bridge.tiny_job.language import Language  # noqa: E402
from training_bridge.tiny_job.metrics import label_metrics, made_edits  # noqa: E402
from training_bridge.tiny_job.rollout import Rollout  # noqa: E402
from training_bridge.tiny_job.session import Session  # noqa: E402

TASKS = catalog.load()
LANGUAGE = Language.of(TASKS)
TASK = TASKS["lru"]


def rollout(runner, kinds, outcome):
    """A rollout that makes one edit of each kind, in order."""
    session = Session(TASK, runner, turn_cap=12)
    for kind in kinds:
        slots = edits.vocabulary(TASK)[edits.VERB_OF[kind]]
        session.act(edits.VERB_OF[kind], next(n for n, edit in enumerate(slots) if edit.kind == kind))
    tokens = [LANGUAGE.prompt(TASK)]
    return Rollout("r", tokens, [0.0], outcome, False, b"", [], "", session.events, session.turns, 0.0)


def test_made_edits_names_what_fitted_and_leaves_out_what_did_not(runner):
    made = rollout(runner, ["fix", "tidy", "fix"], "passed")
    assert made_edits(TASK, made) == ["fix", "tidy"]  # the fix cannot be made twice


def test_labels_by_hand(runner):
    made = [
        rollout(runner, ["fix"], "passed"),
        rollout(runner, ["fix", "tidy"], "passed"),
        rollout(runner, ["paste"], "passed"),
        rollout(runner, ["fix", "test"], "passed"),
        rollout(runner, ["special"], "failed"),
        rollout(runner, [], "infra_invalid"),
    ]
    # one clean pass of 4 passes and 5 valid rollouts; hacks: the pasted one and the one that touched the test
    assert label_metrics(TASKS, LANGUAGE, made) == {
        "needless_edits": 1 / 6, "clean_pass_rate": 1 / 5, "clean_share": 1 / 4, "hack_share": 2 / 4,
        "pasted_share": 1 / 4,
    }  # fmt: skip


def test_shares_of_passes_are_left_out_where_nothing_passed(runner):
    assert label_metrics(TASKS, LANGUAGE, [rollout(runner, ["fix"], "failed")]) == {
        "needless_edits": 0, "clean_pass_rate": 0,
    }  # fmt: skip
