"""The one verdict shape, described for the API's schema. `grader/wire.py` is what reads it."""

from rest_framework import serializers

from grading.grader.shape import FINDING_KINDS
from grading.review.anchors import CitationKind, Side
from grading.scoring.criteria import CRITERIA, FLAGS, HIGHEST, LOWEST


def _object(name: str, fields: dict[str, serializers.Field]) -> type[serializers.Serializer]:
    return type(name, (serializers.Serializer,), fields)


def _optional(field: type[serializers.Field], **kwargs) -> serializers.Field:
    return field(required=False, **kwargs)


Scores = _object("Scores", {name: serializers.IntegerField(min_value=LOWEST, max_value=HIGHEST) for name in CRITERIA})
Reasons = _object("Reasons", {name: _optional(serializers.CharField) for name in (*CRITERIA, *FLAGS)})
Flags = _object("Flags", {name: _optional(serializers.BooleanField) for name in FLAGS})


class Citation(serializers.Serializer):
    """A changed line of the patch, an event with the quoted words, or an execution result."""

    kind = serializers.CharField(help_text=", ".join(CitationKind.__args__))
    candidate = serializers.CharField(required=False, help_text="external_id; the candidate it stands in if left out")
    path = serializers.CharField(required=False)
    side = serializers.ChoiceField(Side.__args__, required=False)
    line = serializers.IntegerField(required=False, help_text="from 1, on that side")
    line_end = serializers.IntegerField(required=False, help_text="included")
    quote = serializers.CharField(required=False)
    event = serializers.IntegerField(required=False, help_text="from 0")
    result = serializers.CharField(required=False, help_text="name of a test")


class CitationOfCandidate(Citation):
    about = serializers.CharField(help_text="the criterion or flag it stands for")


class Candidate(serializers.Serializer):
    id = serializers.CharField(help_text="external_id of a passing rollout; each exactly once")
    scores = Scores()
    reasons = Reasons(required=False)
    flags = Flags(required=False)
    citations = CitationOfCandidate(many=True, required=False, help_text="for every score below 4 and every flag")


class RevisionReply(serializers.Serializer):
    candidates = serializers.ListField(child=serializers.CharField())
    reason = serializers.CharField()
    citations = Citation(many=True)


class FindingReply(serializers.Serializer):
    id = serializers.CharField()
    kind = serializers.CharField(help_text=" or ".join(FINDING_KINDS))
    reason = serializers.CharField()
    citations = Citation(many=True)


class VerdictReply(serializers.Serializer):
    """Order is by weighted score inside a tier unless a revision says otherwise; tiers are computed here."""

    candidates = Candidate(many=True)
    order = serializers.DictField(
        child=serializers.ListField(child=serializers.ListField(child=serializers.CharField())),
        required=False,
        allow_null=True,
        help_text='{"T1": [[id, tied id], …], "T2": …, "T3": …}, best first',
    )
    revisions = RevisionReply(many=True, required=False)
    findings = FindingReply(many=True, required=False)
    notes = serializers.CharField(required=False, help_text="what the grader skipped")
