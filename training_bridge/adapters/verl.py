"""verl, v1 trainer (tried with 0.9.1): a sampler that parks groups until they are decided and writes their rewards.

`trainer.v1.sampler.custom_sampler.path=pkg://training_bridge.adapters.verl`, `.name=GagarSampler`; see README.
"""

import atexit
import importlib
import os
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transfer_queue as tq
from tensordict import TensorDict
from verl.trainer.ppo.v1.replay_buffer import ReplayBufferAsync

from training_bridge.adapters import fidelity
from training_bridge.adapters.cursors import cursor_in, save_cursor
from training_bridge.adapters.rows import rewards_of
from training_bridge.adapters.verl_loss import ESTIMATOR, EXPECTED, NAME, in_each_row
from training_bridge.adapters.verl_settings import check_settings
from training_bridge.client import AdvantageSet, FrozenBatch, GagarClient, GroupHandle

HOLD_STEPS = 100  # how long a group waits is said in seconds; the client forgets what verl evicted after twice this
LAST_CALL_S = 1.0  # what the server gets to answer once a group's time is over
METRICS = {"actor/pg_loss": "pg_loss", "actor/entropy": "entropy"}
FIELDS = ("outcome", "reward", "patch", "tests", "counts", "truncated", "events", "log")


@dataclass(frozen=True)
class Parked:
    """A group that waits for its decision."""

    handle: GroupHandle
    until: float  # time.monotonic()


@dataclass(frozen=True)
class Written:
    """What the newest batch has to carry: row to advantage, group to rows."""

    step: int
    advantages: dict[str, float]
    groups: dict[str, list[str]]
    sets: list[AdvantageSet]


class GagarSampler(ReplayBufferAsync):
    """verl samples decided groups only; undecided ones stay in its queue, stale ones it evicts itself.

    `trainer.v1.sampler.sampler_kwargs`: url, run, within_s (how long a group may wait; then outcome advantages),
    evaluate ("module:function", see `from_reward`), spool, poll_s. The token is GAGAR_TOKEN in the environment.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        """Called by verl. Raises: FidelityError, a setting would change the numbers; it is named."""
        super().__init__(*args, **kwargs)
        self._trainer = self.refill_fn.__self__  # verl hands a sampler no other way to its settings
        check_settings(self._trainer.config)
        options = dict(self.sampler_kwargs or {})
        self.poll_interval = float(options.get("poll_s", self.poll_interval))
        self._options, self._within_s = options, float(options.get("within_s", 600.0))
        self._evaluate = _function(options["evaluate"]) if options.get("evaluate") else from_reward
        self._client: GagarClient | None = None
        self._parked: dict[str, Parked] = {}
        self._decided: dict[str, AdvantageSet] = {}
        self._newest: Written | None = None
        self._step = 0
        self._watch_trainer()

    def sample(self, global_steps: int, partition_id: str, batch_size: int) -> tuple[Any, dict]:
        """Sample as verl does, from the decided groups."""
        self._applied()
        self._step = global_steps
        return super().sample(global_steps=global_steps, partition_id=partition_id, batch_size=batch_size)

    @property
    def _space(self) -> str:
        return "advantage" if self._trainer.config.algorithm.adv_estimator == ESTIMATOR else "reward"

    def close(self) -> None:
        """Stop the client's threads. verl does not call it; the end of the process does."""
        if self._client is not None:
            self._client.__exit__(None, None, None)
            self._client = None

    def _sampleable_terminal_keys(self, partition_id: str, eviction_reasons: tuple) -> set[str]:
        # A private name of verl's, as there is no public place between "all rolled out" and "sampled".
        uids = super()._sampleable_terminal_keys(partition_id, eviction_reasons)
        if partition_id == "val":
            return uids
        self._forget((self._parked.keys() | self._decided.keys()) - uids)
        for uid in sorted(uids - self._parked.keys() - self._decided.keys()):
            self._submit(partition_id, uid)
        self._decide()
        self._filter(partition_id)
        return uids & self._decided.keys()

    def _submit(self, partition_id: str, uid: str) -> None:
        """Hand one finished group over. A rollout is a session; its last row speaks for it, as in verl's GRPO."""
        last: dict[str, str] = {}
        for key in self.partitions[partition_id]:
            if key.split("_")[0] == uid:
                session, index = key.rsplit("_", 1)
                if session not in last or int(index) > int(last[session].rsplit("_", 1)[1]):
                    last[session] = key
        if not last:
            return  # nobody finished: verl takes no rows from it
        client = self._open()
        rows = _rows(tq.kv_batch_get(keys=list(last.values()), partition_id=partition_id))
        told = {session: dict(self._evaluate(row)) for session, row in zip(last, rows, strict=True)}
        first = next(iter(told.values()))
        task = str(first.get("task") or rows[0].get("index") or uid)
        client.task(task, statement=str(first.get("statement") or _prompt(rows[0]) or task))
        step = self.prompt_global_steps[partition_id].get(uid, self._step)
        handle = client.declare(uid, task=task, step=step, group_size=len(last))
        for session, fields in told.items():
            handle.submit(session, **{name: fields[name] for name in FIELDS if name in fields})
        self._parked[uid] = Parked(handle, time.monotonic() + self._within_s)

    def _decide(self) -> None:
        """Take what has been decided since, and outcome advantages for what has waited long enough."""
        now, client = time.monotonic(), self._client
        if client is None or not self._parked:
            return
        late = [parked.handle for parked in self._parked.values() if parked.until <= now]
        early = [parked.handle for parked in self._parked.values() if parked.until > now]
        sets = client.freeze(self._step, early, within_s=0.0, hold_steps=HOLD_STEPS).sets
        if late:
            sets += client.freeze(self._step, late, within_s=LAST_CALL_S, hold_steps=0).sets
        for one in sets:
            self._decided[one.group] = one
            del self._parked[one.group]

    def _filter(self, partition_id: str) -> None:
        """`algorithm.filter_groups.enable`, which verl leaves to a custom sampler: on outcomes, not on rewards."""
        if not (self._trainer.config.algorithm.get("filter_groups") or {}).get("enable", False):
            return
        empty = {uid: one for uid, one in self._decided.items() if not one.train}
        if empty:
            self._client.applied(FrozenBatch(self._step, [*empty.values()], []))
            self._forget({*empty})
            self._clear_groups(partition_id, {*empty})
            self.refill_fn(len(empty))

    def _forget(self, evicted: set[str]) -> None:
        """Groups that verl evicted meanwhile: nobody will train on them."""
        for uid in evicted:
            self._parked.pop(uid, None)
            self._decided.pop(uid, None)

    def _materialize_batch(self, partition_id: str, selected_prompt_uids: list[str], partition_snapshot: dict) -> Any:
        batch = super()._materialize_batch(partition_id, selected_prompt_uids, partition_snapshot)
        return batch if partition_id == "val" else self._write(batch)

    def _write(self, batch: Any) -> Any:
        """Put the decided numbers on the last token of each row; invalid rows leave before verl's statistics."""
        sets = {uid: self._decided.pop(uid) for uid in {key.split("_")[0] for key in batch.keys}}
        rewards = {uid: rewards_of(one, self._space) for uid, one in sets.items()}
        kept, dropped, groups = [], [], defaultdict(list)
        for key in batch.keys:
            uid, session = key.split("_")[0], key.rsplit("_", 1)[0]
            (dropped if rewards[uid][session] is None else kept).append(key)
        if dropped:
            tq.kv_clear(keys=dropped, partition_id=batch.partition_id)
            batch = batch.select_keys(kept)
        advantages = {}
        for key in kept:
            uid, session = key.split("_")[0], key.rsplit("_", 1)[0]
            groups[uid].append(key)
            advantages[key] = sets[uid].advantage[session] if sets[uid].train else 0.0
        lengths = [tag["response_len"] for tag in batch.tags]
        values = [rewards[key.split("_")[0]][key.rsplit("_", 1)[0]] for key in kept]
        fields = {
            "rm_scores": _on_last_token(values, lengths),
            EXPECTED: torch.tensor(list(advantages.values()))[:, None],
        }
        # not the answer's keys and fields: the batch must say that all of a row's fields travel to the workers
        tq.kv_batch_put(keys=kept, partition_id=batch.partition_id, fields=TensorDict(fields, batch_size=len(kept)))
        self._newest = Written(self._step, advantages, dict(groups), list(sets.values()))
        passed = [outcome == "passed" for one in sets.values() for outcome in one.outcome.values()]
        self._client.log(self._step, {"pass_rate": sum(passed) / max(1, len(passed))})
        return batch

    def _watch_trainer(self) -> None:
        trainer = self._trainer
        update, save = trainer._update_actor, trainer._save_checkpoint

        def update_actor(batch: Any, metrics: dict) -> Any:
            self._look_at(batch)
            batch = update(batch, metrics)
            self._applied()
            self._log(metrics)
            return batch

        def save_checkpoint() -> None:
            save()
            self._applied()
            if self._client is not None:
                save_cursor(self._client, _folder(trainer.config, trainer.global_steps))

        trainer._update_actor, trainer._save_checkpoint = update_actor, save_checkpoint

    def _look_at(self, batch: Any) -> None:
        """Compare what verl computed and its workers are about to read with what was decided, group by group."""
        written, present = self._newest, {*batch.keys}
        if written is None:
            return
        keys = [key for key in written.advantages if key in present]
        fields = ["advantages", "response_mask"]
        data = tq.kv_batch_get(keys=keys, partition_id=batch.partition_id, select_fields=fields)
        expected = torch.tensor([written.advantages[key] for key in keys], dtype=torch.float64).numpy()
        got = dict(zip(keys, in_each_row(data["advantages"], data["response_mask"], expected), strict=True))
        for uid, rows in written.groups.items():
            there = [got[row] for row in rows if row in got]
            fidelity.check([written.advantages[row] for row in rows], there, group=uid, trainer=NAME)

    def _applied(self) -> None:
        if self._newest is not None and self._client is not None:
            self._client.applied(FrozenBatch(self._newest.step, self._newest.sets, []))
        self._newest = None

    def _log(self, metrics: dict) -> None:
        values = {ours: metrics[theirs] for theirs, ours in METRICS.items() if theirs in metrics}
        if values and self._client is not None:
            self._client.log(self._step, values)

    def _open(self) -> GagarClient:
        """Start the client at the first group: only then verl knows which checkpoint it goes on from."""
        if self._client is None:
            cursor = cursor_in(_restored(self._trainer.config, self._trainer.global_steps - 1))
            spool = Path(self._options["spool"]) if self._options.get("spool") else None
            client = GagarClient(
                self._options["url"], self._options["run"], os.environ["GAGAR_TOKEN"], cursor=cursor, spool=spool
            )
            self._client = client.__enter__()
            self._client.describe(name="verl", space=self._space, cap=self._options.get("cap"))
            atexit.register(self.close)
        return self._client


def from_reward(row: Mapping[str, Any]) -> dict[str, Any]:
    """Describe one rollout from verl's own reward; write one of your own for patches and transcripts.

    Args:
        row: the fields of the rollout's last row, as verl keeps them.
    Returns:
        `outcome` (passed where the reward is above 0) and `reward` unless it is 0 or 1; then whatever the reward
        function gave as `reward_extra_info` under the names of `GroupHandle.submit`, `task` or `statement`.
    """
    score = float(row["rm_scores"].sum())
    told: dict[str, Any] = {"outcome": "passed" if score > 0 else "failed"}
    if score not in (0.0, 1.0):
        told["reward"] = score
    more = (row.get("extra_fields") or {}).get("reward_extra_info") or {}
    return told | {name: more[name] for name in (*FIELDS, "task", "statement") if more.get(name) is not None}


def _on_last_token(values: list[float], lengths: list[int]) -> torch.Tensor:
    rows = [torch.zeros(length) for length in lengths]
    for row, value in zip(rows, values, strict=True):
        row[-1] = value
    return torch.nested.as_nested_tensor(rows, layout=torch.jagged)


def _rows(data: TensorDict) -> list[dict[str, Any]]:
    return [{name: getattr(row[name], "data", row[name]) for name in row.keys()} for row in data]  # noqa: SIM118


def _prompt(row: Mapping[str, Any]) -> str:
    messages = row.get("raw_prompt") or []
    return "\n".join(str(message.get("content", "")) for message in messages if isinstance(message, Mapping))


def _function(name: str) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    module, function = name.split(":")
    return getattr(importlib.import_module(module), function)


def _folder(config: Any, step: int) -> Path:
    return Path(config.trainer.default_local_dir).absolute() / f"global_step_{step}"


def _restored(config: Any, step: int) -> Path | None:
    if config.trainer.resume_mode == "resume_path":
        return Path(config.trainer.resume_from_path).absolute()
    return _folder(config, step) if config.trainer.resume_mode == "auto" and step > 0 else None
