"""The real public groups open as workspaces: everything in them can be shown, and the telling names are gone."""

from grading.grader.static import grade
from grading.grader.workspace import Workspace, _names
from grading.models import RolloutGroup, Trajectory
from tests.grading.importers.files import SHARED, needs_shared
from tests.grading.importers.test_import import tally


@needs_shared
def test_every_real_group_is_shown_whole_and_without_its_models_names(db):
    tally(SHARED / "groups")
    shown = changed = 0
    for group in RolloutGroup.objects.select_related("run", "task"):
        with Workspace.open(group, seed=1) as ws:
            assert ws.statement
            assert ws.why_no_repository
            for one in ws.shown.values():
                shown += 1
                assert one.patch.count(b"\n") == one.raw.patch.count(b"\n")
                assert _shape(one.parsed) == _shape(one.raw.parsed)
                texts = [one.patch.decode("utf-8", "replace"), one.log.decode("utf-8", "replace")]
                for n in range(one.event_count):
                    raw, text = one.raw.event_text(n), one.event_text(n)
                    assert text == ws.scrub(raw)
                    assert text.count("\n") == raw.count("\n")
                    texts.append(text)
                    changed += text != raw
                whole = "\n".join(texts).lower()
                models = {name.lower() for name in _names({one.letter: one._row})}
                assert not [name for name in models if name in whole]
            if ws.ranked:
                ids = grade(ws.material)
                letters = {id: letter for id, letter in ws.letters.items()}
                assert {letters[entry.id] for entry in ids.candidates} == set(ws.ranked)
    assert changed > 20
    assert shown == Trajectory.objects.exclude(outcome="infra_invalid").count() > 80


def _shape(patch):
    return [[(line.old_no, line.new_no) for line in file.lines] for file in patch.files]
