import dataclasses
import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from training_bridge.client.sets import AdvantageSet, Rollout, local_set  # noqa: E402
from training_bridge.tiny_job import catalog, checkpoint, inspect, loop, metrics, trainer  # noqa: E402
from training_bridge.tiny_job.errors import WrongCheckpoint  # noqa: E402
from training_bridge.tiny_job.imitation import demonstrate, warm_up  # noqa: E402
from training_bridge.tiny_job.language import Language  # noqa: E402
from training_bridge.tiny_job.loss import token_mean_loss  # noqa: E402
from training_bridge.tiny_job.offline import OfflineGagar  # noqa: E402
from training_bridge.tiny_job.policy import Policy  # noqa: E402
from training_bridge.tiny_job.rollout import roll_out  # noqa: E402
from training_bridge.tiny_job.sequences import pad, pad_floats  # noqa: E402

TASKS = catalog.load()
LANGUAGE = Language.of(TASKS)
PACE = loop.Pace(steps=3, wait_s=0.0, hold_steps=0, min_step_s=0.0, checkpoint_every=1)


def test_token_mean_loss_by_hand():
    # two sequences of 1 and 3 response tokens, A = 0.5 and -0.5, all ratios 1:
    # -(1 * 0.5 + 3 * -0.5) / 4 = 0.25
    mask_BT = torch.tensor([[0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0]])
    advantages_BT = torch.tensor([[0.5], [-0.5]]) * mask_BT
    log_probs_BT = torch.full((2, 4), -1.0)
    assert token_mean_loss(log_probs_BT, log_probs_BT, advantages_BT, mask_BT).item() == pytest.approx(0.25)


def test_token_mean_loss_clips_the_ratio_of_late_rollouts():
    # ratio e^1 = 2.72: a positive advantage counts 1.2 times, a negative one in full
    mask_BT = torch.ones(1, 2)
    late_BT, old_BT = torch.tensor([[0.0, 0.0]]), torch.tensor([[-1.0, -1.0]])
    loss = token_mean_loss(late_BT, old_BT, torch.tensor([[1.0, -1.0]]), mask_BT)
    assert loss.item() == pytest.approx(-(1.2 - np.e) / 2)


def test_token_mean_loss_of_no_response_token_is_zero():
    zeros_BT = torch.zeros(2, 3)
    assert token_mean_loss(zeros_BT, zeros_BT, zeros_BT, zeros_BT).item() == 0


def test_its_gradient_is_the_token_mean_of_the_policy_gradient():
    mask_BT = torch.tensor([[1.0, 1.0], [1.0, 0.0]])
    advantages_BT = torch.tensor([[0.75, 0.75], [-0.25, 0.0]])
    log_probs_BT = torch.zeros(2, 2, requires_grad=True)
    token_mean_loss(log_probs_BT, torch.zeros(2, 2), advantages_BT, mask_BT).backward()
    torch.testing.assert_close(log_probs_BT.grad, -advantages_BT / 3)


@pytest.fixture(scope="module")
def warm(runner):
    torch.manual_seed(0)
    policy = Policy(LANGUAGE)
    warm_up(policy, TASKS, runner, seed=0)
    return policy


@pytest.fixture(scope="module")
def rollouts(warm, runner):
    tasks = [task for task in TASKS.values() for _ in range(12)]
    names = [f"r{number}" for number in range(len(tasks))]
    return roll_out(warm, tasks, names, runner, generator=torch.Generator().manual_seed(1))


def test_the_warmed_up_policy_passes_between_thirty_and_sixty_percent(rollouts):
    found = metrics.rollout_metrics(LANGUAGE, rollouts)
    assert 0.3 <= found["pass_rate"] <= 0.6
    assert found["invalid_share"] == 0
    assert found["truncated_share"] < 0.1
    assert found["tokens"] > found["response_tokens"] > found["turns"] > 2


def test_rollouts_of_a_task_differ_and_some_pass_and_some_fail(rollouts):
    for number in range(len(TASKS)):
        group = rollouts[12 * number : 12 * (number + 1)]
        assert len({rollout.patch for rollout in group}) > 3
    mixed = [{r.outcome for r in rollouts[12 * n : 12 * (n + 1)]} == {"passed", "failed"} for n in range(len(TASKS))]
    assert sum(mixed) >= len(TASKS) - 1


def test_the_probability_of_a_written_token_is_the_one_it_was_drawn_with(warm, rollouts):
    sequences = pad(warm, [rollout.tokens for rollout in rollouts])
    log_probs_BT, entropy_BT = warm.score(sequences.tokens_BT, sequences.contexts_BT)
    written_BT = pad_floats(warm, [rollout.log_probs for rollout in rollouts])
    torch.testing.assert_close(log_probs_BT * sequences.mask_BT, written_BT, atol=1e-4, rtol=1e-4)
    assert (entropy_BT * sequences.mask_BT >= 0).all()


def test_only_tokens_of_the_model_are_in_the_mask(warm):
    ids = LANGUAGE.ids
    tokens = [ids["task slugs"], ids["open"], ids["shown"], ids["patch"], ids["slot 1"], ids["edited"], ids["submit"]]
    assert pad(warm, [tokens, tokens[:3]]).mask_BT.tolist() == [[0, 1, 0, 1, 1, 0, 1], [0, 1, 0, 0, 0, 0, 0]]


def test_a_script_ends_with_a_submit_and_is_written_in_the_language(runner, warm):
    rng = random.Random(3)
    for _ in range(5):
        tokens = demonstrate(TASKS["retry"], LANGUAGE, runner, rng)
        sequences = pad(warm, [tokens])
        log_probs_BT, _ = warm.score(sequences.tokens_BT, sequences.contexts_BT)
        assert tokens[-1] == LANGUAGE.ids["submit"]
        assert torch.isfinite((log_probs_BT * sequences.mask_BT).sum())


def test_filtered_groups_and_invalid_rollouts_do_not_train(rollouts):
    by_name = {rollout.external_id: rollout for rollout in rollouts}
    outcomes = {"r0": "passed", "r1": "failed", "r2": "infra_invalid"}
    mixed = local_set("a", 1, 0, {n: Rollout(o) for n, o in outcomes.items()}, eligible=True, reason="offline")
    all_passed = local_set("b", 1, 0, {"r3": Rollout("passed")}, eligible=True, reason="offline")
    rows = trainer.training_rows([mixed, all_passed], by_name)
    assert [(row.rollout.external_id, row.advantage) for row in rows] == [("r0", 0.5), ("r1", -0.5)]


def test_rollouts_outside_the_statistics_do_not_dilute_the_token_mean(rollouts):
    by_name = {rollout.external_id: rollout for rollout in rollouts}
    masked_or_late = AdvantageSet(
        group="g",
        life=1,
        version=1,
        step=0,
        regime="exact",
        reason=None,
        train=True,
        advantage={"r0": 0.5, "r1": -0.5, "r2": 0.0},
        equivalent_reward={"r0": 1.0, "r1": 0.0, "r2": None},
        outcome={"r0": "passed", "r1": "failed", "r2": "passed"},
    )
    rows = trainer.training_rows([masked_or_late], by_name)
    assert [row.rollout.external_id for row in rows] == ["r0", "r1"]


def test_the_deficit_by_hand():
    # outcome advantages 0.5, 0.5, -0.5, -0.5; training advantages 0.4, 0.2, -0.3, -0.3
    names = ["a", "b", "c", "d"]
    shaped = AdvantageSet(
        group="g",
        life=1,
        version=1,
        step=0,
        regime="bounded",
        reason=None,
        train=True,
        advantage=dict(zip(names, [0.4, 0.2, -0.3, -0.3], strict=True)),
        outcome=dict(zip(names, ["passed", "passed", "failed", "failed"], strict=True)),
    )
    assert metrics.deficit([shaped]) == pytest.approx({"deficit": 0.4})
    assert metrics.deficit([]) == {}


def offline_job(path, runner, policy, **changes):
    plan = loop.Plan(**({"advantages": "outcome", "seed": 0, "groups": 4, "rollouts": 8} | changes))
    job = loop.Job(plan, runner, path)
    job.policy.load_state_dict(policy.state_dict())
    return job


def test_a_short_training_raises_the_pass_rate(tmp_path, runner, warm):
    job = offline_job(tmp_path / "job.pt", runner, warm, groups=8, rollouts=12, learning_rate=4e-3)
    rates = []
    pace = loop.Pace(steps=8, wait_s=0.0, hold_steps=0, min_step_s=0.0, checkpoint_every=100)
    loop.run(job, OfflineGagar("r"), pace, lambda s: False, lambda n, done: rates.append(done["metrics"]["pass_rate"]))
    assert np.mean(rates[-2:]) > np.mean(rates[:2]) + 0.15


def test_a_resumed_job_goes_on_as_if_nothing_had_happened(tmp_path, runner, warm):
    whole = offline_job(tmp_path / "whole.pt", runner, warm)
    loop.run(whole, OfflineGagar("r"), PACE, lambda s: False, lambda n, d: None)
    first = offline_job(tmp_path / "cut.pt", runner, warm)
    loop.run(first, OfflineGagar("r"), dataclasses.replace(PACE, steps=2), lambda s: False, lambda n, d: None)
    second = offline_job(tmp_path / "cut.pt", runner, warm)
    second.resume()
    assert second.step == 2
    gagar = OfflineGagar("r", second.cursor)
    assert gagar.life == 2
    loop.run(second, gagar, PACE, lambda s: False, lambda n, d: None)
    for name, parameter in whole.policy.state_dict().items():
        torch.testing.assert_close(parameter, second.policy.state_dict()[name], rtol=0, atol=0)
    state = checkpoint.load(tmp_path / "cut.pt")
    applied = [(row["life"], row["group"]) for row in checkpoint.applied_groups(state)]
    assert len(applied) == len(set(applied)) == 12
    assert {life for life, _ in applied} == {1, 2}
    assert [list(row[:2]) for row in state["applied"]] == [list(row[:2]) for row in state["gagar"]["applied"]]


class HoldingGagar(OfflineGagar):
    """Offline, but a person holds the first group of each step for one step."""

    def freeze(self, step, groups, **ignored):
        held = [group for group in groups if group.step == step][:1]
        batch = super().freeze(step, [group for group in groups if group not in held])
        batch.waiting.extend(held)
        return batch


def test_a_waiting_group_survives_the_checkpoint_and_is_trained_later(tmp_path, runner, warm, capsys):
    job = offline_job(tmp_path / "job.pt", runner, warm)
    job.connect(gagar := HoldingGagar("r"))
    done = job.take_step(gagar, PACE)
    job.save(gagar)
    assert (done["metrics"]["groups_waiting"], len(done["sets"])) == (1, 3)
    again = offline_job(tmp_path / "job.pt", runner, warm)
    again.resume()
    again.connect(gagar := HoldingGagar("r", again.cursor))
    (waiting,) = again.pending.values()
    assert (waiting.life, waiting.handle.step, len(waiting.handle.rollouts)) == (2, 0, 8)
    again.take_step(gagar, PACE)
    again.save(gagar)
    assert inspect.main([str(tmp_path / "job.pt")]) == 0
    shown = capsys.readouterr().out
    assert shown.count(f'"{waiting.key}"') >= 1
    assert [row[:2] for row in again.applied].count((2, waiting.key)) == 1


def test_a_checkpoint_of_another_plan_is_refused(tmp_path, runner, warm):
    job = offline_job(tmp_path / "job.pt", runner, warm)
    job.save(OfflineGagar("r"))
    with pytest.raises(WrongCheckpoint, match="was begun with"):
        offline_job(tmp_path / "job.pt", runner, warm, seed=1).resume()


def test_what_is_no_checkpoint_is_refused(tmp_path, capsys):
    path = tmp_path / "job.pt"
    path.write_bytes(b"nonsense")
    with pytest.raises(WrongCheckpoint, match="cannot be read"):
        checkpoint.load(path)
    assert inspect.main([str(path)]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_two_jobs_cannot_run_on_one_checkpoint(tmp_path):
    path = tmp_path / "job.pt"
    with checkpoint.held(path), pytest.raises(WrongCheckpoint, match="in use"), checkpoint.held(path, wait_s=0.0):
        raise AssertionError("two at once")
    with checkpoint.held(path, wait_s=0.0):
        pass


def test_a_run_of_another_method_is_noticed():
    def decided(regime, version=1):
        return AdvantageSet("g", 1, version, 0, regime, None, True, {})

    assert metrics.is_other_method("redistribute", [decided("exact"), decided("baseline")])
    assert not metrics.is_other_method("redistribute", [decided("bounded"), decided("fallback", 0)])
    assert metrics.is_other_method("outcome", [decided("clipped")])
    assert not metrics.is_other_method("outcome", [decided("baseline"), decided("filtered")])


def test_a_write_that_breaks_leaves_the_old_checkpoint(tmp_path):
    path = tmp_path / "job.pt"
    checkpoint.save(path, {"step": 1})
    with pytest.raises(Exception, match="pickle"):
        checkpoint.save(path, {"step": lambda: 2})
    assert checkpoint.load(path)["step"] == 1


def test_a_rollout_that_changed_nothing_survives_the_checkpoint(tmp_path):
    checkpoint.save(tmp_path / "job.pt", {"pending": [{"patch": b""}, {"patch": b"\xff"}]})
    assert [group["patch"] for group in checkpoint.load(tmp_path / "job.pt")["pending"]] == [b"", b"\xff"]
