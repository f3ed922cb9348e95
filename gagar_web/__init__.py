"""Wires everything; nobody imports it."""

from gagar_web.celery import app as celery_app  # whoever rings a doorbell must find our broker, not the default one

__all__ = ["celery_app"]
