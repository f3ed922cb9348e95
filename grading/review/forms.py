"""Forms of a run. What a form does not name keeps its default."""

from django import forms

from grading.models import RubricVersion, Run
from grading.models.runs import POLICY

NO_DEADLINE = "seconds; empty means that nothing is decided by itself"
LABELS = {
    "public_id": "Id",
    "policy": "When a valid verdict counts",
    "hold_share": "Held share",
    "hold_budget": "Forced holds a step",
    "collect_deadline_s": "Collecting deadline",
    "grading_deadline_s": "Grading deadline",
    "review_deadline_s": "Review deadline",
    "mask_truncated": "Mask truncated rollouts",
}
HELP = {
    "public_id": "letters, digits, - and _; part of every address",
    "policy": "shadow: never · auto: at once · sampled: at once unless drawn · manual: when a person says so",
    "hold_share": "policy sampled: the probability that a group is held, 0 to 1",
    "hold_budget": "groups a step that a strong integrity signal may hold",
    "collect_deadline_s": NO_DEADLINE,
    "grading_deadline_s": f"{NO_DEADLINE}; from complete",
    "review_deadline_s": f"{NO_DEADLINE}; from graded",
}


class _Plain:
    """The look of our fields."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            if name.endswith("_deadline_s"):
                field.required = False  # empty is an answer: no deadline
            if not isinstance(field.widget, forms.CheckboxInput):
                field.widget.attrs["class"] = "input"


class RunPolicy(_Plain, forms.ModelForm):
    class Meta:
        model = Run
        fields = POLICY
        labels, help_texts = LABELS, HELP


class NewRun(_Plain, forms.ModelForm):
    class Meta:
        model = Run
        fields = ("team", "public_id", "name", "method", "rubric", *POLICY, "mask_truncated")
        labels, help_texts = LABELS, HELP

    def __init__(self, *args, teams, **kwargs):
        super().__init__(*args, **kwargs)
        self.fields["team"].queryset = teams
        self.fields["rubric"].queryset = RubricVersion.objects.order_by("-number")
        self.fields["rubric"].initial = RubricVersion.flash()
