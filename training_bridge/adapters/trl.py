"""TRL `GRPOTrainer` (tried with 1.16): our numbers enter as rewards, or as advantages, and are looked at in the loss.

In reward space TRL must centre by the group's mean and nothing else: `scale_rewards="none"`, one reward function.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from accelerate.utils import broadcast_object_list, gather_object
from transformers import TrainerCallback

from training_bridge.adapters import fidelity
from training_bridge.adapters.cursors import cursor_in, save_cursor
from training_bridge.adapters.rows import Rows, rows_of
from training_bridge.client import FrozenBatch, GagarClient

NAME = "TRL (scale_rewards, reward_weights, multi_objective_aggregation)"
# what TRL logs -> what the monitor draws
METRICS = {"loss": "pg_loss", "entropy": "entropy", "completions/mean_length": "response_tokens"}
Evaluate = Callable[..., Mapping[str, Any]]
__all__ = ["GagarTRL", "cursor_in"]


class GagarTRL:
    """`reward_funcs=[gagar.reward]`, then `gagar.attach(trainer)`."""

    def __init__(
        self,
        client: GagarClient | None,
        evaluate: Evaluate,
        *,
        task: str = "task",
        within_s: float = 60.0,
        space: Literal["reward", "advantage"] = "reward",
    ):
        """Prepare one training process.

        Args:
            client: entered; on the main process only, None on the other ranks.
            evaluate: `(prompt, completion, **columns) -> fields of GroupHandle.submit`, at least `outcome`. It runs on
                the rank that holds the row. `columns` are the dataset's, one value each.
            task: the dataset column with the task's key.
            within_s: how long a batch may wait for decisions; after that outcome advantages, version 0.
            space: `reward` gives TRL the equivalent rewards (Eq. 9-10); `advantage` replaces what TRL computed.
        """
        self._client, self._evaluate, self._task = client, evaluate, task
        self._within_s, self._space = within_s, space
        self._trainer: Any = None
        self._local = Rows()  # of the batch that was rewarded last, this rank's part
        self._expected: dict[bytes, list[float]] = {}  # a row's tokens -> advantages it may have
        self._unused: list[FrozenBatch] = []
        if client is not None:
            client.describe(name="trl", space=space)
        self.__name__ = "gagar"  # TRL names its metrics after it

    def attach(self, trainer: Any) -> None:
        """Check the trainer's settings and watch its loss. Call it once, before `train`.

        Raises:
            FidelityError: a setting that would change the numbers, by name.
        """
        _check_settings(trainer, self._space)
        self._trainer, score, loss = trainer, trainer._generate_and_score_completions, trainer._compute_loss
        # Private names of TRL, as there is no public place between advantages and loss; the tests pin the version.
        trainer._generate_and_score_completions = lambda inputs: self._scored(score, inputs)
        trainer._compute_loss = lambda model, inputs, *a, **k: loss(model, self._looked_at(inputs), *a, **k)
        trainer.add_callback(_Steps(self))

    def reward(self, prompts: Sequence, completions: Sequence, trainer_state: Any, **columns: Any) -> list:
        """TRL's reward function: submit this batch's groups, wait for their decisions, give the equivalent rewards."""
        rows = []
        for i, (prompt, completion) in enumerate(zip(prompts, completions, strict=True)):
            own = {k: v[i] for k, v in columns.items() if isinstance(v, list) and len(v) == len(prompts)}
            own.pop("completion_ids", None)
            rows.append({"task": str(own[self._task]), "fields": dict(self._evaluate(prompt, completion, **own))})
        if self._trainer is not None and not self._trainer.model.training:
            return [float(row["fields"]["outcome"] == "passed") for row in rows]  # evaluation trains nobody
        state = self._trainer.accelerator.state if self._trainer is not None else None
        many, rank = (state.num_processes, state.process_index) if state else (1, 0)
        everyone = gather_object(rows) if many > 1 else rows
        box = [self._decided(everyone, trainer_state.global_step) if rank == 0 else None]
        if many > 1:
            broadcast_object_list(box)
        self._local = box[0].part(rank * len(rows), len(rows))
        return self._local.rewards

    def _decided(self, rows: list[dict], step: int) -> Rows:
        """All ranks' rows to decided rows, on the process that holds the stream. Groups stand one after the other."""
        size = self._trainer.num_generations if self._trainer is not None else len(rows)
        groups, names, seen = [], [], defaultdict(int)
        for start in range(0, len(rows), size):
            together, task = rows[start : start + size], rows[start]["task"]
            seen[task] += 1
            key = f"{step}/{task}" if seen[task] == 1 else f"{step}/{task}#{seen[task]}"
            self._client.task(task, statement=task)
            group = self._client.declare(key, task=task, step=step, group_size=len(together))
            for i, row in enumerate(together):
                group.submit(f"{key}/{i}", **row["fields"])
            groups.append(group)
            names.append([f"{key}/{i}" for i in range(len(together))])
        if any(row["fields"].get("reward") is not None for row in rows):
            self._client.describe(shaped=True)
        batch = self._client.freeze(step, groups, within_s=self._within_s)
        self._unused.append(batch)
        passed = sum(row["fields"]["outcome"] == "passed" for row in rows)
        self._client.log(step, {"pass_rate": passed / len(rows)})
        return rows_of(batch.sets, names)

    def _scored(self, score: Callable, inputs: Any) -> dict:
        """TRL's own scoring; then each row's expected advantage is remembered by its tokens, and TRL's is checked."""
        self._local = Rows()
        output = score(inputs)
        if not self._local.advantages:
            return output  # an evaluation
        decided = torch.tensor(self._local.advantages, dtype=torch.float32, device=output["advantages"].device)
        if self._space == "advantage":
            output["advantages"] = decided.to(output["advantages"].dtype)
        self._check(decided.tolist(), output["advantages"].flatten().tolist())
        self._expected = defaultdict(list)
        for key, value in zip(_row_keys(output), decided.tolist(), strict=True):
            self._expected[key].append(value)
        return output

    def _check(self, expected: list[float], got: list[float]) -> None:
        for name, start, stop in self._local.spans():
            fidelity.check(expected[start:stop], got[start:stop], group=name, trainer=NAME)

    def _looked_at(self, inputs: dict) -> dict:
        """The batch inside the loss, shuffled and split by TRL: each row must carry one of its decided advantages."""
        if not self._trainer.model.training or not self._expected:
            return inputs
        got = inputs["advantages"]
        got = got if got.dim() == 1 else got[:, 0]
        expected = [
            min(self._expected.get(key, [float("nan")]), key=lambda one: abs(one - value))
            for key, value in zip(_row_keys(inputs), got.tolist(), strict=True)
        ]
        fidelity.check(expected, got.tolist(), group="of this micro-batch", trainer=NAME)
        return inputs


class _Steps(TrainerCallback):
    """After an optimiser step its batches are applied; the cursor goes into each checkpoint."""

    def __init__(self, gagar: GagarTRL):
        self._gagar = gagar

    def on_step_end(self, args, state, control, **kwargs):
        while self._gagar._unused:
            self._gagar._client.applied(self._gagar._unused.pop(0))

    def on_save(self, args, state, control, **kwargs):
        if self._gagar._client is not None:
            save_cursor(self._gagar._client, Path(args.output_dir) / f"checkpoint-{state.global_step}")

    def on_log(self, args, state, control, logs=None, **kwargs):
        values = {ours: logs[theirs] for theirs, ours in METRICS.items() if theirs in (logs or {})}
        if values and self._gagar._client is not None:
            self._gagar._client.log(state.global_step, values)


def _check_settings(trainer: Any, space: str) -> None:
    """Refuse by name what would change the numbers; the probe in the loss finds what is switched later."""
    if len(trainer.reward_funcs) != 1 or any(float(weight) != 1.0 for weight in trainer.reward_weights):
        got = f"{len(trainer.reward_funcs)} reward functions, weights {[float(w) for w in trainer.reward_weights]}"
        raise fidelity.FidelityError(
            f"TRL: got {got}, expected gagar.reward alone with weight 1: put other terms into `evaluate`'s reward"
        )
    if space == "reward" and trainer.scale_rewards not in ("none", False):
        raise fidelity.FidelityError(
            f"TRL: got scale_rewards={trainer.scale_rewards!r}, expected 'none': a division by a standard deviation "
            "undoes the redistribution; or take space='advantage'"
        )
    if space == "reward" and trainer.multi_objective_aggregation != "sum_then_normalize":
        raise fidelity.FidelityError(
            f"TRL: got multi_objective_aggregation={trainer.multi_objective_aggregation!r}, "
            "expected 'sum_then_normalize': the other one normalises each reward by its standard deviation"
        )


def _row_keys(batch: Mapping[str, torch.Tensor]) -> list[bytes]:
    """A name for each row that survives TRL's shuffling and splitting: its own tokens, padding left out."""
    pairs = (("prompt_ids", "prompt_mask"), ("completion_ids", "completion_mask"))
    parts = [(batch[ids].cpu(), batch[mask].cpu().bool()) for ids, mask in pairs]
    return [
        b"|".join(ids[i][mask[i]].numpy().tobytes() for ids, mask in parts) for i in range(len(batch["prompt_ids"]))
    ]
