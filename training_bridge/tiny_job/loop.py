"""The training loop: roll out, declare, submit, freeze, train, receipt, report, checkpoint."""

import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from training_bridge.tiny_job import catalog, checkpoint, metrics, trainer
from training_bridge.tiny_job import tree as trees
from training_bridge.tiny_job.errors import WrongCheckpoint
from training_bridge.tiny_job.imitation import warm_up
from training_bridge.tiny_job.language import Language
from training_bridge.tiny_job.policy import Policy
from training_bridge.tiny_job.rollout import Rollout, roll_out
from training_bridge.tiny_job.runner import Runner

LEARNING_RATE = 6e-4  # slow enough that groups stay mixed for about a hundred steps


@dataclass(frozen=True)
class Plan:
    """What fixes the numbers of a job; a checkpoint is resumed only under the plan it was begun with.

    Args:
        advantages: the method the run is expected to have.
        seed: of everything random.
        groups: groups a step.
        rollouts: rollouts a group.
        learning_rate: of Adam.
    """

    advantages: str
    seed: int
    groups: int
    rollouts: int
    learning_rate: float = LEARNING_RATE


@dataclass(frozen=True)
class Pace:
    """How a job is run; may differ from start to start.

    Args:
        steps: steps in all; None runs until it is stopped.
        wait_s: how long a step waits for decisions, seconds.
        hold_steps: for how many steps a group may wait for a person.
        min_step_s: least duration of a step, seconds.
        checkpoint_every: steps between two checkpoints.
        bodies_every: events and logs of every so many steps are handed over; patches and tests always are.
    """

    steps: int | None
    wait_s: float
    hold_steps: int
    min_step_s: float
    checkpoint_every: int
    bodies_every: int = 1


@dataclass
class PendingGroup:
    """A group that no optimiser step has used."""

    key: str
    task: str
    step: int
    life: int
    rollouts: list[Rollout]
    handle: object = None

    def plain(self) -> dict:
        """Return what a checkpoint keeps."""
        rollouts = [rollout.plain() for rollout in self.rollouts]
        return {"key": self.key, "task": self.task, "step": self.step, "life": self.life, "rollouts": rollouts}


class Job:
    """The state of a job between two steps.

    Args:
        plan: fixes the numbers.
        runner: executes tests.
        path: of the checkpoint.
    """

    def __init__(self, plan: Plan, runner: Runner, path: Path) -> None:
        self.plan, self.runner, self.path = plan, runner, path
        self.tasks = catalog.load()
        torch.manual_seed(plan.seed)
        self.policy = Policy(Language.of(self.tasks))
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=plan.learning_rate)
        self.generator = torch.Generator().manual_seed(plan.seed)
        self.rng = random.Random(plan.seed)
        self.step = 0
        self.pending: dict[str, PendingGroup] = {}
        self.applied: list[tuple[int, str, int, int, str]] = []
        self.cursor: dict | None = None
        self.bodies_every = 1

    def begin(self) -> None:
        """Warm the policy up; a job that resumes must not."""
        warm_up(self.policy, self.tasks, self.runner, seed=self.plan.seed)

    def resume(self) -> None:
        """Stand where the checkpoint stands.

        Raises:
            WrongCheckpoint: it was begun under another plan.
        """
        state = checkpoint.load(self.path)
        if state["plan"] != asdict(self.plan):
            raise WrongCheckpoint(f"{self.path} was begun with {state['plan']}, got {asdict(self.plan)}")
        self.policy.load_state_dict(state["policy"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.generator.set_state(state["generator"])
        self.rng.setstate(state["rng"])
        self.step, self.cursor = state["step"], state["gagar"]
        self.applied = [tuple(row) for row in state["applied"]]
        for group in state["pending"]:
            rollouts = [Rollout(**rollout) for rollout in group["rollouts"]]
            self.pending[group["key"]] = PendingGroup(**(group | {"rollouts": rollouts}))

    def connect(self, gagar) -> None:
        """Register the tasks, and declare anew what was waiting: the groups of the older life are abandoned."""
        for task in self.tasks.values():
            gagar.task(
                task.key,
                statement=task.statement,
                repository=trees.archive(task.base),
                reference_patch=trees.diff(task.base, task.reference),
            )
        for group in self.pending.values():
            self._declare(gagar, group)

    def take_step(self, gagar, pace: Pace) -> dict:
        """Do one step.

        Args:
            gagar: the client, or its offline stand-in.
            pace: how long to wait.
        Returns:
            {"metrics": {...}, "regimes": {...}, "sets": [...]} of the step.
        """
        started = time.monotonic()
        fresh = self._roll_out(gagar)
        handles = [group.handle for group in self.pending.values()]
        batch = gagar.freeze(self.step, handles, within_s=pace.wait_s, hold_steps=pace.hold_steps)
        used = [self.pending[chosen.group] for chosen in batch.sets]
        rows = trainer.training_rows(batch.sets, {r.external_id: r for group in used for r in group.rollouts})
        entropy = trainer.mean_entropy(self.policy, fresh)
        loss = trainer.train(self.policy, self.optimizer, rows)
        gagar.applied(batch)
        for chosen in batch.sets:
            self.applied.append((chosen.life, chosen.group, chosen.version, self.step, chosen.regime))
            del self.pending[chosen.group]
        language = self.policy.language
        values = metrics.rollout_metrics(language, fresh) | metrics.label_metrics(self.tasks, language, fresh)
        values |= {"entropy": entropy} | metrics.deficit(batch.sets)
        if loss is not None:
            values["pg_loss"] = loss
        values |= {
            "groups_trained": sum(chosen.train for chosen in batch.sets),
            "groups_waiting": len(self.pending),
            "step_time_s": time.monotonic() - started,
        }
        gagar.log(self.step, values)
        self.step += 1
        return {"metrics": values, "regimes": metrics.regimes(batch.sets), "sets": batch.sets}

    def save(self, gagar) -> None:
        """Write the checkpoint with the client's cursor in it."""
        with gagar.checkpoint() as cursor:
            state = {
                "plan": asdict(self.plan),
                "policy": self.policy.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "generator": self.generator.get_state(),
                "rng": self.rng.getstate(),
                "step": self.step,
                "pending": [group.plain() for group in self.pending.values()],
                "applied": self.applied,
                "gagar": cursor,
            }
            checkpoint.save(self.path, state)

    def _roll_out(self, gagar) -> list[Rollout]:
        keys = self._choose_tasks()
        groups = [PendingGroup(f"s{self.step:05d}-{key}", key, self.step, gagar.life, []) for key in keys]
        names = [f"{group.key}-r{number:02d}" for group in groups for number in range(self.plan.rollouts)]
        tasks = [self.tasks[group.task] for group in groups for _ in range(self.plan.rollouts)]
        rollouts = roll_out(self.policy, tasks, names, self.runner, generator=self.generator)
        for number, group in enumerate(groups):
            group.rollouts = rollouts[number * self.plan.rollouts : (number + 1) * self.plan.rollouts]
            self.pending[group.key] = group
            self._declare(gagar, group)
        return rollouts

    def _choose_tasks(self) -> list[str]:
        if self.plan.groups > len(self.tasks):
            raise ValueError(f"{self.plan.groups} groups a step, expected at most {len(self.tasks)} (one a task)")
        return self.rng.sample(list(self.tasks), self.plan.groups)

    def _declare(self, gagar, group: PendingGroup) -> None:
        group.life = gagar.life
        group.handle = gagar.declare(
            group.key,
            task=group.task,
            step=group.step,
            policy_version=group.step,
            group_size=len(group.rollouts),
            eligible=True,
        )
        with_bodies = group.step % self.bodies_every == 0
        for rollout in group.rollouts:
            group.handle.submit(
                rollout.external_id,
                outcome=rollout.outcome,
                patch=rollout.patch,
                tests=rollout.tests,
                counts={
                    "turns": rollout.turns,
                    "tokens": len(rollout.tokens),
                    "response_tokens": metrics.response_length(self.policy.language, rollout),
                    "duration_s": rollout.duration_s,
                },
                truncated=rollout.truncated,
                events=rollout.events if with_bodies else None,
                log=rollout.log.encode() if with_bodies else None,
            )


def run(job: Job, gagar, pace: Pace, wait: Callable[[float], bool], report: Callable[[int, dict], None]) -> None:
    """Step until the plan is done or somebody stops it; the last state is in the checkpoint.

    Args:
        job: fresh or resumed.
        gagar: the client, or its offline stand-in.
        pace: how long and how fast.
        wait: waits up to so many seconds and returns whether the job was told to stop.
        report: gets each step's number and what `take_step` returned.
    """
    job.bodies_every = pace.bodies_every
    job.connect(gagar)
    saved_at = None
    while (pace.steps is None or job.step < pace.steps) and not wait(0):
        started = time.monotonic()
        number = job.step
        report(number, job.take_step(gagar, pace))
        if job.step % pace.checkpoint_every == 0:
            job.save(gagar)
            saved_at = job.step
        wait(max(0.0, pace.min_step_s - (time.monotonic() - started)))
    if saved_at != job.step:
        job.save(gagar)
