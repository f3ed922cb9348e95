"""What jobs report by step. A repeated step adds rows; the newest row of a (step, name) counts, the rest is history."""

from collections.abc import Collection, Mapping

from grading.models import Run
from training_bridge.models import MetricPoint
from training_bridge.monitor.spans import from_steps

KNOWN = ("pass_rate", "turns", "tokens", "response_tokens", "pg_loss", "entropy")
OURS = ("credit_kept", "penalty_kept", "token_weighted_balance")  # computed here from rows, not read twice
RECENT = 256  # points looked at to learn which other names a job reports
OTHERS = 12

Points = dict[str, dict[int, float | None]]  # name -> step -> value; None is a gap: NaN or infinite


def reported(first_steps: Mapping[int, int], names: Collection[str]) -> dict[int, Points]:
    """The points of several runs, each from a step of its own on: run pk -> name -> step -> value."""
    found: dict[int, Points] = {run: {name: {} for name in names} for run in first_steps}
    rows = MetricPoint.objects.filter(from_steps(first_steps, name__in=names)).order_by()
    # sorted here: asked to sort, SQLite walks all points of the run instead of the index by step
    for _, run, name, step, value in sorted(rows.values_list("pk", "run", "name", "step", "value")):
        found[run][name][step] = value  # in the order they came: the newest stays
    return found


def recent_names(run: Run) -> set[str]:
    """What the job reports these days."""
    return set(MetricPoint.objects.filter(run=run).order_by("-pk").values_list("name", flat=True)[:RECENT])


def other_names(recent: Collection[str]) -> list[str]:
    """What has no panel of its own, in the order of the alphabet."""
    return sorted(set(recent) - {*KNOWN, *OURS})[:OTHERS]
