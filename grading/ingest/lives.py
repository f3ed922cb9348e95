"""Lives: one process start of the job each. The newer fences the older, whose open groups are abandoned."""

import logging

from django.db import transaction
from django.db.models import Max

from grading import clock
from grading.errors import NotFound, WrongState
from grading.ingest.completing import unfenced
from grading.models import Life, RolloutGroup, Run
from grading.review import decisions

log = logging.getLogger(__name__)


def issue_life(run: Run, job: str = "") -> Life:
    """The run's next life. From its commit on no older life may write; then their open groups are closed."""
    with transaction.atomic():
        Run.objects.select_for_update(no_key=True).get(pk=run.pk)  # numbers are dense: one at a time
        newest = run.lives.aggregate(n=Max("n"))["n"] or 0
        run.lives.filter(fenced_at=None).update(fenced_at=clock.now())
        life = Life.objects.create(run=run, n=newest + 1, job=job)
    abandon_fenced(run)
    return life


def open_life(run: Run, n: int, *, lock: bool = False) -> Life:
    """The life of this number, or Fenced when a newer one took over. Locked, no group slips in behind the fence."""
    lives = Life.objects.select_for_update(no_key=True) if lock else Life.objects
    life = lives.filter(run=run, n=n).first()
    if life is None:
        raise NotFound("no such life", got=n, expected="a life this server issued", where="life")
    return unfenced(life)


def abandon_fenced(run: Run | None = None) -> int:
    """Close open groups of fenced lives. The sweep calls it too, for a server that died in between."""
    left = RolloutGroup.objects.open().filter(life__fenced_at__isnull=False)
    done = 0
    for group in (left.filter(run=run) if run else left).select_related("run", "life", "task").order_by("pk"):
        try:
            decisions.abandon(group, by=f"life:{_newest(group.run)}")
            done += 1
        except WrongState as lost:  # a grader or a person was faster; whatever they decided stands
            log.info("group %s of a fenced life: %s", group.key, lost)
    return done


def _newest(run: Run) -> int:
    return run.lives.aggregate(n=Max("n"))["n"]
