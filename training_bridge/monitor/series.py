"""The numbers behind the curves: what the job reported and what the rows say, aligned by step."""

from grading.models import Run
from training_bridge.monitor import derived, metrics


def series_of(run: Run, first: int = 0) -> dict:
    """`{"steps": [...], "series": {name: [...]}}` of the steps from `first` on; None where there is no number.

    A metric that the job reports under the name of a derived series wins where it has a point.
    """
    names = (*metrics.KNOWN, *metrics.other_names(run))
    found = derived.by_step(run, first)
    for name, points in metrics.reported({run.pk: first}, names)[run.pk].items():
        found[name] = found.get(name, {}) | points
    steps = sorted({step for points in found.values() for step in points})
    return {"steps": steps, "series": {name: [points.get(step) for step in steps] for name, points in found.items()}}
