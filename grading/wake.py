"""Doorbells. They carry no data: a lost or doubled one changes nothing, because sweeps look at the rows."""

import logging
from functools import partial

from asgiref.sync import async_to_sync
from celery import current_app
from channels.layers import get_channel_layer
from django.db import transaction

log = logging.getLogger(__name__)
DRAIN = "grading.tasks.drain"


def decisions_of(run_pk: int) -> str:
    """The layer group in which the bridge hears that a run has new decisions."""
    return f"run.{run_pk}.decisions"


def pages_of(run_pk: int) -> str:
    """The layer group in which open pages hear that something about a run changed."""
    return f"run.{run_pk}.pages"


def grading() -> None:
    """After commit: a worker drains the groups that wait for a grade. One ring does for a whole transaction."""
    if all(called is not _ring_worker for _, called, *_ in transaction.get_connection().run_on_commit):
        transaction.on_commit(_ring_worker)


def bridge(run_pk: int) -> None:
    """After commit: the bridge delivers the run's new decisions, and pages look again."""
    _ring_once(decisions_of(run_pk), "decision.made")
    _ring_once(pages_of(run_pk), "page.changed")


def pages(run_pk: int) -> None:
    """After commit: pages of the run look again."""
    _ring_once(pages_of(run_pk), "page.changed")


def _ring_once(group: str, kind: str) -> None:
    """After commit, one ring a transaction: a sweep decides many groups in one."""
    bells = (called.args for _, called, *_ in transaction.get_connection().run_on_commit if isinstance(called, partial))
    if (group, kind) not in bells:
        transaction.on_commit(partial(ring, group, kind))


def ring(group: str, kind: str) -> None:
    try:
        async_to_sync(get_channel_layer().group_send)(group, {"type": kind})
    except Exception:  # whatever the layer's own library raises: the sweep makes it good
        log.warning("could not ring %s: the sweep will find it", group, exc_info=True)


def _ring_worker() -> None:
    try:
        current_app.send_task(DRAIN, expires=60)
    except Exception:
        log.warning("could not reach the Celery broker: the sweep will grade", exc_info=True)
