from django.core.management.base import BaseCommand

from gagar_web import embedded
from gagar_web.setup import say, set_up


class Command(BaseCommand):
    help = "The whole server in one command: pages, API, websockets and a worker. Ctrl-C stops it cleanly."

    def add_arguments(self, parser):
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument("--concurrency", type=int, default=2, help="gradings at a time")

    def handle(self, host, port, concurrency, **options):
        with embedded.place(host, port) as listening:
            self.stdout.write(say(set_up(), f"http://{host}:{port}/"))
            self.stdout.flush()
            embedded.run(listening, [embedded.worker(concurrency), *embedded.graders()])
