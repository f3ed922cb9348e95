"""Verdicts to read on groups that were decided without one: purpose `audit`, nothing moves."""

from grading.grader import claims, gather, job, static
from grading.models import RolloutGroup, Run
from grading.states import ENDED, Purpose


def audit(run: Run) -> int:
    """Have the static grader look at every mixed group of a run that ended without a verdict. Returns how many."""
    ended = RolloutGroup.objects.filter(run=run, state__in=ENDED, end_reason="")
    left = ended.exclude(verdicts__purpose=Purpose.AUDIT).select_related("run", "task", "rubric").order_by("pk")
    for group in left:
        job.add_audit(group, static.grade(gather.material_of(group)), grader=claims.INLINE)
    return len(left)
