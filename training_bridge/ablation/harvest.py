"""What the server knows of one run of the ablation, step by step."""

from django.db.models import Avg, Count, Q

from grading.grader import afterwards
from grading.models import Run, VerdictCandidate
from grading.scoring.tiers import TIERS
from grading.states import Method, Purpose
from training_bridge.ablation.lines import DERIVED, REPORTED, Line
from training_bridge.monitor import derived
from training_bridge.monitor.metrics import reported


def lines_of(run: Run) -> list[Line]:
    """One line a step that the job reported. Groups of the arm without grades are audited first."""
    if run.method == Method.OUTCOME:
        afterwards.audit(run)
    told = reported({run.pk: 0}, REPORTED)[run.pk]
    known, graded = derived.by_step(run), _graded(run)
    seed = int(run.public_id.rpartition("-")[2])
    return [
        {"method": run.method, "seed": seed, "step": step}
        | {name: told[name].get(step) for name in REPORTED}
        | {name: known.get(name, {}).get(step) for name in DERIVED}
        | graded.get(step, {"mean_w": None, "t1_share": None, "ranked": 0})
        for step in sorted(told["pass_rate"])
    ]


def _graded(run: Run) -> dict[int, Line]:
    """Mean W and T1 share of the passes a step's verdicts ranked."""
    counted = (Purpose.TRAINING, Purpose.AUDIT)
    rows = VerdictCandidate.objects.filter(verdict__group__run=run, verdict__purpose__in=counted)
    steps = rows.values("verdict__group__step").order_by("verdict__group__step")
    summed = steps.annotate(mean_w=Avg("weighted_score"), best=Count("pk", filter=Q(tier=TIERS[0])), ranked=Count("pk"))
    return {
        row["verdict__group__step"]: {
            "mean_w": float(row["mean_w"]),
            "t1_share": row["best"] / row["ranked"],
            "ranked": row["ranked"],
        }
        for row in summed
    }
