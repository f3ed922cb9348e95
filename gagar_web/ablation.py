"""The ablation's runs: every method of Sec. 4.4 and both controls, so many seeds each, a few jobs at a time."""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from django.db.models import Max

from gagar_web.embedded import Child
from grading import people
from grading.models import MachineToken, RubricVersion, Run, Team
from grading.states import Policy
from training_bridge.ablation.lines import ARMS
from training_bridge.models import MetricPoint

ATTEMPTS = 3
BODIES_EVERY = 25  # steps; the static grader reads patches alone, so transcripts are for people who look in
WAIT_S = 600  # a step waits for its grades: no arm shall train on numbers of its own because a machine was busy


@dataclass(frozen=True)
class Size:
    """How large the experiment is; the same for every arm."""

    steps: int
    seeds: int
    groups: int
    rollouts: int
    rounds: int  # all arms reach one end before any of them goes on to the next
    methods: Sequence[str] = ARMS

    @property
    def ends(self) -> list[int]:
        return sorted({-(-self.steps * (n + 1) // self.rounds) for n in range(self.rounds)})


def open_run(method: str, seed: int) -> Run:
    """The run of one arm and seed; the same row however often the ablation is started."""
    run, is_new = Run.objects.get_or_create(
        public_id=f"ablation-{method}-{seed}",
        defaults={
            "team": Team.objects.get(slug="default"),
            "name": f"Ablation: {method.replace('_', ' ')}, seed {seed}",
            "method": method,
            "policy": Policy.AUTO,
            "grading_deadline_s": None,
            "collect_deadline_s": None,
            "rubric": RubricVersion.flash(),
            "hold_budget": 0,
            # An audit pools what was kept: of every group, else an arm that keeps mixed groups alone looks worse.
            "bodies_share": 1.0,
        },
    )
    if is_new:
        people.record_new(run, by="ablation")
    return run


def runs_of(size: Size) -> list[Run]:
    """Every run, seed by seed, so that what is done first can be compared."""
    return [open_run(method, seed) for seed in range(size.seeds) for method in size.methods]


def steps_done(run: Run) -> int:
    newest = MetricPoint.objects.filter(run=run).aggregate(step=Max("step"))["step"]
    return 0 if newest is None else newest + 1


def fresh_token(run: Run) -> str:
    """A key for this start of the ablation; those of earlier starts stop working."""
    for old in run.tokens.filter(name="ablation", revoked_at=None):
        old.revoke()
    return MachineToken.issue(run, name="ablation", purposes=("ingest", "train"))[1]


def jobs_of(folder: Path, url: str, size: Size) -> list[Child]:
    """Every job that is still to be done, in order: each ends at a step and resumes from its run's checkpoint."""
    folder.mkdir(parents=True, exist_ok=True)
    left = [(run, done, fresh_token(run)) for run in runs_of(size) if (done := steps_done(run)) < size.steps]
    return [
        Child(
            f"{run.public_id} to step {until}",
            [sys.executable, "-m", "training_bridge.tiny_job", *_arguments(folder, run, url, size, until)],
            env={"GAGAR_TOKEN": token}, ends=True,
        )
        for until in size.ends for run, done, token in left if done < until
    ]  # fmt: skip


def _arguments(folder: Path, run: Run, url: str, size: Size, until: int) -> list[str]:
    seed = run.public_id.rpartition("-")[2]
    return [
        "--url", url, "--run", run.public_id, "--advantages", run.method, "--seed", seed,
        "--groups", str(size.groups), "--rollouts", str(size.rollouts), "--steps", str(until),
        "--wait-s", str(WAIT_S), "--hold-steps", "0", "--checkpoint-every", "5", "--bodies-every", str(BODIES_EVERY),
        "--checkpoint", str(folder / f"{run.public_id}.pt"), "--cache", str(folder / "tests.jsonl"),
    ]  # fmt: skip


@dataclass
class Jobs:
    """Stands where a child stands: starts the next job when one ends, tries a failed one again a few times."""

    waiting: Iterator[Child]
    at_once: int
    name: str = "jobs"
    ends: bool = True
    has_ended: bool = False
    env: dict = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    running: list[Child] = field(default_factory=list)

    def start(self) -> None:
        """Nothing yet: `supervise` starts each job in its turn."""

    async def supervise(self) -> None:
        await asyncio.gather(*(self._work() for _ in range(self.at_once)))
        self.has_ended = True

    async def _work(self) -> None:
        for child in self.waiting:
            for _ in range(ATTEMPTS):
                if await self._ended_well(child):
                    print(f"{child.name}: done", flush=True)
                    break
            else:
                self.failed.append(child.name)

    async def _ended_well(self, child: Child) -> bool:
        child.start()
        self.running.append(child)
        while (status := child.process.poll()) is None:
            await asyncio.sleep(0.1)
        self.running.remove(child)
        return status == 0

    async def stop(self) -> None:
        for child in list(self.running):
            await child.stop()

    def kill(self) -> None:
        for child in list(self.running):
            child.kill()
