"""Celery's doors: each calls one step and may run twice."""

from celery import shared_task, signals

from grading import bodies
from grading.audit import job as audits
from grading.calibration import anchors
from grading.grader import claims, job, sandbox, workspace
from grading.review import deadlines, notices


@shared_task(acks_late=True)
def drain() -> None:
    """Grade whatever waits without a model; `manage.py grade` asks models, where there is an endpoint to ask."""
    job.drain(networked=not claims.has_endpoint())
    audits.drain(networked=not claims.has_endpoint())  # without an endpoint they fail at once, and say so


@shared_task(acks_late=True)
def sweep() -> None:
    """Every 2 s: deadlines that have passed, and groups whose wake-up was lost or whose grader died."""
    deadlines.sweep()
    claims.bury()
    drain()


@shared_task(acks_late=True)
def send_notices() -> None:
    """Every 5 s: held groups that came near their deadline. A slow webhook holds up nothing else."""
    notices.send_due()


@shared_task(acks_late=True)
def regrade_anchors() -> None:
    """Every 10 min: a round of anchors where a run's grader, model or prompt changed, or a week has passed."""
    anchors.start_due()


@shared_task(acks_late=True)
def sweep_bodies() -> None:
    """Every hour: half-written files and workspaces that a killed process left behind."""
    bodies.sweep_incoming()
    workspace.sweep()


@shared_task(acks_late=True)
def reap_sandboxes() -> None:
    """Every minute: containers of checks whose worker was killed."""
    sandbox.reap()


@signals.worker_ready.connect
def reap_before_work(**kwargs) -> None:
    reap_sandboxes.delay()  # the clock's first minute is still to come
