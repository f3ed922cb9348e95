"""Celery's doors to the bridge."""

from celery import shared_task

from training_bridge import delivery
from training_bridge.monitor import alert_calls, alerting


@shared_task(acks_late=True)
def sweep() -> None:
    """Every 2 s: deliver decisions whose doorbell was lost."""
    delivery.sweep()


@shared_task(acks_late=True)
def watch() -> None:
    """Every 5 s: alerts fire, go on and end, from what the rows say."""
    alerting.watch()


@shared_task(acks_late=True)
def send_alerts() -> None:
    """Every 5 s: what webhooks have not heard yet. A slow webhook holds up nothing else."""
    alert_calls.send_due()
