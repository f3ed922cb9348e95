"""Celery's door to the bridge."""

from celery import shared_task

from training_bridge import delivery


@shared_task(acks_late=True)
def sweep() -> None:
    """Every 2 s: deliver decisions whose doorbell was lost."""
    delivery.sweep()
