"""`manage.py audit`: open a blind comparison of runs, hand it to a program of your own, print what came of it."""

import json

from django.core.management import BaseCommand, CommandError

from grading.audit import desk, form, job, pooling, reading, sessions
from grading.audit.figures import tables
from grading.errors import GradingError
from grading.models import Audit, Run


class Command(BaseCommand):
    help = "Compare runs of a team blind (Sec. 4.3): open, judge, hand out, take in, reveal."

    def add_arguments(self, parser):
        parser.add_argument("--runs", nargs="+", metavar="RUN", help="open an audit: ids of the runs to compare")
        parser.add_argument("--steps", default="", help="checkpoints, such as 0-9,10-19; nothing: all steps")
        parser.add_argument("--tasks", type=int, help="how many tasks, drawn")
        parser.add_argument("--per-method", type=int, default=pooling.MOST_PER_ARM, help="rollouts of each, 1 to 3")
        parser.add_argument("--grader", default="person", help="person, static, single_pass, agentic, or your own")
        parser.add_argument("--model", default="", help="openai:NAME or anthropic:NAME")
        parser.add_argument("--seed", type=int)
        parser.add_argument("--name", default="")
        parser.add_argument("--id", type=int, help="an audit that is open already")
        parser.add_argument("--judge", action="store_true", help="judge here and now, where its grader is one of ours")
        parser.add_argument("--questions", metavar="FILE", help="write the blind groups for a program of your own")
        parser.add_argument("--answers", metavar="FILE", help="read its verdicts: a JSON line each, {group, …verdict}")
        parser.add_argument("--reveal", action="store_true", help="say who made what; with --reason before the end")
        parser.add_argument("--reason", default="")
        parser.add_argument("--json", action="store_true")

    def handle(self, **options):
        try:
            audit = self._opened(options) if options["runs"] else self._found(options["id"])
            self._work(audit, options)
        except GradingError as e:
            raise CommandError(str(e)) from e

    def _opened(self, options) -> Audit:
        runs = {run.public_id: run for run in Run.objects.filter(public_id__in=options["runs"])}
        if missing := [name for name in options["runs"] if name not in runs]:
            raise CommandError(f"no run {', '.join(missing)}")
        arms = [pooling.Arm(runs[name]) for name in options["runs"]]
        return pooling.open_audit(
            team=arms[0].run.team, name=options["name"], arms=arms, grader=options["grader"], model=options["model"],
            windows=form.read_windows(options["steps"]), task_count=options["tasks"], per_arm=options["per_method"],
            seed=options["seed"],
        )  # fmt: skip

    def _found(self, pk: int | None) -> Audit:
        found = Audit.objects.filter(pk=pk).first() if pk else Audit.objects.order_by("-pk").first()
        if found is None:
            raise CommandError("no such audit: open one with --runs A B")
        return found

    def _work(self, audit: Audit, options) -> None:
        if options["judge"]:
            job.drain()
        if options["questions"]:
            with open(options["questions"], "w") as file:
                for question in desk.questions(audit):
                    file.write(json.dumps(question) + "\n")
        if options["answers"]:
            with open(options["answers"]) as file:
                told = [desk.take_in(audit, line) for line in file if line.strip()]
            for words in filter(None, told):
                self.stderr.write(words)
        if options["reveal"]:
            sessions.reveal(audit, by="manage.py audit", reason=options["reason"], may_early=True)
        audit.refresh_from_db()
        self._print(audit, as_json=options["json"])

    def _print(self, audit: Audit, *, as_json: bool) -> None:
        counts = sessions.counts(audit)
        found = {"audit": audit.pk, "seed": audit.seed, "groups": counts, "left_out": audit.left_out}
        if audit.is_revealed:
            found["tables"] = tables(reading.result_of(audit))
        if as_json:
            self.stdout.write(json.dumps(found, default=str, indent=1))
            return
        self.stdout.write(f"audit {audit.pk}: {counts['done']} of {counts['all']} groups judged, seed {audit.seed}")
        for why, many in audit.left_out.items():
            if many:
                self.stdout.write(f"left out: {many} {why}")
        for table in found.get("tables", ()):
            self.stdout.write(f"\n{table['title']}")
            for row in table["rows"]:
                cells = [f"{c['arm']}: {c['words']} ({c['interval'] or c['why']}; n {c['n']})" for c in row["cells"]]
                gains = [f"difference {g['words']} ({g['interval'] or g['why']})" for g in row["against"]]
                self.stdout.write(f"  {row['label']:<20} " + "   ".join([*cells, *gains]))
        if not audit.is_revealed:
            self.stdout.write("blind: --reveal says who made what")
