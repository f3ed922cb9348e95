"""Groups that nobody here wrote, imported, graded and replayed: what-if and knobs say what the scalar code says."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from grading.calibration.packing import pack_of
from grading.calibration.replay import replay
from grading.grader import job
from grading.importers.import_groups import import_path
from grading.models import RolloutGroup, Run
from grading.scoring.criteria import FLASH, Candidate
from grading.scoring.grades import grade
from tests.factories import flash, make_team, make_user
from training_bridge import what_if_panel
from training_bridge.decided import group_numbers
from training_bridge.what_if_rows import own_paid, rollouts_of

PLACES = (up / "shared" / "data" / "real" / "groups" for up in Path(__file__).resolve().parents)
REAL = next((place for place in PLACES if place.is_dir()), None)
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(REAL is None, reason="shared/data/real is in no folder above the repository"),
]
LEAN = replace(
    FLASH, name="lean", weights=tuple(map(Decimal, ("0.1", "0.15", "0.5", "0.15", "0.1"))), f_max=Decimal("0.7"),
    t1_floor=5,
)  # fmt: skip


@pytest.fixture
def run():
    flash()
    team = make_team()
    import_path(REAL, team=team.slug, run="real-groups", wanted="auto", grader="static")
    job.drain()
    return Run.objects.get(public_id="real-groups")


def scalar(group: RolloutGroup, rubric) -> dict[int, float]:
    """Factors of the group's verdict under a rubric, one candidate at a time."""
    rows = list(group.verdicts.get().candidates.all())
    said = [Candidate(str(one.trajectory_id), one.scores, frozenset(one.flags)) for one in rows]
    return {int(id): float(factor) for id, factor in grade(said, rubric).factor.items()}


def test_eight_real_groups_are_replayed_as_the_scalar_code_grades_them(run, client):
    pack = pack_of(run)
    assert run.groups.count() == 8 and len(pack.verdict_B) > 0
    for rubric in (FLASH, LEAN):
        made = replay(pack.scored, rubric)
        for b, pk in enumerate(pack.group_B.tolist()):
            want = scalar(RolloutGroup.objects.get(pk=pk), rubric)
            got = {int(t): f for t, f in zip(pack.trajectory_BG[b], made.factor_BG[b], strict=True) if t}
            assert got == want
    rollouts = rollouts_of(run, pack)
    paid = own_paid(rollouts, pack)
    for b, at in enumerate(rollouts.pack_B):
        group = RolloutGroup.objects.get(pk=pack.group_B[at])
        one = group_numbers(group, group.verdicts.get()).credit
        np.testing.assert_allclose(paid.advantages_BG[b, : len(one.advantages_G)], one.advantages_G, atol=1e-12)
    knobs, effects = what_if_panel.knobs(run, last=100), what_if_panel.effects(run, LEAN, last=100)
    assert len(knobs["rows"]) == 15 and knobs["groups"] == effects["groups"] == len(rollouts.pack_B) > 1
    assert effects["share"] > 0 and effects["most"]
    client.force_login(make_user(role="viewer", team=run.team))
    page = client.get(f"/calibration/?run={run.public_id}&max=0.7&low=0.1")
    assert page.status_code == 200 and b"verdicts under these numbers" in page.content
