"""verl's own v1 trainer, step by step on the CPU: its queue, replay buffer, advantages and loss carry our numbers."""

import signal
import time

import pytest

pytest.importorskip("verl", reason="verl is not installed here: make test-trainers runs this")

import ray
import torch
import transfer_queue as tq

from tests.trainers import tiny_verl
from training_bridge.adapters import verl_loss
from training_bridge.adapters.cursors import cursor_in
from training_bridge.adapters.fidelity import FidelityError

START_S, TRIES = 240, 3


@pytest.fixture(scope="module")
def queue():
    """Ray and TransferQueue; 2 logical CPUs are too few for its actors and hang.

    On a loaded machine Ray's raylet dies while it starts ("the current node timed out during startup"), and comes up
    at the next try.
    """
    for attempt in range(1, TRIES + 1):
        if not (why := why_not_started()):
            break
        print(f"\nRay did not start, try {attempt} of {TRIES}: {why}")
    else:
        pytest.skip(f"Ray cannot run here: {why}")
    yield
    tq.close()
    ray.shutdown()


def why_not_started() -> str:
    """Start both. Returns: why they did not; "" if they did."""

    def too_slow(*_):
        raise TimeoutError(f"Ray and TransferQueue did not start within {START_S} s")

    signal.signal(signal.SIGALRM, too_slow)
    signal.alarm(START_S)
    try:
        ray.init(num_cpus=32, include_dashboard=False, log_to_driver=False, object_store_memory=200 * 2**20)
        tq.init()
    except Exception as reason:
        signal.alarm(0)
        ray.shutdown()
        return f"{type(reason).__name__}: {reason}"
    finally:
        signal.alarm(0)
    return ""


@pytest.fixture
def trainer_of(server, queue, tmp_path, monkeypatch):
    """A trainer on a run of its own; its groups leave the queue afterwards."""
    made = []

    def make(name, outcome=None, *, policy="auto", changes=None, sampler=None, again=None):
        run, token = again or server.new_run(f"verl-{name}", policy)
        monkeypatch.setenv("GAGAR_TOKEN", token)
        config = tiny_verl.config_of({"url": server.url, "run": run, **(sampler or {})}, str(tmp_path), changes)
        trainer = tiny_verl.Trainer(config, outcome or every_other)
        trainer.rows, trainer.access = (lambda: server.rows(run, token)), (run, token)
        made.append(trainer)
        return trainer

    yield make
    for trainer in made:
        trainer.replay_buffer.close()
    for partition, keys in (tq.kv_list() or {}).items():
        if keys:
            tq.kv_clear(keys=[*keys], partition_id=partition)


def every_other(session: int) -> dict:
    return {"score": float(session % 2)}


def decided_in(trainer) -> dict[str, float]:
    return {row["trajectory"]: row["advantage"] for one in trainer.rows() for row in one["rows"]}


def off_by(trainer) -> float:
    """The largest difference between what stood in verl's loss and what the server decided."""
    decided, seen = decided_in(trainer), trainer.actor_rollout_wg.seen
    assert seen
    return max(abs(value - decided[key.rsplit("_", 1)[0]]) for key, value in seen.items() if not key.startswith("pad"))


@pytest.mark.parametrize("estimator", ["grpo", "gagar"])
def test_verl_trains_on_our_advantages_to_1e_6(trainer_of, estimator, record_property):
    trainer = trainer_of(estimator, changes={"algorithm.adv_estimator": estimator})
    before = torch.cat([p.detach().flatten().clone() for p in trainer.actor_rollout_wg.model.parameters()])
    losses = [trainer.step_once()["actor/pg_loss"] for _ in range(2)]
    after = torch.cat([p.detach().flatten() for p in trainer.actor_rollout_wg.model.parameters()])
    assert not torch.equal(before, after) and all(abs(loss) > 0 for loss in losses)
    rows = trainer.rows()
    assert len(rows) == 4 and {row["regime"] for row in rows} & {"exact", "bounded", "clipped"}
    assert len({round(value, 6) for value in decided_in(trainer).values()}) > 2  # quality made a difference
    record_property("off_by", off_by(trainer))
    assert off_by(trainer) < 1e-6


def test_invalid_rollouts_leave_before_the_mean_and_groups_may_be_uneven(trainer_of):
    def outcome(session):
        if session == 5:
            return None  # its agent loop failed
        return every_other(session) | ({"more": {"outcome": "infra_invalid"}} if session in (2, 3) else {})

    trainer = trainer_of("invalid", outcome)
    trainer.step_once()
    sessions = [key.rsplit("_", 2)[1] for key in trainer.actor_rollout_wg.seen if not key.startswith("pad")]
    assert sorted({*sessions}) == ["0", "1", "4", "6", "7"] and len(sessions) == 10
    assert off_by(trainer) < 1e-6


def test_a_lone_survivor_trains_nobody(trainer_of):
    trainer = trainer_of(
        "lone", lambda session: {"score": 1.0} | ({"more": {"outcome": "infra_invalid"}} if session else {})
    )
    trainer.step_once()
    assert {*trainer.actor_rollout_wg.seen.values()} == {0.0}


def test_groups_without_a_mix_are_filtered_by_their_outcomes_and_replaced(trainer_of):
    asked = []

    def outcome(session):
        asked.append(session)
        return {"score": 1.0} if len(asked) <= 8 else every_other(session)

    trainer = trainer_of("filter", outcome, changes={"algorithm.filter_groups.enable": True})
    trainer.step_once()
    assert len(asked) == 24 and len({key.split("_")[0] for key in trainer.actor_rollout_wg.seen}) == 2
    assert 0.0 not in trainer.actor_rollout_wg.seen.values() and off_by(trainer) < 1e-6


def divide(trainer):
    trainer.config.algorithm.norm_adv_by_std_in_grpo = True


def vectorize(trainer):
    trainer.config.algorithm.adv_estimator = "grpo_vectorized"  # norm_adv_by_std_in_grpo stays False, and is ignored


def leave_one_out(trainer):
    trainer.config.algorithm.adv_estimator = "rloo"


def clip_in_a_worker(trainer):
    """Behind all of the trainer's own steps, on the way into the loss."""

    def clipped(data):
        data["advantages"] = torch.nested.as_nested_tensor(
            [row.clamp(-0.1, 0.1) for row in data["advantages"].unbind()], layout=torch.jagged
        )
        return data

    trainer.actor_rollout_wg.between = clipped


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (divide, "standard deviation"), (vectorize, "standard deviation"), (leave_one_out, "leave-one-out"),
        (clip_in_a_worker, "clipping at 0.1"),
    ],
)  # fmt: skip
def test_what_is_switched_on_in_the_middle_of_a_run_stops_it(trainer_of, change, words):
    trainer = trainer_of(f"switch-{change.__name__.replace('_', '-')}")
    trainer.step_once()
    model = [p.detach().clone() for p in trainer.actor_rollout_wg.model.parameters()]
    change(trainer)
    with pytest.raises(FidelityError, match=words):
        trainer.step_once()
    now = trainer.actor_rollout_wg.model.parameters()
    assert all(torch.equal(a, b) for a, b in zip(model, now, strict=True))  # before the optimiser step


def test_verl_as_it_comes_is_refused_by_name(trainer_of):
    with pytest.raises(FidelityError, match="norm_adv_by_std_in_grpo"):
        trainer_of("std", changes={"algorithm.norm_adv_by_std_in_grpo": True})


def test_groups_stay_parked_until_a_person_decides_and_then_leave_alone(trainer_of, server):
    trainer = trainer_of("parked", policy="manual")
    trainer._add_prompts_to_generate(2)
    buffer, until, approved = trainer.replay_buffer, time.monotonic() + 60, ""
    assert buffer.get_sampleable_count(1, "train") == 0
    while not approved and time.monotonic() < until:
        approved = server.approve(trainer.access[0])
    while buffer.get_sampleable_count(1, "train") == 0 and time.monotonic() < until:
        time.sleep(0.2)
    batch, _ = buffer.sample(global_steps=1, partition_id="train", batch_size=1)
    assert {key.split("_")[0] for key in batch.keys} == {approved}
    assert buffer.get_sampleable_count(1, "train") == 0  # the other one still waits


def test_after_the_deadline_outcome_rewards_stay(trainer_of):
    trainer = trainer_of("late", policy="manual", sampler={"within_s": 2})
    trainer.step_once()
    assert {*trainer.actor_rollout_wg.seen.values()} == {0.5, -0.5}


def test_the_cursor_lies_in_verls_checkpoint_and_a_new_process_goes_on(trainer_of, tmp_path):
    trainer = trainer_of("resume")
    trainer.step_once()
    trainer._save_checkpoint()
    trainer.replay_buffer.close()
    assert cursor_in(tmp_path / "global_step_1") is not None
    again = trainer_of("resume", again=trainer.access, changes={"trainer.resume_mode": "auto"})
    again.global_steps = 1  # verl's _load_checkpoint
    again.step_once()
    assert again.replay_buffer._client.life == 2 and not again.replay_buffer._client.problems
    assert off_by(again) < 1e-6


@ray.remote
class Worker:
    """A process of verl's: it knows our probe by `external_lib` alone."""

    def __init__(self):
        from verl.utils.import_utils import import_external_libs

        tq.init()
        import_external_libs("training_bridge.adapters.verl_loss")

    def update(self, config, batch, scale):
        actor = tiny_verl.Actor(config)
        actor.between = lambda data: data.update({"advantages": data["advantages"] * scale})
        actor.update_actor(batch)
        return len(actor.seen)


def test_the_probe_works_in_a_process_of_verls_and_its_error_reaches_the_trainer(trainer_of):
    trainer = trainer_of("worker")
    trainer.step_once()
    worker = Worker.remote()
    assert ray.get(worker.update.remote(trainer.config, trainer.batch, 1.0)) == 16
    with pytest.raises(FidelityError, match=r"multiplied by 1\.5"):
        ray.get(worker.update.remote(trainer.config, trainer.batch, 1.5))


def test_a_row_without_trained_tokens_is_not_compared():
    mask = torch.tensor([[1, 1], [0, 0]])
    got = verl_loss.in_each_row(torch.tensor([[0.5, 0.4], [9.0, 9.0]]), mask, torch.tensor([0.5, 0.1]).numpy())
    assert got.tolist() == pytest.approx([0.4, 0.1])
