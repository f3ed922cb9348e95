"""manage.py import_trajectories PATH: groups from folders and trajectory files, to be graded like any other."""

import json
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from grading.errors import GradingError
from grading.grader.graders import GRADERS
from grading.importers.import_groups import Import, import_path
from grading.importers.sources import AUTO, FORMATS
from grading.states import EndReason, GroupState

NEXT = {
    GroupState.COMPLETE: "graded next, then in the queue",
    EndReason.FILTERED_ALL_PASSED: "every labelled candidate passed, so filtered: not waiting in the queue",
    EndReason.FILTERED_ALL_FAILED: "no labelled candidate passed, so filtered: not waiting in the queue",
    EndReason.EXCLUDED_NO_VALID_TRAJECTORY: "no labelled candidate, so excluded: not waiting in the queue",
    EndReason.EXCLUDED_BROKEN_EVALUATION: "its task's evaluation is broken, so excluded: not waiting in the queue",
    EndReason.EXCLUDED_BAD_REWARD: "a reward is no number, so excluded: not waiting in the queue",
    EndReason.ABANDONED: "abandoned before: not waiting in the queue",
}
COLUMNS = ("group", "candidate", "outcome", "patch", "events", "status", "problem")


class Command(BaseCommand):
    help = (
        "Import rollout groups: a group folder, a folder of them, or trajectory files of SWE-agent or mini-swe-agent."
    )

    def add_arguments(self, parser):
        parser.add_argument("path", type=Path, help="a file or a folder")
        parser.add_argument("--team", default="default", help="slug of the team; made if missing (default: default)")
        parser.add_argument("--run", default="imported", help="id of the run; made if missing (default: imported)")
        parser.add_argument("--format", choices=FORMATS, default=AUTO, help="default: auto, by what the files hold")
        parser.add_argument("--grader", choices=GRADERS, default="", help="of a new run (default: GAGAR_GRADER)")
        parser.add_argument("--json", action="store_true", help="print the tally as JSON and nothing else")

    def handle(self, *args, path: Path, team: str, run: str, format: str, grader: str, **options):
        try:
            done = import_path(path, team=team, run=run, wanted=format, grader=grader)
        except GradingError as e:
            raise CommandError(str(e)) from e
        if options["json"]:
            self.stdout.write(json.dumps(done.tally.as_json(), indent=2))
        elif done.candidates:
            self._tell(done, run)
        if done.refused:
            raise CommandError("not imported:\n  " + "\n  ".join(done.refused))

    def _tell(self, done: Import, run: str) -> None:
        lines = [COLUMNS, *(tuple(getattr(line, column) for column in COLUMNS) for line in done.candidates)]
        widths = [max(len(line[n]) for line in lines) for n in range(len(COLUMNS))]
        for line in lines:
            self.stdout.write("  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip())
        tally = done.tally
        events = tally.events
        self.stdout.write(
            f"\nrun {run}\ngroups: {tally.groups}\ncandidates: {tally.candidates}"
            f"\nevents: {events.read} read, {events.kept} kept, {events.dropped} dropped, {events.unlinked} unlinked"
            f"\npatches: {tally.patches_parsed} parsed, {tally.patches_unparsed} unparsed"
        )
        for stand, many in done.stand.items():
            said = NEXT.get(stand, f"imported before, {stand} by now")
            self.stdout.write(f"{many} group{'s' * (many != 1)}: {said}")
        for why, times in events.why.most_common():
            self.stdout.write(f"dropped {times}: {why}")
        self.stdout.write(f"problems: {len(tally.problems)}")
        for problem in tally.problems:
            where = "/".join(part for part in (problem.group, problem.candidate) if part)
            self.stdout.write(f"  {problem.problem}  {where}: {problem.detail}")
