"""From rows to results: read once an audit is revealed, and never before."""

from collections.abc import Mapping
from dataclasses import dataclass

from grading.audit.results import Judged, JudgedGroup, Summary, differences, summary
from grading.errors import NotAllowed
from grading.grader.wire import from_json
from grading.models import Audit, AuditArm, AuditGroup, AuditVerdict
from grading.review.agreement import flat
from grading.scoring.criteria import Rubric, weighted_score

State = AuditGroup.State


@dataclass(frozen=True)
class Result:
    """Figures of a revealed audit: of all checkpoints together, against the first arm, and checkpoint by checkpoint."""

    arms: list[AuditArm]
    groups: int
    overall: Summary
    against_first: Summary
    by_window: list[tuple[tuple[int, int], Summary]]


def result_of(audit: Audit) -> Result:
    """Sum up the valid verdicts. Raises NotAllowed before the reveal."""
    if not audit.is_revealed:
        raise NotAllowed(f"{audit} is not revealed: who made what is not told yet")
    arms = list(audit.arms.select_related("run"))
    groups = judged_groups(audit, arms)
    windows = [
        (tuple(window), summary([one for one in groups if one.window == n], len(arms), seed=audit.seed))
        for n, window in enumerate(audit.windows)
    ]
    return Result(
        arms=arms,
        groups=len(groups),
        overall=summary(groups, len(arms), seed=audit.seed),
        against_first=differences(groups, len(arms), seed=audit.seed),
        by_window=windows,
    )


def judged_groups(audit: Audit, arms: list[AuditArm]) -> list[JudgedGroup]:
    number = {arm.pk: n for n, arm in enumerate(arms)}
    rubric = audit.rubric.rubric
    done = audit.groups.filter(state=State.DONE).prefetch_related("candidates").select_related("task")
    newest = newest_verdicts(audit)
    return [_judged(group, newest[group.pk], number, rubric) for group in done]


def newest_verdicts(audit: Audit) -> dict[int, AuditVerdict]:
    """Group -> its valid verdict."""
    rows = AuditVerdict.objects.filter(group__audit=audit, is_valid=True).order_by("pk")
    return {verdict.group_id: verdict for verdict in rows}


def placed(verdict: AuditVerdict) -> dict[str, tuple[int, str]]:
    """Letter -> (place in the joint order from 0, tier)."""
    tiers = {letter: name for name, tied in verdict.ranking.items() for same in tied for letter in same}
    return {letter: (n, tiers[letter]) for n, tied in enumerate(flat(verdict.ranking)) for letter in tied}


def _judged(group: AuditGroup, verdict: AuditVerdict, number: Mapping[int, int], rubric: Rubric) -> JudgedGroup:
    reply = from_json(verdict.reply)
    entries = {entry.id: entry for entry in reply.candidates}
    places, found = placed(verdict), []
    for one in group.candidates.all():
        said = {"arm": number[one.arm_id], "passed": one.passed}
        if one.letter in places:
            scores = entries[one.letter].scores
            said |= {"scores": scores, "weighted_score": float(weighted_score(scores, rubric))}
            place, tier = places[one.letter]
            said |= {"tier": int(tier[1:]), "place": place}
        found.append(Judged(**said))
    return JudgedGroup(group.task.key, group.window, tuple(found))
