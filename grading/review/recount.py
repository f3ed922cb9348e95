"""Count a group again after an outcome was amended or a finding confirmed or withdrawn.

Nothing is edited: the newest verdict is read again over the rows as they are now, and what was decided is decided anew.
"""

from dataclasses import replace
from datetime import timedelta

from grading import clock, wake
from grading.grader import gather, verdicts
from grading.grader.material import GroupMaterial
from grading.grader.parse import check
from grading.grader.shape import GraderReply
from grading.grader.wire import read
from grading.models import Decision, RolloutGroup, Verdict
from grading.review import decisions, placing
from grading.states import ENDED, DecisionKind, GroupState, Method

STATUS_KINDS = (DecisionKind.FILTERED, DecisionKind.EXCLUDED)
OUTDATED = "verdict_outdated"  # a fallback, as long as the verdict does not rank all who pass now


def recount(group: RolloutGroup, *, by: str, reason: str, user=None) -> None:
    """Call inside the transaction that changed a row, with the group locked and freshly read."""
    if group.state == GroupState.COLLECTING:
        return  # counted when complete
    last = group.decisions.order_by("-version").first()
    if last and last.kind == DecisionKind.ABANDONED:
        return
    status = gather.effective(group).status
    told = {"by": by, "reason": reason, "user": user}
    if kind := decisions.end_kind(status):
        if kind == DecisionKind.FILTERED and not group.eligible:
            kind, status = DecisionKind.INELIGIBLE, ""
        decisions.decide(group, kind, end_reason=status, **told)
    elif group.state == GroupState.GRADING:
        _grade_anew(group, by=by, reason=reason)
    elif group.state not in ENDED:
        _derive_all(group, decisions.graders_verdict(group), reason=reason, user=user)
        placing.place_again(group)
    elif standing := _standing(group):
        _decide_again(group, standing, **told)
    else:
        _reopen(group, last, **told)


def _standing(group: RolloutGroup) -> Decision | None:
    """What was decided last, apart from what only followed from how the rollouts counted at that time."""
    said = group.decisions.exclude(kind__in=STATUS_KINDS).exclude(kind=DecisionKind.FALLBACK, reason=OUTDATED)
    return said.order_by("-version").first()


def _grade_anew(group: RolloutGroup, *, by: str, reason: str) -> None:
    """The grader at work looks at rows that are gone: its claim ends, and its answer will be refused."""
    group.move(
        GroupState.COMPLETE, by=by, reason=reason,
        claimed_until=None, claimed_by="", fencing=group.fencing + 1, grading_attempts=0,
    )  # fmt: skip
    wake.grading()


def _decide_again(group: RolloutGroup, standing: Decision, *, by: str, reason: str, user) -> None:
    told = {"by": by, "user": user}
    verdict = _derive_all(group, standing.verdict, reason=reason, user=user)
    if standing.kind != DecisionKind.VERDICT:
        decisions.decide(group, standing.kind, reason=standing.reason, **told)
    elif group.run.paused:
        decisions.decide(group, DecisionKind.FALLBACK, reason=decisions.PAUSED, **told)
    elif verdict.is_valid:
        decisions.decide(group, DecisionKind.VERDICT, verdict=verdict, reason=reason, **told)
    else:
        decisions.decide(group, DecisionKind.FALLBACK, reason=OUTDATED, **told)


def _reopen(group: RolloutGroup, last: Decision, *, by: str, reason: str, user) -> None:
    """It trains now and was never decided otherwise: graded if it may be, else its outcome advantages count."""
    told = {"by": by, "user": user}
    newest = decisions.newest_verdict(group)
    if not group.eligible:
        decisions.decide(group, DecisionKind.INELIGIBLE, reason=reason, **told)
    elif group.method == Method.OUTCOME:
        decisions.decide(group, DecisionKind.BASELINE, reason="method outcome", **told)
    elif group.run.paused:
        decisions.decide(group, DecisionKind.FALLBACK, reason=decisions.PAUSED, **told)
    elif newest is None and last.kind == DecisionKind.EXCLUDED:
        decisions.decide(group, DecisionKind.FALLBACK, reason=reason, **told)
    else:
        _to_grading(group, by=by, reason=reason)
        verdict = _derive_all(group, decisions.graders_verdict(group), reason=reason, user=user)
        if verdict and (verdict.is_valid or newest.grader == decisions.PERSON):
            to = GroupState.GRADED if verdict.is_valid else GroupState.UNGRADED
            group.move(to, by=by, reason=reason, graded_at=clock.now(), claimed_until=None)
            decisions.after_graded(group, verdict)


def _to_grading(group: RolloutGroup, *, by: str, reason: str) -> None:
    """With a claim that has already run out: the next free grader takes the group. Its deadlines begin anew.

    It was filtered and is graded now: a live job that still has bodies is asked for them.
    """
    now, within = clock.now(), group.run.grading_deadline_s if group.run.is_live else None
    group.move(
        GroupState.GRADING, by=by, reason=reason, end_reason="", bodies_ready=True,
        bodies_wanted=group.bodies_wanted or group.run.is_live,
        claimed_until=now, fencing=group.fencing + 1, grading_attempts=0,
        grade_by=None if within is None else now + timedelta(seconds=within), wanted_by=None,
    )  # fmt: skip
    wake.grading()


def _derive_all(group: RolloutGroup, counting: Verdict | None, *, reason: str, user) -> Verdict | None:
    """Derive the verdict that counts, then a newer one that nobody approved yet. Returns the first, or the only one."""
    newest = decisions.newest_verdict(group)
    derived = [derive(group, v, reason=reason, user=user) for v in dict.fromkeys((counting, newest)) if v]
    return derived[0] if derived else None


def derive(group: RolloutGroup, parent: Verdict, *, reason: str, user=None) -> Verdict:
    """What the parent says, over the rows as they are now: those who no longer pass are left out of the ranking.

    The reply is kept whole, so that whoever passes again is ranked again. A grader's own invalid verdict is not mended.
    """
    if not parent.is_valid and parent.parent_id is None:
        return parent
    material = gather.material_of(group)
    said, unread = read(parent.reply)
    reply = only_ranked(said, material)
    checked = check(reply, material, parent.rubric.rubric, unread)
    return verdicts.store(
        group, reply, checked, material, said=said, grader=parent.grader, parent=parent, author=user, reason=reason
    )


def only_ranked(reply: GraderReply, material: GroupMaterial) -> GraderReply:
    """Leave out whoever does not pass or was confirmed to leak or hack; empty tied groups and revisions go with them.

    Findings are left out too: they are rows since, and may be withdrawn.
    """
    ranked = material.passing.keys() - material.confirmed
    order = reply.order
    if order is not None:
        order = {
            tier: tuple(left for tied in groups if (left := tuple(id for id in tied if id in ranked)))
            for tier, groups in order.items()
        }
    revisions = tuple(
        replace(r, candidates=left, citations=shown)
        for r in reply.revisions
        if (left := tuple(id for id in r.candidates if id in ranked))
        and (shown := tuple(c for c in r.citations if c.candidate in left))
    )
    entries = tuple(entry for entry in reply.candidates if entry.id in ranked)
    return replace(reply, candidates=entries, order=order, revisions=revisions, findings=())
