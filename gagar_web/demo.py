"""The demo's run: one group in eight is held for a person for 90 s, and the job trains on meanwhile."""

from pathlib import Path

from django.db.models import Max

from grading import people
from grading.models import MachineToken, RubricVersion, Run, Team
from grading.states import Method, Policy
from training_bridge.models import MetricPoint

HOLD_SHARE, HOLD_S = 1 / 8, 90
LEAST_STEP_S = 5  # a pace of the demo only: people should be able to follow
HOLD_STEPS = 20


def checkpoint_of(folder: Path, run: Run) -> Path:
    return folder / f"{run.public_id}.pt"


def finished_mark(folder: Path, run: Run) -> Path:
    return folder / f"{run.public_id}.finished"


def open_run(folder: Path, *, fresh: bool, steps: int | None) -> tuple[Run, bool]:
    """The demo run that was interrupted, or a new one. The second value says whether it goes on."""
    folder.mkdir(parents=True, exist_ok=True)
    last = Run.objects.filter(public_id__startswith="demo-").order_by("-pk").first()
    if last and not fresh and not finished_mark(folder, last).exists():
        done = MetricPoint.objects.filter(run=last).aggregate(step=Max("step"))["step"] or 0
        if steps is None or done < steps:
            return last, checkpoint_of(folder, last).exists()
    number = 1 + Run.objects.filter(public_id__startswith="demo-").count()
    run = Run.objects.create(
        team=Team.objects.get(slug="default"),
        public_id=f"demo-{number}",
        name=f"Demo {number}: a tiny policy mends small modules",
        method=Method.REDISTRIBUTE,
        policy=Policy.SAMPLED,
        hold_share=HOLD_SHARE,
        review_deadline_s=HOLD_S,
        grading_deadline_s=120,
        collect_deadline_s=300,
        rubric=RubricVersion.flash(),
        hold_budget=0,  # the tiny policy tampers with tests all the time: one group in eight is enough
        bodies_share=0.1,
    )
    people.record_new(run, by="demo")
    return run, False


def fresh_token(run: Run) -> str:
    """A key for this start of the demo; those of earlier starts stop working."""
    for old in run.tokens.filter(name="demo", revoked_at=None):
        old.revoke()
    return MachineToken.issue(run, name="demo", purposes=("ingest", "train"))[1]


def job_arguments(folder: Path, run: Run, url: str, steps: int | None) -> list[str]:
    arguments = ["--url", url, "--run", run.public_id, "--checkpoint", str(checkpoint_of(folder, run))]
    arguments += ["--min-step-s", str(LEAST_STEP_S), "--hold-steps", str(HOLD_STEPS), "--advantages", run.method]
    if steps is not None:
        arguments += ["--steps", str(steps)]
    return arguments
