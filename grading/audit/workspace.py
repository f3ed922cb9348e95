"""The workspace of an audit group: rollouts of several runs under drawn letters, all of them to be ranked."""

import random
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

from grading.grader import gather
from grading.grader.material import GroupMaterial
from grading.grader.options import GradingOptions
from grading.grader.shown import Shown
from grading.grader.workspace import Workspace
from grading.models import AuditGroup, Signal
from grading.scoring.criteria import Rubric


class AuditWorkspace(Workspace):
    """As a grader's workspace, but ids are the letters themselves: no word of a reply or a problem holds another."""

    def __init__(self, group: AuditGroup, seed: int | str | None = None):
        self.group = group
        self.seed = random.SystemRandom().getrandbits(63) if seed is None else seed
        candidates = list(group.candidates.select_related("trajectory__group__run", "arm"))
        rows = {one.letter: one.trajectory for one in candidates}
        self.material = GroupMaterial.of([_material(one.letter, one.trajectory) for one in candidates])
        self.letters: Mapping[str, str] = {letter: letter for letter in rows}
        self._pks = {one.trajectory_id: one.letter for one in candidates}
        passed = {one.letter for one in candidates if one.passed}
        self._set_out(rows, ids=_ids(candidates), passed=passed, makers=_makers(candidates))

    def prompt_name(self, grader: str) -> str:
        return f"audit_{grader}"

    def standing(self, shown: Shown) -> str:
        return f"its tests {'passed' if shown.passed else 'failed'}, to be ranked"

    def signals(self) -> list[tuple[str, Signal]]:
        rows = Signal.objects.filter(trajectory__in=self._pks).exclude(detector="")
        return [(self._pks[row.trajectory_id], row) for row in rows.order_by("-is_strong", "detector", "words")]

    @cached_property
    def options(self) -> GradingOptions:
        """Checks are off: their names and times would tell whose group a candidate came from."""
        return GradingOptions(model=self.group.audit.model, checks=False)

    def _read_material(self) -> GroupMaterial:
        return self.material

    @property
    def _rubric(self) -> Rubric:
        return self.group.audit.rubric.rubric


def _material(letter: str, trajectory):
    return replace(gather.candidate(trajectory), id=letter)


def _ids(candidates) -> set[str]:
    """What names a rollout or where it came from; common words among them are left."""
    found: set[str] = set()
    for one in candidates:
        group = one.trajectory.group
        found |= {one.trajectory.external_id, group.key, group.run.public_id}
    return found


def _makers(candidates) -> set[str]:
    """Names of runs, arms and policies; one plain word ("baseline") stands everywhere and is left."""
    found: set[str] = set()
    for one in candidates:
        run = one.trajectory.group.run
        found |= {run.name, run.public_id, one.arm.name, one.trajectory.group.policy_version}
    return {name for name in found if not name.isalpha()}
