"""Count a group again after an outcome was amended or a finding confirmed or withdrawn.

Nothing is edited: the newest verdict is read again over the rows as they are now, and what was decided is decided anew.
"""

from dataclasses import replace

from grading import clock, wake
from grading.grader import gather, verdicts
from grading.grader.material import GroupMaterial
from grading.grader.parse import check
from grading.grader.shape import GraderReply
from grading.grader.wire import read
from grading.models import Decision, RolloutGroup, Verdict
from grading.review import decisions
from grading.states import ENDED, DecisionKind, GroupState

STATUS_KINDS = (DecisionKind.FILTERED, DecisionKind.EXCLUDED)


def recount(group: RolloutGroup, *, by: str, reason: str, user=None) -> None:
    """Call inside the transaction that changed a row, with the group locked and freshly read."""
    if group.state in (GroupState.COLLECTING, GroupState.GRADING):
        return  # counted when complete; checked over the new rows when the grader answers
    status = gather.effective(group).status
    last = group.decisions.order_by("-version").first()
    told = {"by": by, "user": user}
    if last and last.kind == DecisionKind.ABANDONED:
        return
    if kind := decisions.end_kind(status):
        if kind == DecisionKind.FILTERED and not group.eligible:
            kind, status = DecisionKind.INELIGIBLE, ""
        decisions.decide(group, kind, end_reason=status, reason=reason, **told)
    elif last and last.kind in STATUS_KINDS:
        _reopen(group, last, reason=reason, **told)
    else:
        _again(group, last, reason=reason, **told)


def _reopen(group: RolloutGroup, last: Decision, *, by: str, reason: str, user) -> None:
    """A group that trains now: it is graded if it may be, else its outcome advantages go out."""
    needs_no_grade = not group.eligible or group.run.paused or group.method == "outcome"
    if needs_no_grade or last.kind != DecisionKind.FILTERED:
        kind = DecisionKind.FALLBACK if group.eligible else DecisionKind.INELIGIBLE
        kind = DecisionKind.BASELINE if group.eligible and group.method == "outcome" else kind
        decisions.decide(group, kind, by=by, user=user, reason=reason)
        return
    # A claim that has already run out: the next free grader takes the group.
    fields = {"claimed_until": clock.now(), "grading_attempts": 0, "end_reason": "", "bodies_ready": True}
    group.move(GroupState.GRADING, by=by, reason=reason, **fields)
    wake.grading()


def _again(group: RolloutGroup, last: Decision | None, *, by: str, reason: str, user) -> None:
    verdict = decisions.newest_verdict(group)
    if verdict is not None:
        verdict = derive(group, verdict, reason=reason, user=user)
    if group.state not in ENDED:
        return  # a person or the deadline decides
    if last.kind == DecisionKind.VERDICT and verdict and verdict.is_valid:
        decisions.decide(group, DecisionKind.VERDICT, verdict=verdict, by=by, user=user, reason=reason)
    elif last.kind == DecisionKind.VERDICT:
        decisions.decide(group, DecisionKind.FALLBACK, by=by, user=user, reason=decisions.GRADER_FAILURE)
    else:
        decisions.decide(group, last.kind, by=by, user=user, reason=last.reason)


def derive(group: RolloutGroup, parent: Verdict, *, reason: str, user=None) -> Verdict:
    """The parent's reply over the rows as they are now: those who no longer pass are left out of it."""
    material = gather.material_of(group)
    reply, unread = read(parent.reply)
    reply = only_ranked(reply, material)
    checked = check(reply, material, parent.rubric.rubric, unread)
    return verdicts.store(
        group, reply, checked, material, grader=parent.grader, parent=parent, author=user, reason=reason
    )


def only_ranked(reply: GraderReply, material: GroupMaterial) -> GraderReply:
    """Leave out whoever failed or was confirmed to leak or hack; empty tied groups and revisions go with them."""
    ranked = material.passing.keys() - material.confirmed
    order = reply.order
    if order is not None:
        order = {
            tier: tuple(left for tied in groups if (left := tuple(id for id in tied if id in ranked)))
            for tier, groups in order.items()
        }
    revisions = tuple(
        replace(r, candidates=left, citations=tuple(c for c in r.citations if c.candidate in ranked))
        for r in reply.revisions
        if (left := tuple(id for id in r.candidates if id in ranked))
    )
    entries = tuple(entry for entry in reply.candidates if entry.id not in material.failing)
    return replace(reply, candidates=entries, order=order, revisions=revisions)
