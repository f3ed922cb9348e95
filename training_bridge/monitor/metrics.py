"""What jobs report by step: which names there are, and the newest points of many runs at once."""

from collections.abc import Collection, Iterable, Mapping

from grading.models import Run
from training_bridge.models import MetricPoint, MetricSeries
from training_bridge.monitor.spans import from_steps

KNOWN = (
    "pass_rate", "turns", "tokens", "response_tokens", "pg_loss", "entropy", "truncated_share", "invalid_share",
)  # fmt: skip
OURS = ("credit_kept", "penalty_kept", "token_weighted_balance", "deficit")  # computed here from rows, not read twice
OTHERS = 12

Points = dict[str, dict[int, float | None]]  # name -> step -> value; None is a gap: NaN or infinite


def reported(first_steps: Mapping[int, int], names: Collection[str]) -> dict[int, Points]:
    """The points of several runs, each from a step of its own on: run pk -> name -> step -> value."""
    found: dict[int, Points] = {run: {name: {} for name in names} for run in first_steps}
    rows = MetricPoint.objects.filter(from_steps(first_steps, name__in=names, is_newest=True)).order_by()
    for run, name, step, value in rows.values_list("run", "name", "step", "value"):
        found[run][name][step] = value
    return found


def names_of(run: Run) -> dict[str, str]:
    """Every name that the run has, with its unit, in the order of the alphabet."""
    return dict(MetricSeries.objects.filter(run=run).order_by("name").values_list("name", "unit"))


def other_names(names: Iterable[str]) -> list[str]:
    """What has no panel of its own, in the order of the alphabet."""
    return sorted(set(names) - {*KNOWN, *OURS})
