"""Forms of a run. What a form does not name keeps its default."""

from django import forms
from django.core.validators import MaxValueValidator, MinValueValidator

from grading.models import RubricVersion, Run
from grading.models.runs import POLICY
from grading.review import webhook

NO_DEADLINE = "seconds; empty means that nothing is decided by itself"
MOST_REVIEWS = 9
KEPT = (
    "reviews_wanted",
    "blind_share",
    "overlap_share",
    "bodies_share",
)  # a form without them changes nothing about them
LABELS = {
    "public_id": "Id",
    "policy": "When a valid verdict counts",
    "hold_share": "Held share",
    "hold_budget": "Forced holds a step",
    "reviews_wanted": "Independent reviews",
    "blind_share": "Blind share",
    "overlap_share": "Overlap share",
    "webhook_url": "Webhook",
    "bodies_share": "Bodies share",
    "collect_deadline_s": "Collecting deadline",
    "grading_deadline_s": "Grading deadline",
    "review_deadline_s": "Review deadline",
    "mask_truncated": "Mask truncated rollouts",
    "neutral_when_equal": "Neutral when equal",
}
HELP = {
    "method": "redistribute, or what to compare it with: outcome, downweight only (Eq. 1), reward discount (Eq. 11), "
    "additive rubric (our reading of PAPO), or a control that must not win: the factors shuffled or inverted",
    "neutral_when_equal": "factors are divided by the group's best one, so that equal passes lose no credit to the cap",
    "public_id": "letters, digits, - and _; part of every address",
    "policy": "shadow: never · auto: at once · sampled: at once unless drawn · manual: when a person says so",
    "hold_share": "policy sampled: the share of groups that is held, 0 to 1; more of those that matter and are unsure",
    "hold_budget": "groups a step that a strong integrity signal may hold",
    "reviews_wanted": "people who answer for a held group, each alone; another one decides where they differ",
    "blind_share": "the probability that a held group is ranked by its reviewer before the verdict is shown, 0 to 1",
    "overlap_share": "policy sampled: the probability that two people answer for a drawn group, each alone, 0 to 1",
    "webhook_url": "hears of held groups near their deadline; its host must be in GAGAR_WEBHOOK_HOSTS",
    "bodies_share": "of groups without a grade, whose patches and events are kept all the same, 0 to 1; 1 for audits",
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
            if name in KEPT:
                field.required = False
            if name == "reviews_wanted":
                field.validators += [MinValueValidator(1), MaxValueValidator(MOST_REVIEWS)]
            if not isinstance(field.widget, forms.CheckboxInput):
                field.widget.attrs["class"] = "input"

    def clean(self):
        cleaned = super().clean()
        for name in KEPT:
            if cleaned.get(name, 0) is None:
                cleaned[name] = getattr(self.instance, name)
        return cleaned

    def clean_webhook_url(self) -> str:
        url = self.cleaned_data["webhook_url"].strip()
        if url and (why := webhook.why_not(url)):
            raise forms.ValidationError(why)
        return url


class RunPolicy(_Plain, forms.ModelForm):
    class Meta:
        model = Run
        fields = POLICY
        labels, help_texts = LABELS, HELP


class NewRun(_Plain, forms.ModelForm):
    class Meta:
        model = Run
        fields = ("team", "public_id", "name", "method", "rubric", *POLICY, "mask_truncated", "neutral_when_equal")
        labels, help_texts = LABELS, HELP

    def __init__(self, *args, teams, **kwargs):
        super().__init__(*args, **kwargs)
        self.fields["team"].queryset = teams
        self.fields["rubric"].queryset = RubricVersion.objects.order_by("-number")
        self.fields["rubric"].initial = RubricVersion.flash()
