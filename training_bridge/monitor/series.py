"""The numbers behind the curves: what the job reported and what the rows say, aligned by step."""

from grading.models import Run
from training_bridge.monitor import derived, metrics


def series_of(run: Run, first: int = 0) -> dict:
    """`{"steps": [...], "series": {name: [...]}}` of the steps from `first` on; None where there is no number.

    The pass rate is the job's own where it reports one: that of the groups delivered so far is of those only.
    """
    recent = metrics.recent_names(run)
    names = (*metrics.KNOWN, *metrics.other_names(recent))
    found = derived.by_step(run, first)
    reported = metrics.reported({run.pk: first}, names)[run.pk]
    found |= {name: points for name, points in reported.items() if points or name in recent or name not in found}
    steps = sorted({step for points in found.values() for step in points})
    return {"steps": steps, "series": {name: [points.get(step) for step in steps] for name, points in found.items()}}
