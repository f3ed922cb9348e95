"""Which verdicts leave the house: those a person approved or corrected, that count for their group now."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import F

from grading.models import Decision, RolloutGroup, Run, Verdict
from grading.states import DecisionKind

AT_ONCE = 50


@dataclass(frozen=True)
class Decided:
    """A group, the verdict that counts, the grader's own one it goes back to, and who said so."""

    group: RolloutGroup
    decision: Decision
    verdict: Verdict
    origin: Verdict

    @property
    def is_corrected(self) -> bool:
        return self.verdict.pk != self.origin.pk

    def provenance(self, kind: str) -> dict:
        """Where a row comes from: enough to find all of it again on this server."""
        return {
            "format": f"gagar-{kind}-1",
            "run": self.group.run.public_id,
            "group": self.group.key,
            "life": self.group.life.n,
            "step": self.group.step,
            "task": self.group.task.key,
            "verdict": self.verdict.pk,
            "origin": self.origin.pk,
            "source": "corrected" if self.is_corrected else "approved",
            "decision": self.decision.version,
            "decided_at": self.decision.at.isoformat(),
            "reviewer": f"person-{self.decision.user_id}",
            "grader": self.origin.grader,
            "rubric": str(self.verdict.rubric),
            "formula": self.verdict.formula,
        }


def decided(runs) -> Iterator[Decided]:
    """What people decided in these runs, group by group; a few in memory at a time.

    A decision by a policy or a deadline is nobody's approval, and an older decision no longer counts.
    """
    about = ("group__run__rubric", "group__task", "group__life", "group__rubric", "verdict__rubric", "verdict__parent")
    rows = decisions(runs).select_related(*about).order_by("group__run", "group")
    for decision in rows.iterator(chunk_size=AT_ONCE):
        yield Decided(decision.group, decision, decision.verdict, origin_of(decision.verdict))


def decisions(runs):
    rows = Decision.objects.filter(group__run__in=runs, kind=DecisionKind.VERDICT, version=F("group__version"))
    return rows.filter(user__isnull=False, verdict__is_valid=True)


def origin_of(verdict: Verdict) -> Verdict:
    while verdict.parent is not None:
        verdict = verdict.parent
    return verdict


def counts(runs: list[Run]) -> dict[str, int]:
    """How many groups there are to export, by source."""
    rows = decisions(runs)
    corrected = rows.filter(verdict__parent__isnull=False).count()
    return {"approved": rows.count() - corrected, "corrected": corrected}
