"""From a checked reply to rows: one verdict with its candidates, evidence and findings."""

from decimal import Decimal

from grading.grader.material import GroupMaterial
from grading.grader.parse import Checked
from grading.grader.shape import GraderReply
from grading.models import Evidence, Finding, RolloutGroup, Trajectory, Verdict, VerdictCandidate
from grading.scoring.ranks import Ranking
from grading.scoring.tiers import TIER_NAMES, TIERS
from grading.states import ENDED, Purpose
from grading.storable import storable

PLACES = Decimal("0.000000001")
EVIDENCE_KEPT = 2000  # rows of one verdict; its reply keeps them all


def store(
    group: RolloutGroup,
    reply: GraderReply,
    checked: Checked,
    material: GroupMaterial,
    *,
    said: GraderReply | None = None,
    **fields,
) -> Verdict:
    """Write a verdict whole. Call inside a transaction that holds the group's lock.

    `said` is kept as the reply where only a part of it was checked. `fields`: grader, and where they apply purpose,
    parent, author, reason, fencing, duration_s, cost_usd.
    """
    rubric = group.rubric or group.run.rubric
    verdict = Verdict.objects.create(
        group=group,
        rubric=rubric,
        formula=rubric.formula,
        is_valid=checked.valid,
        problems=storable([problem.to_json() for problem in checked.problems]),
        reply=storable((said or reply).to_json()),
        ranking=_ranking_json(checked.grades.ranking) if checked.valid else {},
        revisions=storable(reply.to_json()["revisions"]),
        notes=storable([reply.notes]) if reply.notes else [],
        **fields,
    )
    trajectories = {t.external_id: t for t in group.trajectories.counted()}
    _store_findings(verdict, checked, trajectories)
    if checked.valid:
        _store_candidates(verdict, reply, checked, trajectories)
    _store_evidence(verdict, reply, material, trajectories)
    if verdict.purpose == Purpose.TRAINING:
        RolloutGroup.objects.filter(pk=group.pk).exclude(state__in=ENDED).update(tiers=verdict.tiers)
    return verdict


def _ranking_json(ranking: Ranking) -> dict:
    return {name: [list(tied) for tied in ranking[tier]] for tier, name in TIER_NAMES.items()}


def _store_candidates(verdict: Verdict, reply: GraderReply, checked: Checked, trajectories: dict) -> None:
    entries = {entry.id: entry for entry in reply.candidates}
    rows = []
    for tier in TIERS:
        for rank, tied in enumerate(checked.grades.ranking[tier]):
            for id in tied:
                weighted = checked.grades.weighted_score[id]
                rows.append(
                    VerdictCandidate(
                        verdict=verdict,
                        trajectory=trajectories[id],
                        scores=dict(entries[id].scores),
                        reasons=storable(dict(entries[id].reasons)),
                        flags=sorted(flag for flag, raised in entries[id].flags.items() if raised),
                        weighted_score=(Decimal(weighted.numerator) / weighted.denominator).quantize(PLACES),
                        tier=tier,
                        rank=rank,
                        factor=float(checked.grades.factor[id]),
                    )
                )
    VerdictCandidate.objects.bulk_create(rows)


def cited(reply: GraderReply) -> list[tuple[str, str, object]]:
    """Every citation of a reply as (external id, about, citation), in reading order; what a page numbers."""
    found = [(entry.id, c.about, c.citation) for entry in reply.candidates for c in entry.citations]
    found += [(f.id, f.kind, c) for f in reply.findings for c in f.citations]
    found += [(c.candidate, "revision", c) for r in reply.revisions for c in r.citations]
    return found


def _store_evidence(verdict: Verdict, reply: GraderReply, material: GroupMaterial, trajectories: dict) -> None:
    rows = []
    for id, about, citation in cited(reply):
        candidate = material.get(citation.candidate)
        if id in trajectories and candidate is not None and len(rows) < EVIDENCE_KEPT:
            state = candidate.resolve(citation).state
            rows.append(
                Evidence(
                    verdict=verdict,
                    trajectory=trajectories[id],
                    about=storable(about)[:40],
                    number=len(rows) + 1,
                    citation=storable(citation.to_json()),
                    state=state,
                )
            )
    Evidence.objects.bulk_create(rows)


def _store_findings(verdict: Verdict, checked: Checked, trajectories: dict) -> None:
    """Findings of a training verdict change how rows count; others only stand in their reply."""
    if verdict.purpose != Purpose.TRAINING:
        return
    for finding in checked.findings:
        trajectory = trajectories[finding.id]
        if trajectory.integrity == finding.kind:
            continue
        Finding.objects.create(
            trajectory=trajectory,
            kind=finding.kind,
            verdict=verdict,
            by=verdict.said_by[:150],
            reason=storable(finding.reason),
            citations=storable([citation.to_json() for citation in finding.citations]),
        )
        Trajectory.objects.filter(pk=trajectory.pk).update(integrity=finding.kind)
