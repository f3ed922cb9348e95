"""What-if pays what delivery would pay, group by group, whatever the rewards, the findings and the versions."""

import random
from urllib.parse import parse_qsl

import numpy as np
import pytest

from grading.calibration import publish
from grading.calibration.packing import pack_of
from grading.calibration.rubric_form import read_rubric
from grading.models import Finding, RolloutGroup, Task, Trajectory
from grading.scoring.criteria import FLASH, Rubric
from grading.scoring.rows import Row
from tests.factories import make_run, make_user
from tests.grading.calibration.test_packing import graded
from training_bridge import what_if_panel
from training_bridge.decided import group_numbers
from training_bridge.payload import numbers
from training_bridge.what_if import Batch, moved, moved_interval, paid
from training_bridge.what_if_rows import own_paid, rollouts_of

FACTORS = (1.0, 0.9, 0.85, 0.625, 0.4, 0.2)


def random_rows(draw: random.Random) -> list[Row]:
    """At least one pass and one failure; half of the groups with shaped rewards, some of them below zero."""
    is_shaped = draw.random() < 0.5
    outcomes = ["passed", "failed", *(draw.choice(["passed", "failed"]) for _ in range(draw.randint(0, 14)))]
    shaped = {"passed": (0.4, 1.4), "failed": (-0.4, 0.6)}
    return [
        Row(f"r{n}", outcome, draw.uniform(*shaped[outcome]) if is_shaped else None)
        for n, outcome in enumerate(outcomes)
    ]


def test_a_batch_is_paid_as_the_one_builder_pays_each_group():
    draw, groups = random.Random(3), []
    for _ in range(400):
        rows = random_rows(draw)
        groups.append((rows, {row.id: draw.choice(FACTORS) for row in rows}, draw.random() < 0.3))
    shape = (len(groups), max(len(rows) for rows, _, _ in groups))
    rewards_BG, factors_BG = np.zeros(shape), np.full(shape, np.nan)
    passing_BG, valid_BG = np.zeros(shape, bool), np.zeros(shape, bool)
    for b, (rows, factors, _) in enumerate(groups):
        for g, row in enumerate(rows):
            passing_BG[b, g], valid_BG[b, g] = row.outcome == "passed", True
            rewards_BG[b, g] = float(row.outcome == "passed") if row.reward is None else row.reward
            factors_BG[b, g] = factors[row.id] if passing_BG[b, g] else np.nan
    batch = Batch(rewards_BG, passing_BG, valid_BG, np.array([neutral for *_, neutral in groups]))
    seen = set()
    for bound in (None, 1.0, 1.5):
        made = paid(batch, factors_BG, bound)
        for b, (rows, factors, neutral) in enumerate(groups):
            one = numbers(
                rows, factors, method="redistribute", lambda_max=bound, eligible=True, broken_evaluation=False,
                mask_truncated=False, neutral_when_equal=neutral,
            ).credit  # fmt: skip
            assert made.regime_B[b] == one.regime and made.capped_B[b] == one.capped
            np.testing.assert_allclose(made.advantages_BG[b, : len(rows)], one.advantages_G, atol=1e-12)
            seen.add(one.regime)
    assert seen == {"exact", "bounded", "clipped", "fallback"}


def test_the_share_that_moves_by_hand():
    # |+.5| + |-.5| = 1 a group, two groups; one of them moves .1 + .1: .2 of 2
    one_BG = np.array([[0.5, -0.5], [0.5, -0.5]])
    other_BG = np.array([[0.6, -0.6], [0.5, -0.5]])
    assert moved(one_BG, other_BG) == pytest.approx(0.1)
    low, high = moved_interval(one_BG, other_BG)
    assert low == 0 and high == pytest.approx(0.1 + 12.706 * 0.1, rel=1e-3)  # t of one degree, error .1
    assert moved(np.zeros((2, 2)), other_BG) is None and moved_interval(one_BG[:1], other_BG[:1]) is None
    assert moved_interval(one_BG, 1.1 * one_BG) is None  # both move by a tenth: no width, so no interval


@pytest.mark.django_db
def test_stored_groups_are_paid_as_delivery_pays_them_with_findings_and_truncated_rows():
    run = make_run(mask_truncated=True)
    graded(run, {"A": 5, "B": 3, "C": 2})
    hacked, _ = graded(run, {"A": 5, "B": 3, "C": 2}, outcomes="PPPFF")
    Trajectory.objects.filter(group=hacked, letter="C").update(integrity="hack")
    shaped, _ = graded(run, {"A": 5, "B": 2}, outcomes="PPFI")
    Trajectory.objects.filter(group=shaped, letter="A").update(reward="0.8", is_truncated=True)
    graded(run, {"A": 4, "B": 4}, outcomes="PP")  # all passed: nothing trains
    broken, _ = graded(run, {"A": 5, "B": 3, "C": 2})
    Task.objects.filter(pk=broken.task_id).update(is_broken=True)
    pack = pack_of(run)
    rollouts = rollouts_of(run, pack)
    assert rollouts.left_out == 2 and len(rollouts.pack_B) == 3
    made = own_paid(rollouts, pack)
    for b, at in enumerate(rollouts.pack_B):
        group = RolloutGroup.objects.get(pk=pack.group_B[at])
        one = group_numbers(group, group.verdicts.get()).credit
        got = made.advantages_BG[b, : len(one.advantages_G)]
        np.testing.assert_allclose(got, one.advantages_G, atol=1e-12)
        assert made.regime_B[b] == one.regime


@pytest.mark.django_db
def test_each_verdict_is_paid_under_the_bound_of_its_own_version():
    run = make_run()
    graded(run, {"A": 2, "B": 2})
    tight = FLASH.to_json() | {"constants": FLASH.to_json()["constants"] | {"lambda_max": "1.1"}}
    boss = make_user(is_superuser=True)
    made = publish.publish(tight, name="Tight", reason="a trial", parent=run.rubric, user=boss)
    publish.choose(run, made, user=boss)
    run.refresh_from_db()
    graded(run, {"A": 2, "B": 2})
    pack = pack_of(run)
    assert own_paid(rollouts_of(run, pack), pack).lambda_B.tolist() == [1.5, 1.1]


@pytest.mark.django_db
def test_rows_are_read_again_once_a_finding_is_new():
    run = make_run()
    group, _ = graded(run, {"A": 5, "B": 3, "C": 2})
    pack = pack_of(run)
    first = rollouts_of(run, pack)
    assert rollouts_of(run, pack) is first
    trajectory = group.trajectories.get(letter="C")
    Trajectory.objects.filter(pk=trajectory.pk).update(integrity="hack")
    Finding.objects.create(trajectory=trajectory, kind="hack", by="rita", reason="reads the tests")
    assert rollouts_of(run, pack).batch.passing_BG.sum() == first.batch.passing_BG.sum() - 1


@pytest.mark.django_db
def test_the_knob_that_moves_most_stands_first_and_numbers_in_force_change_nothing():
    run = make_run()
    graded(run, {"A": 5, "B": 3, "C": 3})
    graded(run, {"A": 3, "B": 2, "C": 2})
    table = what_if_panel.knobs(run, last=100)
    shares = [row["share"] for row in table["rows"]]
    assert shares == sorted(shares, reverse=True) and shares[0] > 0 and len(table["rows"]) == 15
    first = next(row for row in table["rows"] if "query" in row)
    again = read_rubric(dict(parse_qsl(first["query"], keep_blank_values=True)), FLASH).rubric
    assert what_if_panel.effects(run, again, last=100)["share"] == pytest.approx(first["share"])  # where its link leads
    same = what_if_panel.effects(run, FLASH, last=100)
    assert same["share"] == 0 and same["changed"] == 0 and same["most"] == []
    assert [what_if_panel._digits(ends) for ends in (None, (0.01, 0.02), (0.0126, 0.0128), (0.5, 0.5))] == [1, 1, 2, 3]
    exact = Rubric.from_json(FLASH.to_json() | {"constants": FLASH.to_json()["constants"] | {"lambda_max": None}})
    freed = what_if_panel.effects(run, exact, last=100)
    assert freed["cap"]["after"] == 0 and freed["kept"][1] == pytest.approx(1)
    strip = what_if_panel.strip(run, exact, last=100, group=freed["most"][0]["group"].pk)
    assert [row["letter"] for row in strip][-1] == "D" and sum(row["change"] for row in strip) == pytest.approx(0)
