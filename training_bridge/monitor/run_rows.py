"""The rows of the runs page: a constant number of queries however many runs and steps there are."""

from collections.abc import Sequence

from grading.models import Run
from training_bridge.monitor import alerts, metrics
from training_bridge.monitor.standing import LIVE, Standing, standings

SPARK_STEPS = 40
SPARKS = ("pass_rate", "entropy")


def run_rows(runs: Sequence[Run]) -> list[dict]:
    """One row a run, with its last steps as sparklines."""
    found = standings(runs)
    first = {here.run.pk: max(0, here.step - SPARK_STEPS + 1) for here in found if here.step is not None}
    points = metrics.reported(first, SPARKS)
    alerted = alerts.firing_counts(runs)
    return [_row(here, points.get(here.run.pk, {}), alerted.get(here.run.pk, {})) for here in found]


def _row(here: Standing, points: metrics.Points, alerted: dict) -> dict:
    pass_rates, entropies = (_line(points.get(name, {})) for name in SPARKS)
    return {
        "run": here.run,
        "state": here.state,
        "step": here.step,
        "pass_rates": pass_rates,
        "pass_rate": pass_rates[-1] if pass_rates else None,
        "entropies": entropies,
        "entropy": entropies[-1] if entropies else None,
        "waiting": here.waiting,
        "fallback_share": here.fallback_share,
        "alerts": alerted.get(alerts.FIRING, 0),
        "acknowledged": alerted.get(alerts.ACKNOWLEDGED, 0),
        "heard_at": here.heard_at,
    }


def _line(points: dict[int, float | None]) -> list[float | None]:
    return [points[step] for step in sorted(points)]


def summary(rows: list[dict], total: int) -> str:
    """In words: how many runs there are, and how many live."""
    live = sum(row["state"] == LIVE for row in rows)
    firing = sum(row["alerts"] for row in rows)
    said = [f"{total} run{'' if total == 1 else 's'}", f"{live} live"]
    return " · ".join([*said, f"{firing} alert{'' if firing == 1 else 's'}"] if firing else said)
