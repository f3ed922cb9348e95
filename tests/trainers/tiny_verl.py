"""verl's own v1 trainer around a tiny model on the CPU: its queue, replay buffer, advantages, loss; no vLLM, no FSDP.

What the GPU workers do (generate, log probabilities, an optimiser step through `ppo_loss`) is done here, in few lines.
"""

import uuid
from pathlib import Path

import torch
import transfer_queue as tq
import verl
from omegaconf import OmegaConf
from tensordict import TensorDict
from verl.trainer.ppo.v1.trainer_base import PPOTrainer
from verl.utils import tensordict_utils as tu
from verl.utils.config import omega_conf_to_dataclass
from verl.utils.tensordict_utils import list_of_dict_to_tensordict
from verl.workers import engine_workers

from tests.trainers import tiny

ROLLOUTS, PROMPTS = 8, 2  # a group, a step
PROMPT = [3, 4, 5]


def config_of(sampler: dict, folder: str, changes: dict | None = None):
    """verl's defaults, with what a user of ours sets."""
    config = OmegaConf.load(Path(verl.__file__).parent / "trainer" / "config" / "_generated_ppo_trainer.yaml")
    OmegaConf.set_struct(config, False)
    settings = {
        "algorithm.adv_estimator": "grpo",
        "algorithm.norm_adv_by_std_in_grpo": False,
        "algorithm.rollout_correction": None,
        "data.train_batch_size": PROMPTS,
        "actor_rollout_ref.model.external_lib": "training_bridge.adapters.verl_loss",
        "actor_rollout_ref.rollout.n": ROLLOUTS,
        "actor_rollout_ref.rollout.calculate_log_probs": False,
        "actor_rollout_ref.actor.ppo_mini_batch_size": PROMPTS,
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": 1,
        "actor_rollout_ref.actor.use_dynamic_bsz": True,
        "actor_rollout_ref.actor.strategy": "fsdp",
        "actor_rollout_ref.actor.rollout_n": ROLLOUTS,
        "trainer.v1.trainer_mode": "colocate_async",
        "trainer.v1.sampler.custom_sampler.path": "pkg://training_bridge.adapters.verl",
        "trainer.v1.sampler.custom_sampler.name": "GagarSampler",
        "trainer.v1.sampler.sampler_kwargs": {"poll_s": 0.1, "within_s": 60, **sampler},
        "trainer.default_local_dir": folder,
        "trainer.resume_mode": "disable",
    } | (changes or {})
    for name, value in settings.items():
        OmegaConf.update(config, name, value, force_add=True)
    return config


class Trainer(PPOTrainer):
    """`step_once()` is verl's whole step: sample, balance, old log probabilities, advantages, actor update."""

    def __init__(self, config, outcome):
        self.outcome, self.global_steps, self.use_reference_policy = outcome, 0, False
        self.actor_rollout_wg, self.tokenizer = Actor(config), tiny.tokenizer()
        self.reward_loop_manager = type("Rewards", (), {"reward_loop_worker_handles": ()})()
        super().__init__(config)
        self.partition = "train"

    def _init_tokenizer(self):
        pass

    def on_sample_end(self):
        pass

    def on_step_end(self):
        pass

    def _save_checkpoint(self):
        (Path(self.config.trainer.default_local_dir) / f"global_step_{self.global_steps}").mkdir(parents=True)

    def step_once(self) -> dict:
        self.global_steps += 1
        self._add_prompts_to_generate(PROMPTS)
        metrics = {}
        self.batch = self._step_once(metrics, {}, PROMPTS)
        return metrics

    def _add_prompts_to_generate(self, num_prompts):
        """What the agent loops put into the queue, from a model that samples at random."""
        for _ in range(num_prompts):
            uid = uuid.uuid4().hex
            kept = []
            for session in range(ROLLOUTS):
                score = self.outcome(session)
                if score is None:
                    continue  # an agent loop that gave nothing: the group is uneven
                responses = self.actor_rollout_wg.write()
                kept.append((f"{uid}_{session}_0", _fields(uid, responses, score, self.global_steps)))
            tags = [
                {"status": "success", "prompt_len": len(PROMPT), "response_len": len(fields["responses"]),
                 "seq_len": len(fields["input_ids"]), "global_steps": self.global_steps}
                for _, fields in kept
            ]  # fmt: skip
            keys = [key for key, _ in kept]
            rows = list_of_dict_to_tensordict([fields for _, fields in kept])
            tq.kv_batch_put(keys=keys, partition_id="train", fields=rows, tags=tags)
            tag = {"is_prompt": True, "status": "finished", "global_steps": self.global_steps}
            tq.kv_batch_put(keys=[uid], partition_id="train", tags=[tag])


def _fields(uid: str, responses: torch.Tensor, score: dict, step: int) -> dict:
    prompts = torch.tensor(PROMPT)
    input_ids, rewards = torch.cat([prompts, responses]), torch.zeros(len(responses))
    rewards[-1] = score.get("score", 0.0)
    patch = tiny.evaluate("", " ".join(tiny.WORDS[i] for i in responses))["patch"]
    return {
        "uid": uid, "prompts": prompts, "responses": responses, "input_ids": input_ids,
        "position_ids": torch.arange(len(input_ids)), "response_mask": torch.ones(len(responses), dtype=torch.int64),
        "loss_mask": torch.ones(len(responses), dtype=torch.int64), "rm_scores": rewards, "index": 7, "num_turns": 2,
        "global_steps": step, "multi_modal_inputs": {}, "raw_prompt": [{"role": "user", "content": "write words"}],
        "extra_fields": {"reward_extra_info": {"patch": patch} | score.get("more", {})},
        "rollout_log_probs": torch.zeros(len(responses)),
    }  # fmt: skip


class Actor:
    """In place of verl's worker group: one process, two ranks' worth of rows one after the other."""

    def __init__(self, config):
        self.model = tiny.model()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.config = omega_conf_to_dataclass(config.actor_rollout_ref.actor)
        self._dispatch_info = {"actor": [0]}
        self.seen: dict[str, float] = {}  # row to the advantage that stood in the loss

    def write(self) -> torch.Tensor:
        length = int(torch.randint(3, 10, ()))
        with torch.no_grad():
            ids = self.model.generate(
                torch.tensor([PROMPT]), do_sample=True, min_new_tokens=length, max_new_tokens=length, pad_token_id=0
            )
        return ids[0, len(PROMPT) :]

    def compute_log_prob(self, batch):
        data = tq.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id)
        with torch.no_grad():
            log_probs = self._log_probs(data)
        fields = {"log_probs": log_probs, "entropy": log_probs * -1}
        return tq.kv_batch_put(
            keys=batch.keys, partition_id=batch.partition_id, fields=TensorDict(fields, batch_size=len(batch.keys))
        )

    def update_actor(self, batch):
        data = tq.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id)
        half, losses = len(batch.keys) // 2, []
        self.optimizer.zero_grad()
        for keys in (batch.keys[:half], batch.keys[half:]):
            data = tq.kv_batch_get(keys=keys, partition_id=batch.partition_id)
            data = self.between(data)
            tu.assign_non_tensor(data, dp_size=2, batch_num_tokens=100, global_batch_size=len(batch.keys))
            loss, metrics = engine_workers.ppo_loss(
                config=self.config, model_output={"log_probs": self._log_probs(data)}, data=data
            )
            for key, row in zip(keys, data["advantages"].unbind(), strict=True):
                self.seen[key] = float(row[0])
            loss.backward()
            losses.append(float(loss))
        self.optimizer.step()
        return tu.get_tensordict({}, non_tensor_dict={"metrics": {"pg_loss": losses, "mfu": [0.0]}})

    def between(self, data):
        return data

    def _log_probs(self, data) -> torch.Tensor:
        rows = []
        for ids in data["input_ids"].unbind():
            logits = self.model(ids[None]).logits[0].log_softmax(-1)
            rows.append(torch.cat([logits[:-1].gather(-1, ids[1:, None])[:, 0], logits.new_zeros(1)]))
        return torch.nested.as_nested_tensor(rows, layout=torch.jagged)
