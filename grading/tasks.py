"""Celery's doors: each calls one step and may run twice."""

from celery import shared_task

from grading import bodies
from grading.grader import job
from grading.review import deadlines


@shared_task(acks_late=True)
def drain() -> None:
    """Grade whatever waits."""
    job.drain()


@shared_task(acks_late=True)
def sweep() -> None:
    """Every 2 s: deadlines that have passed, and groups whose wake-up was lost or whose grader died."""
    deadlines.sweep()
    job.drain()


@shared_task(acks_late=True)
def sweep_bodies() -> None:
    """Every hour: half-written files that a killed process left behind."""
    bodies.sweep_incoming()
