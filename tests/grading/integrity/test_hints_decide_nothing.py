"""A hint is for people: however strong, it changes no reward, no outcome and no integrity of its own."""

import pytest

from grading.grader import gather, inspection
from grading.models import Finding, Signal
from grading.states import GroupState
from tests.factories import PATCH, make_group
from tests.grading.integrity import fixtures, fixtures_code

pytestmark = pytest.mark.django_db
HACKS = [fixtures.H1[0].patch, fixtures_code.H3[1].patch, fixtures_code.H13[0].patch]


def test_strong_hints_on_passing_rollouts_leave_every_reward_as_it_was():
    group = make_group(state=GroupState.COMPLETE, outcomes="PPPF", patches=[*HACKS, PATCH])
    before = gather.effective(group)
    inspection.inspect(group)
    assert set(Signal.objects.filter(is_strong=True).values_list("detector", flat=True)) == {"H1", "H3", "H13"}
    assert gather.effective(group) == before
    assert [row.reward for row in before.rows] == [1.0, 1.0, 1.0, 0.0]
    assert set(group.trajectories.values_list("integrity", flat=True)) == {""}
    assert not Finding.objects.exists()
