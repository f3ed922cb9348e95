"""manage.py import_tensorboard PATH --run R: the scalars of TensorBoard event files as a run to look at."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from grading.errors import GradingError
from training_bridge.monitor.metrics import KNOWN
from training_bridge.monitor.old_runs import import_events


class Command(BaseCommand):
    help = "Import the scalars of TensorBoard event files: a file, or a folder with all below it."

    def add_arguments(self, parser):
        parser.add_argument("path", type=Path, help="a file or a folder")
        parser.add_argument("--run", required=True, help="id of the run; made if missing")
        parser.add_argument("--team", default="default", help="slug of the team; made if missing (default: default)")
        parser.add_argument(
            "--name",
            action="append",
            default=[],
            metavar="TAG=NAME",
            help=f"call a tag by another name here; those with a panel of their own: {', '.join(KNOWN)}",
        )

    def handle(self, *args, path: Path, run: str, team: str, name: list[str], **options):
        if wrong := [pair for pair in name if "=" not in pair]:
            raise CommandError(f"--name {wrong[0]}: expected TAG=NAME")
        try:
            done = import_events(path, team=team, run=run, names=dict(pair.split("=", 1) for pair in name))
        except ImportError as missing:
            raise CommandError(f"{missing}: pip install 'gagar[tensorboard]'") from missing
        except GradingError as refused:
            raise CommandError(str(refused)) from refused
        for series in done.series:
            self.stdout.write(f"{series.name}: {series.points} points, to step {series.last_step}")
        read = done.read
        self.stdout.write(
            f"\nrun {run}\nfiles: {read.files}\nscalars: {read.scalars}\nnot scalars, left out: {read.skipped}"
        )
        self.stdout.write(f"problems: {len(read.problems)}")
        for problem in read.problems:
            self.stdout.write(f"  {problem}")
