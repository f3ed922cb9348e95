"""One run as Prometheus reads it: the newest numbers of the job, and what the rows say of the last steps."""

import math

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import choose_encoder

from grading.models import Run
from training_bridge.models import MetricPoint, MetricSeries
from training_bridge.monitor import derived
from training_bridge.monitor.spans import from_steps
from training_bridge.monitor.standing import LAST_STEPS, LIVE, SILENT, Standing, standings
from training_bridge.monitor.sums import values

MOST_SERIES = 500


def page(run: Run, *, accept: str) -> tuple[bytes, str]:
    """The text and its content type, OpenMetrics where the reader asks for it."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected(list(_families(run))))
    encode, kind = choose_encoder(accept)
    return encode(registry), kind


class _Collected:
    """What was read already, in the shape that the library asks for."""

    def __init__(self, families: list[GaugeMetricFamily]):
        self.families = families

    def collect(self):
        return self.families


def _families(run: Run):
    [here] = standings([run])
    yield from _standing(run, here)
    sums = derived.recent({run.pk: here.step}, LAST_STEPS).get(run.pk) if here.step is not None else None
    recent = GaugeMetricFamily("gagar_recent", f"Derived over the last {LAST_STEPS} steps", labels=["run", "name"])
    for name, value in values(sums or {}).items():
        if value is not None and sums:
            recent.add_metric([run.public_id, name], value)
    yield recent
    yield from _reported(run)


def _standing(run: Run, here: Standing):
    facts = {
        "gagar_run_live": ("1: the job is heard, 0: it is not", float(here.state == LIVE)),
        "gagar_run_silent": ("1: the job should be heard and is not", float(here.state == SILENT)),
        "gagar_step": ("The newest step", math.nan if here.step is None else here.step),
        "gagar_groups_undecided": ("Groups without a decision", here.undecided),
        "gagar_groups_for_people": ("Groups that wait for a person", here.waiting),
        "gagar_rows_unsent": ("Rows stored for a while that no socket took", here.unsent),
    }
    for name, (words, value) in facts.items():
        family = GaugeMetricFamily(name, words, labels=["run"])
        family.add_metric([run.public_id], value)
        yield family
    receipts = GaugeMetricFamily("gagar_receipts", f"Receipts of the last {LAST_STEPS} steps", labels=["run", "status"])
    for status, n in sorted(here.receipts.items()):
        receipts.add_metric([run.public_id, status], n)
    yield receipts


def _reported(run: Run):
    """The newest value of each name; the first ones by the alphabet where a job reports very many."""
    series = list(MetricSeries.objects.filter(run=run).order_by("name")[:MOST_SERIES])
    newest = GaugeMetricFamily("gagar_metric", "Reported by the job", labels=["run", "name", "unit"])
    steps = GaugeMetricFamily("gagar_metric_step", "The step of the newest value", labels=["run", "name"])
    ends: dict[int, list[str]] = {}
    for row in series:
        ends.setdefault(row.last_step, []).append(row.name)
    units = {row.name: row.unit for row in series}
    for step, names in ends.items():
        points = MetricPoint.objects.filter(from_steps({run.pk: step}, name__in=names), step=step, is_newest=True)
        for name, value, word in points.order_by("name").values_list("name", "value", "non_finite"):
            newest.add_metric([run.public_id, name, units[name]], float(word) if value is None else value)
            steps.add_metric([run.public_id, name], step)
    yield newest
    yield steps
