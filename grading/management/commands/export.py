"""`manage.py export sft|preferences|labels FILE`: what people approved or corrected, as training data."""

from collections import Counter

from django.core.management import BaseCommand, CommandError

from grading.errors import GradingError
from grading.export.files import KINDS, check_kind, rows_of, write_lines
from grading.models import Run, Team


class Command(BaseCommand):
    help = "Export grader SFT data, preference pairs or labels (docs/export.md); a file ending in .parquet is one."

    def add_arguments(self, parser):
        parser.add_argument("kind", choices=KINDS)
        parser.add_argument("file", help="FILE.jsonl, or FILE.parquet for preferences and labels")
        parser.add_argument("--runs", nargs="+", metavar="RUN", help="ids of runs")
        parser.add_argument("--team", help="all runs of a team, by its slug")

    def handle(self, *, kind, file, runs, team, **options):
        format = "parquet" if file.endswith(".parquet") else "jsonl"
        from grading.export.parquet import write_parquet  # the extra [export]

        left_out: Counter = Counter()
        try:
            check_kind(kind, format)
            rows = rows_of(kind, self._runs(runs, team), left_out)
            with open(file, "wb") as out:
                count = write_parquet(rows, kind, out) if format == "parquet" else write_lines(rows, out)
        except GradingError as e:
            raise CommandError(str(e)) from e
        self.stdout.write(f"{count} rows in {file}")
        for why, many in left_out.most_common():
            self.stdout.write(f"left out: {many}, as {why}")

    def _runs(self, names: list[str] | None, team: str | None) -> list[Run]:
        if not names and not team:
            raise CommandError("which runs? --runs ID … or --team SLUG")
        if team and not Team.objects.filter(slug=team).exists():
            raise CommandError(f"no team {team}")
        found = list(Run.objects.filter(team__slug=team) if team else Run.objects.filter(public_id__in=names))
        if missing := set(names or ()) - {run.public_id for run in found}:
            raise CommandError(f"no run {', '.join(sorted(missing))}")
        return found
