"""manage.py probe_grader: does the configured grader judge the work, or slots, length, names and instructions?

The gradings happen in a database of their own in a temporary folder: no run, no row and no body of yours is touched.
"""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from grading.grader.options import GradingOptions
from grading.grader.probes.all_probes import NAMES, probes
from grading.grader.probes.gradings import Seen, grade_with
from grading.grader.probes.kept import read_trials, write_trials
from grading.grader.probes.measures import Figure
from grading.grader.probes.rows import of_group, of_record
from grading.grader.probes.trials import Trial
from grading.importers import group_folder
from grading.models import RolloutGroup

HANDED = "GAGAR_PROBE"  # the folder that a probing process gets its trials in
CONFIGURED = ("GAGAR_GRADER_MODEL", "GAGAR_GRADER_URL", "GAGAR_GRADER_KEY")
GRADERS = ("single_pass", "agentic", "static")


class Command(BaseCommand):
    help = "Probe the configured grader for biases (L1-L3, L5-L7, L11); every figure has its n and its 95 % interval."

    def add_arguments(self, parser):
        parser.add_argument("path", type=Path, nargs="?", help="a group folder or a folder of them")
        parser.add_argument("--run", help="id of a run: its mixed groups in this database")
        parser.add_argument("--groups", type=int, default=30, help="at most so many groups (default 30)")
        parser.add_argument("--grader", choices=GRADERS, default="single_pass")
        parser.add_argument("--probes", default=",".join(NAMES), help=f"default: {','.join(NAMES)}")
        parser.add_argument("--orders", type=int, default=10, help="shuffled orders of L1 (default 10)")
        parser.add_argument("--most", type=int, help="gradings a group in L3, of 150 (default: all)")
        parser.add_argument("--own", default="", help="L11: a word in the model names of the grader's own family")
        parser.add_argument("--json", action="store_true", help="print the figures as JSON and nothing else")

    def handle(self, *args, **options):
        names = [name for name in options["probes"].split(",") if name]
        if unknown := set(names) - set(NAMES):
            raise CommandError(f"no such probe: {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
        if options["own"] == "":
            names = [name for name in names if name != "L11"]
        if HANDED in os.environ:
            return self._probe(read_trials(Path(os.environ[HANDED])), names, options)
        trials = _trials(options["path"], options["run"])[: options["groups"]]
        if not trials:
            raise CommandError("no group with two passing candidates; name a folder of groups, or --run")
        return self._apart(trials, names, options)

    def _apart(self, trials: list[Trial], names: list[str], options) -> None:
        """Run the same command in a process with a data folder of its own."""
        with tempfile.TemporaryDirectory(prefix="gagar-probe-") as folder:
            write_trials(trials, Path(folder) / "trials")
            data = {"GAGAR_DATA_DIR": str(Path(folder) / "data"), "DATABASE_URL": "", "GAGAR_BODIES_URL": ""}
            grader = {name: getattr(settings, name) for name in CONFIGURED}
            env = os.environ | data | grader | {HANDED: str(Path(folder) / "trials")}
            done = subprocess.run(_again(names, options), env=env, check=False, stdout=subprocess.PIPE, text=True)
        self.stdout.write(done.stdout)
        if done.returncode:
            raise CommandError("the probes did not end")

    def _probe(self, trials: list[Trial], names: list[str], options) -> None:
        call_command("migrate", verbosity=0)
        ask = grade_with(options["grader"], GradingOptions())
        spent: list[Seen] = []

        def grade(group, seed):
            spent.append(ask(group, seed))
            return spent[-1]

        known = probes(orders=options["orders"], most=options["most"], own=options["own"])
        figures = [figure for name in names for figure in known[name](trials, grade)]
        costs = [seen.cost_usd for seen in spent if seen.cost_usd is not None]
        cost = sum(costs) if costs else None
        if options["json"]:
            said = {"grader": options["grader"], "model": settings.GAGAR_GRADER_MODEL, "groups": len(trials)}
            said |= {"gradings": len(spent), "cost_usd": cost, "figures": [figure.to_json() for figure in figures]}
            self.stdout.write(json.dumps(said, indent=2))
            return
        for line in table(figures):
            self.stdout.write(line)
        price = "no price known" if cost is None else f"{cost:.2f} dollars"
        self.stdout.write(f"\n{len(trials)} groups, {len(spent)} gradings by {options['grader']}, {price}")


def table(figures: list[Figure]) -> list[str]:
    """One line for each figure."""
    rows = [("probe", "figure", "value", "95 %", "n", "p", "rule", "kept")]
    for one in figures:
        value = "-" if one.value is None else f"{one.value:.3f}"
        interval = "-" if one.interval is None else f"{one.interval[0]:.3f} to {one.interval[1]:.3f}"
        p = "" if one.p is None else f"{one.p:.2g}"
        kept = {True: "yes", False: "NO", None: ""}[one.kept]
        rows.append((one.probe, one.name, value, interval, str(one.n), p, one.rule, kept))
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    return ["  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _again(names: list[str], options) -> list[str]:
    """The command line of the process that probes."""
    asked = [f"--probes={','.join(names)}", f"--own={options['own']}", *(["--json"] if options["json"] else [])]
    asked += [f"--{name}={options[name]}" for name in ("grader", "orders", "most") if options[name] is not None]
    return [sys.executable, str(settings.BASE_DIR / "manage.py"), "probe_grader", *asked]


def _trials(path: Path | None, run: str | None) -> list[Trial]:
    found: list[Trial] = []
    if path is not None:
        folders = [path] if group_folder.recognises(path) else sorted(p for p in path.iterdir() if p.is_dir())
        found = [of_record(group_folder.read(folder)) for folder in folders if group_folder.recognises(folder)]
    elif run:
        groups = RolloutGroup.objects.filter(run__public_id=run, bodies_ready=True).order_by("pk")
        found = [of_group(group) for group in groups.select_related("task").iterator(chunk_size=50)]
    return [replace(trial, key=trial.key[:80]) for trial in found if len(trial.passing) > 1]
