"""Stored verdicts as arrays: each replays under its own version to what was stored, to the bit."""

import numpy as np
import pytest
from django.utils import timezone

from grading.calibration import packing
from grading.calibration.packing import pack_of
from grading.calibration.replay import replay
from grading.grader.shape import Cited
from grading.models import RubricVersion, VerdictCandidate
from grading.review import corrections
from grading.scoring.criteria import FLASH
from grading.states import GroupState
from tests.factories import make_group, make_run, make_user
from tests.verdicts import add_verdict, line_of

pytestmark = pytest.mark.django_db


def graded(run, scores, *, outcomes="PPPF", **fields):
    group = make_group(run=run, state=GroupState.GRADED, outcomes=outcomes, graded_at=timezone.now(), **fields)
    return group, add_verdict(group, scores)


def assert_bit_equal(pack):
    """Every stored row of every packed verdict, under the verdict's own version."""
    assert len(pack.verdict_B)
    for rubric in RubricVersion.objects.filter(pk__in=set(pack.rubric_B.tolist())):
        got = replay(pack.scored, rubric.rubric)
        for b in np.flatnonzero(pack.rubric_B == rubric.pk):
            rows = VerdictCandidate.objects.filter(verdict=pack.verdict_B[b])
            stored = {row.trajectory_id: (row.tier, row.rank, row.factor) for row in rows}
            found = {}
            for g in np.flatnonzero(pack.scored.there_BG[b]):
                place, factor = int(got.place_BG[b, g]), float(got.factor_BG[b, g])
                found[int(pack.trajectory_BG[b, g])] = (int(got.tier_BG[b, g]), place, factor)
            assert found == stored


def test_verdicts_of_several_sizes_replay_bit_equal():
    run = make_run()
    graded(run, {"A": 5, "B": 3, "C": 3})
    graded(run, {"A": 2, "B": 4}, outcomes="PPFFF")
    graded(run, {letter: 1 + n % 5 for n, letter in enumerate("ABCDEFGH")}, outcomes="PPPPPPPPF")
    pack = pack_of(run)
    assert pack.scored.there_BG.sum() == 13
    assert_bit_equal(pack)


def test_a_revised_order_replays_as_it_was_stored():
    run = make_run()
    group, verdict = graded(run, {"A": 3, "B": 3, "C": 5})
    trajectories = {t.letter: t.external_id for t in group.trajectories.all()}
    order = {"T1": [[trajectories["C"]]], "T2": [[trajectories["B"]], [trajectories["A"]]], "T3": []}
    cited = Cited("revision", line_of(group.trajectories.get(letter="B")))
    corrections.correct(
        group, parent=verdict.pk, user=make_user(role="reviewer", team=run.team), reason="B is clearer", scores={},
        flags={}, order=order, citations={trajectories["B"]: [cited]},
    )  # fmt: skip
    pack = pack_of(run)
    assert pack.scored.revised_B.tolist() == [True]
    assert_bit_equal(pack)


def test_the_newest_verdict_counts_and_a_group_that_fell_back_is_left_out():
    run = make_run()
    first, _ = graded(run, {"A": 5, "B": 4, "C": 3})
    later = add_verdict(first, {"A": 3, "B": 4, "C": 5})
    second, _ = graded(run, {"A": 5, "B": 4, "C": 3})
    type(later).objects.create(group=second, rubric=run.rubric, grader="scripted", is_valid=False, reply={})
    assert pack_of(run).verdict_B.tolist() == [later.pk]


def test_only_new_verdicts_are_read_again(django_assert_num_queries):
    run = make_run()
    graded(run, {"A": 5, "B": 4, "C": 3})
    assert pack_of(run) is pack_of(run)
    group, verdict = graded(run, {"A": 3, "B": 4, "C": 3, "D": 5}, outcomes="PPPPF")
    with django_assert_num_queries(2):  # groups, verdicts
        assert packing.standing_verdicts(run, 10)[-1] == verdict.pk
    pack = pack_of(run)
    assert pack.scored.there_BG.tolist() == [[True, True, True, False], [True] * 4]
    assert_bit_equal(pack)
    assert pack_of(run, last=1).group_B.tolist() == [group.pk]


def test_a_run_without_verdicts_is_an_empty_pack():
    pack = pack_of(make_run())
    assert len(pack.verdict_B) == 0 and replay(pack.scored, FLASH).factor_BG.shape == (0, 0)
