"""A person's verdict: the newest one with other scores, flags or order, a reason and evidence. It decides nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from django.db import transaction

from grading.errors import BadInput, Conflict, WrongState
from grading.grader import gather, verdicts
from grading.grader.parse import check
from grading.grader.shape import CandidateReply, Cited, GraderReply, Order, Revision
from grading.grader.wire import read
from grading.models import RolloutGroup, Verdict
from grading.review import decisions
from grading.review.recount import only_ranked
from grading.states import GroupState

Edits = Mapping[str, Mapping]  # external id -> what changes


@transaction.atomic
def correct(
    group: RolloutGroup,
    *,
    parent: int,
    user,
    reason: str,
    scores: Edits,
    flags: Edits,
    order: Order | None = None,
    citations: Mapping[str, Sequence[Cited]] | None = None,
) -> Verdict:
    """Save a correction of the verdict the person saw.

    Raises Conflict when a newer verdict exists (both stay), BadInput with every problem when it would not be valid.
    """
    group = RolloutGroup.objects.locked().select_related("run", "task", "rubric").get(pk=group.pk)
    if group.state in (GroupState.COLLECTING, GroupState.COMPLETE, GroupState.GRADING):
        raise WrongState(f"group {group.key} is {group.state}: there is no verdict to correct yet")
    newest = decisions.newest_verdict(group)
    if newest is None or newest.pk != parent:
        raise Conflict(
            "somebody saved a newer verdict while you worked: nothing of yours is stored yet",
            got=parent,
            expected=newest.pk if newest else None,
        )
    citations = citations or {}
    if not reason.strip():
        raise BadInput("a correction needs a reason")
    if not any(citations.values()):
        raise BadInput("a correction needs a citation", expected="a changed line, an event or a result")
    reply = corrected_reply(newest, scores=scores, flags=flags, order=order, citations=citations, reason=reason)
    material = gather.material_of(group)
    reply = only_ranked(reply, material)
    checked = check(reply, material, newest.rubric.rubric)
    if not checked.valid:
        raise BadInput("the correction is not valid yet", got="; ".join(str(p) for p in checked.problems[:8]))
    verdict = verdicts.store(
        group, reply, checked, material, grader="person", parent=newest, author=user, reason=reason
    )
    group.note(group.state, by=user.username, reason=f"correction: {reason}", details={"verdict": verdict.pk})
    return verdict


def corrected_reply(
    newest: Verdict,
    *,
    scores: Edits,
    flags: Edits,
    order: Order | None,
    citations: Mapping[str, Sequence[Cited]],
    reason: str,
) -> GraderReply:
    """The newest reply with the edits applied. A revised order is argued by the same reason and citations."""
    reply, _ = read(newest.reply)
    entries = {entry.id: entry for entry in reply.candidates}
    for id in (*scores, *flags, *citations):
        entries.setdefault(id, CandidateReply(id=id, scores={}))
    edited = []
    for entry in entries.values():
        cited = tuple(c for c in citations.get(entry.id, ()) if c.about != "revision")
        edited.append(
            replace(
                entry,
                scores={**entry.scores, **scores.get(entry.id, {})},
                flags={**entry.flags, **flags.get(entry.id, {})},
                citations=(*entry.citations, *cited),
            )
        )
    if order is None:
        changed = bool(scores or flags)
        return replace(
            reply, candidates=tuple(edited), order=None if changed else reply.order,
            revisions=() if changed else reply.revisions,
        )  # fmt: skip
    argued = {id: [c.citation for c in cs if c.about == "revision"] for id, cs in citations.items()}
    argued = {id: tuple(cs) for id, cs in argued.items() if cs}
    revision = Revision(tuple(argued), reason, tuple(c for cs in argued.values() for c in cs))
    # What an earlier revision argued still stands for the candidates it names.
    revisions = (*reply.revisions, revision) if argued else reply.revisions
    return replace(reply, candidates=tuple(edited), order=order, revisions=revisions)
