"""An old run from TensorBoard's event files: an imported run whose curves can be looked at and laid over others."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from django.db import transaction

from grading.errors import BadInput
from grading.importers.import_groups import imported_run
from grading.models import Run
from training_bridge.models import MetricSeries
from training_bridge.monitor import store
from training_bridge.monitor.event_files import Read, scalars
from training_bridge.protocol.messages import METRIC_CHARS

AT_ONCE = 5000


@dataclass
class Imported:
    run: Run
    read: Read
    series: list[MetricSeries]


def import_events(path: Path, *, team: str, run: str, names: Mapping[str, str]) -> Imported:
    """Read every scalar below a path into a new run, or one that has no metrics yet. `names`: tag -> name here.

    Of several values with one tag and step the last in the files counts; the rest is history, as from a live job.
    """
    if not path.exists():
        raise BadInput("there is no such file or folder", got=str(path), expected="event files", where="PATH")
    read = Read()
    with transaction.atomic():
        of_run = imported_run(team=team, run=run).run
        if MetricSeries.objects.filter(run=of_run).exists():
            raise BadInput("this run has metrics already", got=run, expected="another --run", where="--run")
        found = scalars(path, read)
        while some := list(itertools.islice(found, AT_ONCE)):
            store.add(of_run.pk, [_point(of_run, read, names, one) for one in some])
        if not read.scalars:
            raise BadInput("no scalar in these files", got=f"{read.files} event files", expected="one", where="PATH")
    return Imported(of_run, read, list(MetricSeries.objects.filter(run=of_run).order_by("name")))


def _point(run: Run, read: Read, names: Mapping[str, str], scalar: tuple[str, int, float]):
    tag, step, value = scalar
    name = names.get(tag, tag).replace("\0", "")
    if len(name) > METRIC_CHARS:
        problem = f"{name}: longer than {METRIC_CHARS} characters, so only its end is kept"
        if problem not in read.problems:
            read.problems.append(problem)
        name = name[-METRIC_CHARS:]
    return store.point(name, step, value, run=run.pk)
