import os

from celery import Celery, platforms, signals

from gagar_web import file_broker  # noqa: F401  (makes the scheme files:// known)
from grading import heartbeat

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gagar_web.settings")
app = Celery("gagar")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["grading", "training_bridge"])


@signals.beat_embedded_init.connect
def end_with_the_worker(**kwargs) -> None:
    """Celery says this to its pool only: the clock of a SIGKILLed worker would tick on beside that of the next one."""
    platforms.set_pdeathsig("SIGKILL")


signals.heartbeat_sent.connect(heartbeat.beat)  # of a worker, while its broker is there


@signals.beat_init.connect
def beat_with_what_it_sends(**kwargs) -> None:
    """The clock alone: it sends every 2 s. A worker's children send too, and must not speak for their parent."""
    signals.after_task_publish.connect(heartbeat.beat)
