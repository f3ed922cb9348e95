"""Labels: what the grader scored and what people let stand or made of it, a row for each candidate."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from grading.export.decided import decided
from grading.models import Verdict
from grading.scoring.criteria import CRITERIA, FLAGS


def rows(runs, left_out: Counter) -> Iterator[dict[str, Any]]:
    """Every ranked candidate of a verdict that people approved or corrected; the grader's own scores beside."""
    for one in decided(runs):
        before = _placements(one.origin)
        for candidate in one.verdict.candidates.select_related("trajectory"):
            trajectory = candidate.trajectory
            own = before.get(trajectory.pk)
            yield {
                "id": trajectory.external_id,
                "letter": trajectory.letter,
                "outcome": trajectory.outcome,
                "tier": candidate.tier,
                "rank": candidate.rank,
                "factor": candidate.factor,
                "weighted_score": float(candidate.weighted_score),
                **{c: candidate.scores[c] for c in CRITERIA},
                **{flag: flag in candidate.flags for flag in FLAGS},
                **{f"grader_{c}": own.scores[c] if own else None for c in CRITERIA},
                **{f"grader_{flag}": flag in own.flags if own else None for flag in FLAGS},
                "grader_tier": own.tier if own else None,
                "grader_rank": own.rank if own else None,
                "is_changed": own is None or _said(own) != _said(candidate),
                "reason": one.verdict.reason if one.is_corrected else "",
                "provenance": one.provenance("labels"),
            }


def _placements(verdict: Verdict) -> dict:
    return {candidate.trajectory_id: candidate for candidate in verdict.candidates.all()}


def _said(candidate) -> tuple:
    return candidate.scores, sorted(candidate.flags), candidate.tier, candidate.rank
