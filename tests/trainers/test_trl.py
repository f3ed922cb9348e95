"""TRL's own GRPOTrainer, trained for real: its loss sees our advantages, and a wrong setting stops it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="TRL is not installed here: make test-trainers runs this")

import torch
from datasets import Dataset
from transformers import TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from tests.trainers import tiny
from tests.trainers.conftest import ROOT
from training_bridge.adapters.fidelity import FidelityError
from training_bridge.adapters.trl import GagarTRL, cursor_in
from training_bridge.client import GagarClient


def dataset(**columns) -> Dataset:
    prompts = [f"w{i} w{i + 1} w{i + 2}" for i in range(8)]
    rows = {"prompt": prompts, "task": [f"t-{i}" for i in range(8)]}
    return Dataset.from_dict(rows | {name: [value] * 8 for name, value in columns.items()})


def make(client, tmp_path, *, space="reward", callbacks=(), columns=None, **settings):
    gagar = GagarTRL(client, tiny.evaluate, within_s=60, space=space)
    settings = {
        "scale_rewards": "none", "per_device_train_batch_size": 16, "num_generations": 8, "max_completion_length": 10,
        "max_steps": 3, "learning_rate": 1e-3, "report_to": [], "use_cpu": True, "save_strategy": "no",
        "logging_steps": 1, "output_dir": str(tmp_path), "disable_tqdm": True, "bf16": False,
    } | settings  # fmt: skip
    trainer = GRPOTrainer(
        tiny.model(), reward_funcs=[gagar.reward], args=GRPOConfig(**settings), processing_class=tiny.tokenizer(),
        train_dataset=dataset(**(columns or {})), callbacks=list(callbacks),
    )  # fmt: skip
    gagar.attach(trainer)
    return gagar, trainer


@pytest.mark.parametrize("space", ["reward", "advantage"])
def test_trl_trains_on_our_advantages_to_1e_6(server, tmp_path, space):
    run, token = server.new_run(f"trl-{space}")
    settings = {} if space == "reward" else {"scale_rewards": "group"}
    with GagarClient(server.url, run, token) as client:
        _, trainer = make(client, tmp_path, space=space, **settings)
        before = torch.cat([p.detach().flatten().clone() for p in trainer.model.parameters()])
        trainer.train()
        after = torch.cat([p.detach().flatten() for p in trainer.model.parameters()])
        seen = sorted(trainer._logs["advantages"])  # what TRL itself says it used, the newest batch
        rows = server.rows(run, token)
    assert not torch.equal(before, after)
    assert len(rows) == 6 and {row["regime"] for row in rows} & {"exact", "bounded", "clipped"}
    newest = sorted(row["advantage"] for one in rows if one["step"] == 2 for row in one["rows"])
    if space == "reward":  # TRL logs before we replace, in the other space
        assert max(abs(a - b) for a, b in zip(seen, newest, strict=True)) < 1e-6


def test_invalid_rollouts_stay_outside_the_mean(server, tmp_path):
    run, token = server.new_run("trl-invalid")
    with GagarClient(server.url, run, token) as client:
        _, trainer = make(client, tmp_path, columns={"spoil": True})
        trainer.train()
        assert any(row["outcome"] == "infra_invalid" for one in server.rows(run, token) for row in one["rows"])


@pytest.mark.parametrize("scaling", ["group", "batch"])
def test_a_trainer_that_scales_rewards_is_refused_by_name(server, tmp_path, scaling):
    with pytest.raises(FidelityError, match=f"scale_rewards='{scaling}'"):
        make(None, tmp_path, scale_rewards=scaling)


class Switch(TrainerCallback):
    """Somebody changes a setting in the middle of the run."""

    def __init__(self, change):
        self.change, self.trainer = change, None

    def on_step_end(self, args, state, control, **kwargs):
        self.change(self.trainer)


def scale(trainer):
    trainer.scale_rewards = "group"


def weigh(trainer):
    trainer.reward_weights = torch.tensor([0.5])


def clip_in_the_batch(trainer):
    """A hook between scoring and loss that nobody remembers."""
    prepare = trainer._prepare_inputs

    def clipped(batch):
        inputs = prepare(batch)
        return inputs | {"advantages": inputs["advantages"].clamp(-0.1, 0.1)}

    trainer._prepare_inputs = clipped


@pytest.mark.parametrize(
    ("change", "words"),
    [(scale, "standard deviation"), (weigh, "multiplied by 0.5"), (clip_in_the_batch, "clipping at 0.1")],
)
def test_what_is_switched_on_in_the_middle_of_a_run_stops_it(server, tmp_path, change, words):
    run, token = server.new_run(f"trl-switch-{change.__name__.replace('_', '-')}")
    switch = Switch(change)
    with GagarClient(server.url, run, token) as client:
        _, trainer = make(client, tmp_path, callbacks=[switch], max_steps=6)
        switch.trainer = trainer
        with pytest.raises(FidelityError, match=words):
            trainer.train()


def test_the_cursor_lies_in_the_checkpoint_and_a_new_process_goes_on(server, tmp_path):
    run, token = server.new_run("trl-resume")
    with GagarClient(server.url, run, token) as client:
        _, trainer = make(client, tmp_path, save_strategy="steps", save_steps=1)
        trainer.train()
    folder = Path(tmp_path) / "checkpoint-2"
    assert cursor_in(folder) is not None and cursor_in(None) is None
    with GagarClient(server.url, run, token, cursor=cursor_in(folder)) as client:
        _, trainer = make(client, tmp_path, max_steps=4)
        trainer.train(resume_from_checkpoint=str(folder))
        assert client.life == 2 and not client.problems


def test_without_a_server_trl_trains_on_outcome_advantages(tmp_path):
    with GagarClient("http://127.0.0.1:9", "nobody", "token") as client:
        _, trainer = make(client, tmp_path, max_steps=1)
        trainer.train()
        passed = [row > 0 for row in trainer._logs["advantages"]]
    assert any(passed) and not all(passed)


RANK = """
import os
import sys
from pathlib import Path
from tests.trainers.test_trl import make
from training_bridge.client import GagarClient
url, run, token, out = sys.argv[1:]
if os.environ["RANK"] == "0":  # accelerate knows its ranks only once the trainer has made its settings
    with GagarClient(url, run, token) as client:
        _, trainer = make(client, Path(out), per_device_train_batch_size=4, num_generations=8, max_steps=2)
        trainer.train()
else:
    _, trainer = make(None, Path(out), per_device_train_batch_size=4, num_generations=8, max_steps=2)
    trainer.train()
print("done", flush=True)
"""


def test_a_group_split_over_two_ranks_gets_the_same_numbers(server, tmp_path):
    run, token = server.new_run("trl-ranks")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "29577"]
    script = tmp_path / "rank.py"
    script.write_text(RANK)
    command += [str(script), server.url, run, token, str(tmp_path)]
    env = os.environ | {"PYTHONPATH": str(ROOT), "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, check=False, env=env, capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = server.rows(run, token)
    assert done.stdout.count("done") == 2 and [len(row["rows"]) for row in rows] == [8, 8]
