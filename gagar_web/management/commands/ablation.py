from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from gagar_web import ablation, embedded
from gagar_web.setup import say, set_up
from training_bridge.ablation import harvest, lines, report
from training_bridge.ablation.summary import Ablation


class Command(BaseCommand):
    help = "The paper's ablation on the tiny job: five methods, the same seeds, real server; goes on where it stopped."

    def add_arguments(self, parser):
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument("--steps", type=int, default=150)
        parser.add_argument("--seeds", type=int, default=3)
        parser.add_argument("--groups", type=int, default=3, help="groups a step, one a task")
        parser.add_argument("--rollouts", type=int, default=12, help="rollouts a group")
        parser.add_argument("--rounds", type=int, default=3, help="in how many stages all arms advance together")
        parser.add_argument("--methods", nargs="+", choices=lines.ARMS, default=lines.ARMS, help="not all five")
        parser.add_argument("--at-once", type=int, default=2, help="jobs at a time")
        parser.add_argument("--report-only", action="store_true", help="start no job: write down what there is")
        parser.add_argument("--from", dest="source", type=Path, help="lines (.jsonl or .jsonl.gz) to report on instead")

    def handle(self, host, port, at_once, report_only, source, **options):
        named = ("steps", "seeds", "groups", "rollouts", "rounds", "methods")
        size = ablation.Size(**{name: options[name] for name in named})
        folder = Path(settings.GAGAR_DATA_DIR) / "ablation"
        folder.mkdir(parents=True, exist_ok=True)
        if source:
            self._report(folder, lines.read(source))
            return
        if report_only:
            call_command("migrate", verbosity=0)
        else:
            self._train(folder, size, host, port, at_once)
        found = self._harvest(folder, size)
        if set(size.methods) == set(lines.ARMS):
            self._report(folder, found)
        else:
            self.stdout.write(f"the lines are in {folder}; tables and picture need all five methods")

    def _train(self, folder: Path, size: ablation.Size, host: str, port: int, at_once: int):
        with embedded.place(host, port) as listening:
            url = f"http://{host}:{port}/"
            self.stdout.write(say(set_up(), url))
            children = ablation.jobs_of(folder, url, size)
            self.stdout.write(f"{len(children)} jobs to do; every run is on the monitor: {url}runs/")
            self.stdout.flush()
            if children:
                jobs = ablation.Jobs(iter(children), at_once)
                embedded.run(listening, [embedded.worker(1), jobs])
                for name in jobs.failed:
                    self.stderr.write(f"{name}: failed {ablation.ATTEMPTS} times, see above")

    def _harvest(self, folder: Path, size: ablation.Size) -> list[lines.Line]:
        runs = ablation.runs_of(size)
        found = [line for run in runs for line in harvest.lines_of(run)]
        lines.write(folder / "ablation.jsonl", found)
        short = [run.public_id for run in runs if ablation.steps_done(run) < size.steps]
        if short:
            self.stderr.write(f"{len(short)} of {len(runs)} runs are not done; the same command goes on with them")
        return found

    def _report(self, folder: Path, found: list[lines.Line]):
        """Tables and picture, of the steps that every run has."""
        try:
            whole = Ablation.of(found)
        except ValueError as missing:
            raise CommandError(f"no report yet: {missing}") from None
        (folder / "ablation.md").write_text(report.tables(whole) + "\n", "utf-8")
        report.draw(whole, folder / "ablation.png")
        self.stdout.write(f"written to {folder}: ablation.md and ablation.png, {whole.steps} steps of every run")
