import json

import numpy as np
from django.core.management.base import BaseCommand, CommandError

from grading.grader import fleet

FLAGS = {
    "groups": (1568, "groups a step"),
    "rollouts": (16, "rollouts a group"),
    "slots": (12544, "rollouts that run at a time"),
    "steps": (5, "steps that are played"),
    "seed": (0, "of the draws"),
}


class Command(BaseCommand):
    help = "How many graders a job needs: plays a step with drawn times, with and without overlap, and prices it."

    def add_arguments(self, parser):
        for name, (default, words) in FLAGS.items():
            parser.add_argument(f"--{name}", type=int, default=default, help=f"{words} ({default})")
        parser.add_argument("--rollout", default="lognormal:1500:0.6", help="constant:S, exponential:MEAN, "
                            "lognormal:MEAN:SPREAD or sample:S,S,… (lognormal:1500:0.6)")  # fmt: skip
        parser.add_argument("--grading", default="lognormal:600:0.5", help="likewise (lognormal:600:0.5)")
        parser.add_argument("--mixed-share", type=float, default=0.6, help="of the groups, graded (0.6)")
        parser.add_argument("--train-s", type=float, default=600.0, help="of the update after the rollouts (600)")
        parser.add_argument("--grow", type=float, default=0.05, help="by what share a step may grow (0.05)")
        parser.add_argument("--deadlines-s", default="900,3600,14400", help="from complete (900,3600,14400)")
        parser.add_argument("--usd-per-grading", type=float, default=0.0, help="what a model's vendor asks")
        parser.add_argument("--usd-per-grader-hour", type=float, default=4.0, help="of a grader of one's own (4)")
        parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")

    def handle(self, **options):
        step, deadlines = self._step(options), self._deadlines(options["deadlines_s"])
        steps = [fleet.draw(step, np.random.default_rng([options["seed"], n])) for n in range(options["steps"])]
        found = {
            "step_s": float(np.mean([drawn.plain_s for drawn in steps])),
            "graded": float(np.mean([len(drawn.complete_G) for drawn in steps])),
            "modes": [self._mode(steps, overlap, options, deadlines) for overlap in (True, False)],
        }
        self.stdout.write(json.dumps(found) if options["json"] else self._tables(found, options, deadlines))

    def _step(self, options: dict) -> fleet.Step:
        for name in ("groups", "rollouts", "slots", "steps"):
            if options[name] < 1:
                raise CommandError(f"--{name} is {options[name]}, expected 1 or more")
        if not 0 < options["mixed_share"] <= 1:
            raise CommandError(f"--mixed-share is {options['mixed_share']}, expected more than 0 and at most 1")
        try:
            times = [fleet.Times.parse(options[name]) for name in ("rollout", "grading")]
        except ValueError as wrong:
            raise CommandError(str(wrong)) from None
        said = (options[name] for name in ("groups", "rollouts", "slots", "mixed_share"))
        return fleet.Step(*said, *times, options["train_s"])

    def _deadlines(self, text: str) -> list[float]:
        try:
            return [float(part) for part in text.split(",")]
        except ValueError:
            raise CommandError(f"--deadlines-s is {text!r}, expected seconds with commas between") from None

    def _mode(self, steps: list[fleet.Drawn], overlap: bool, options: dict, deadlines: list[float]) -> dict:
        """N, and the same numbers for fewer graders. Where no N is enough: the N of so much above the least growth."""
        most = max(len(drawn.complete_G) for drawn in steps)
        n = fleet.graders_for(steps, options["grow"], overlap=overlap)
        floor = fleet.growth(steps, max(1, most), overlap=overlap)[0]
        most = n or fleet.graders_for(steps, floor + options["grow"], overlap=overlap) or most
        rows = [self._row(steps, max(1, most // part), overlap, options, deadlines) for part in (1, 2, 4, 8)]
        return {"overlap": overlap, "graders": n, "floor": floor, "rows": rows}

    def _row(
        self, steps: list[fleet.Drawn], graders: int, overlap: bool, options: dict, deadlines: list[float]
    ) -> dict:
        grown, _ = fleet.growth(steps, graders, overlap=overlap)
        plain_s = float(np.mean([drawn.plain_s for drawn in steps]))
        graded = float(np.mean([len(drawn.complete_G) for drawn in steps]))
        hours = plain_s * (1 + grown) / 3600
        usd = options["usd_per_grading"] * graded + options["usd_per_grader_hour"] * graders * hours
        late = {f"{d:g}": fleet.growth(steps, graders, overlap=overlap, deadline_s=d) for d in deadlines}
        return {
            "graders": graders,
            "added_s": grown * plain_s,
            "growth": grown,
            "usd": usd,
            "deadlines": {d: {"growth": g, "fallback_share": share} for d, (g, share) in late.items()},
        }

    def _tables(self, found: dict, options: dict, deadlines: list[float]) -> str:
        head = (
            f"{options['groups']} groups of {options['rollouts']}, {found['graded']:.0f} of them graded; "
            f"a step takes {found['step_s']:.0f} s without grading (means of {options['steps']} steps)"
        )
        return "\n\n".join([head, *(self._table(mode, options["grow"], deadlines) for mode in found["modes"])])

    def _table(self, mode: dict, grow: float, deadlines: list[float]) -> str:
        n = mode["graders"]
        said = f"N = {n}: the step grows by at most {grow:.0%}" if n else (
            f"no N keeps the growth under {grow:.0%}: with a grader for every group it is {mode['floor']:.1%}; "
            f"{mode['rows'][0]['graders']} keep it within {grow:.0%} more"
        )  # fmt: skip
        names = [f"fallback, {d:g} s" for d in deadlines]
        lines = [
            f"{'with' if mode['overlap'] else 'without'} overlap: {said}",
            f"{'graders':>8} {'added s':>9} {'growth':>8} {'USD a step':>11}" + "".join(f"{x:>19}" for x in names),
        ]
        for row in mode["rows"]:
            shares = "".join(f"{row['deadlines'][f'{d:g}']['fallback_share']:>19.1%}" for d in deadlines)
            lines.append(
                f"{row['graders']:>8} {row['added_s']:>9.0f} {row['growth']:>8.1%} {row['usd']:>11.2f}{shares}"
            )
        return "\n".join(lines)
