import os

from celery import Celery

from gagar_web import file_broker  # noqa: F401  (makes the scheme files:// known)

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gagar_web.settings")
app = Celery("gagar")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["grading", "training_bridge"])
