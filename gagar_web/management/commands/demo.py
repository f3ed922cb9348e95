import sys
from pathlib import Path

from django.conf import settings
from django.core.management.base import BaseCommand

from gagar_web import demo, embedded
from gagar_web.setup import say, set_up


class Command(BaseCommand):
    help = "The server and a real small RL job that is graded, reviewed, redistributed and fed back."

    def add_arguments(self, parser):
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument("--steps", type=int, help="end after so many steps; without it: until Ctrl-C")
        parser.add_argument("--fresh", action="store_true", help="a new run, even if one was interrupted")

    def handle(self, host, port, steps, fresh, **options):
        folder = Path(settings.GAGAR_DATA_DIR) / "demo"
        with embedded.place(host, port) as listening:
            url = f"http://{host}:{port}/"
            password = set_up()
            run, goes_on = demo.open_run(folder, fresh=fresh, steps=steps)
            self.stdout.write(say(password, url))
            words = "going on with" if goes_on else "new run"
            self.stdout.write(f"{words} {run.public_id}: {url}runs/{run.public_id}/")
            self.stdout.write(
                "One group in eight waits for you for 90 s in the queue. Ctrl-C stops everything cleanly."
            )
            self.stdout.flush()
            job = embedded.Child(
                "job", [sys.executable, "-m", "training_bridge.tiny_job", *demo.job_arguments(folder, run, url, steps)],
                env={"GAGAR_TOKEN": demo.fresh_token(run)}, ends=True,
            )  # fmt: skip
            embedded.run(listening, [embedded.worker(2), *embedded.graders(), job])
            if job.has_ended:
                demo.finished_mark(folder, run).touch()
                said = f"{run.public_id} is done: make demo starts a new run, make serve shows this one"
                self.stdout.write(said)
