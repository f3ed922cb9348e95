"""The form of a run's grader: which one, and the options of `grader/options.py`. An empty field keeps its default."""

from dataclasses import asdict, fields

from django import forms

from grading.errors import WrongShape
from grading.grader.job import EXTERNAL
from grading.grader.options import GradingOptions
from grading.models import Run

GRADERS = (
    ("static", "static: patches alone, no model"),
    ("single_pass", "single pass: one text-only call"),
    ("agentic", "agentic: inspects the shared workspace"),
    (EXTERNAL, "external: verdicts that you POST"),
)
LABELS = {
    "model": ("Model", "openai:NAME or anthropic:NAME; empty: what the operator set"),
    "orders": ("Shuffled orders", "a drawn group is graded in this many orders, and the verdicts are merged"),
    "orders_share": ("Share in several orders", "the probability that a group is drawn for it, 0 to 1"),
    "flips_hold": ("Flips that hold", "share of pairs that change sides above which a person sees the group first"),
    "max_turns": ("Turns", "of one grading, at most"),
    "max_tool_calls": ("Tool calls", "of one grading, at most"),
    "max_input_tokens": ("Input tokens", "of one grading, at most"),
    "max_context_tokens": ("Context, tokens", "of one call: what the model's window holds, its answer included"),
    "max_output_tokens": ("Output tokens", "of one grading, at most"),
    "max_cost_usd": ("Cost, $", "of one grading; empty: no limit"),
    "max_wall_s": ("Time, s", "of one grading, at most"),
    "step_groups": ("Groups a step", "the rest falls back, with the reason; empty: no limit"),
    "step_cost_usd": ("Cost a step, $", "empty: no limit"),
    "step_wall_s": ("Time a step, s", "summed over its gradings; empty: no limit"),
    "checks": ("Targeted checks", "only where this machine has a sandbox"),
    "check_image": ("Image of checks", "a docker image with the run's toolchain; empty: bubblewrap"),
    "check_wall_s": ("Time of a check, s", "at most"),
    "max_checks": ("Checks", "of one group, at most"),
}


class RunGrader(forms.Form):
    """Fields come from `GradingOptions`, so that an option added there has one here."""

    grader = forms.ChoiceField(choices=GRADERS, label="Grader")

    def __init__(self, posted=None, *, run: Run):
        try:
            here = GradingOptions.from_json(run.grading)
        except WrongShape:  # a version of ours allowed it once: here is where it is set right
            here = GradingOptions()
        super().__init__(posted, initial={"grader": run.grader, **asdict(here)})
        for option in fields(GradingOptions):
            label, words = LABELS.get(option.name, (option.name, ""))
            self.fields[option.name] = _field(option, label=label, help_text=words)
        for field in self.fields.values():
            if not isinstance(field.widget, forms.CheckboxInput):
                field.widget.attrs["class"] = "input"

    def clean(self):
        cleaned = super().clean()
        said = {option.name: cleaned[option.name] for option in fields(GradingOptions) if option.name in cleaned}
        said = {name: value for name, value in said.items() if value is not None or _may_be_none(name)}
        try:
            self._options = GradingOptions.from_json(said)
        except WrongShape as wrong:
            self.add_error(wrong.where, f"got {wrong.got}, expected {wrong.expected}")
        return cleaned

    def options(self) -> dict:
        """What differs from the defaults, as the run stores it."""
        return self._options.to_json()


def _may_be_none(name: str) -> bool:
    return getattr(GradingOptions(), name) is None


def _field(option, **words) -> forms.Field:
    if option.type is bool:
        return forms.BooleanField(required=False, **words)
    if option.type is str:
        return forms.CharField(required=False, max_length=200, **words)
    is_whole = option.type is int or "int" in str(option.type)
    return (forms.IntegerField if is_whole else forms.FloatField)(required=False, **words)
