"""`manage.py fit_weights RUN`: fit the rubric to blind orders and print it all; --gate spends the held-out groups."""

import json

from django.core.management.base import BaseCommand, CommandError

from grading.calibration import fitting, gates
from grading.errors import GradingError
from grading.models import Run
from grading.scoring.criteria import Rubric


class Command(BaseCommand):
    help = "Fit weights and tier thresholds to people's blind orders. Publishes nothing."

    def add_arguments(self, parser):
        parser.add_argument("run", help="the id of the run: its team's orders, its grader, its rubric")
        parser.add_argument("--grader", default="", help="model and prompt, as Fit calls them, or all; else the newest")
        parser.add_argument("--gate", action="store_true", help="look at the held-out groups, which spends them")

    def handle(self, *args, run: str, gate: bool, grader: str, **options):
        found = Run.objects.select_related("team", "rubric").filter(public_id=run).first()
        if found is None:
            raise CommandError(f"no run {run!r}: expected its id, as in the address of its pages")
        made = fitting.fit(found, by="fit_weights", grader=grader)
        held = gates.ready(fitting.pool(found, fitting.whose(found, grader))[1])
        said = {"fit": made.pk, "base": str(made.base), "definition": made.definition} | made.report
        said["held_out"] = {"groups": held.groups, "pairs": held.pairs, "is_enough": held.is_enough}
        if gate and made.definition:
            said["gate"] = self._gate(found, made.definition, grader)
        self.stdout.write(json.dumps(said, indent=2))

    def _gate(self, run: Run, definition: dict, grader: str) -> dict:
        try:
            seen = gates.look_at_rubric(run, Rubric.from_json(definition), by="fit_weights", grader=grader)
        except GradingError as refused:
            return {"refused": str(refused)}
        names = ("groups", "pairs", "old_accuracy", "new_accuracy", "gain", "low", "high", "passed")
        return {name: getattr(seen, name) for name in names}
