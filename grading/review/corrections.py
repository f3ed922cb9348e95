"""A person's verdict: the newest one with other scores, flags or order, a reason and evidence. It decides nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from django.db import transaction

from grading.errors import BadInput, Overtaken, WrongState
from grading.grader import gather, verdicts
from grading.grader.material import GroupMaterial
from grading.grader.parse import CLAIMS, Checked, check
from grading.grader.shape import CandidateReply, Cited, GraderReply, Order, Problem, Revision
from grading.grader.wire import read
from grading.models import RolloutGroup, Verdict
from grading.review import decisions, placing
from grading.review.recount import only_ranked
from grading.scoring.criteria import CRITERIA, FLAGS, HIGHEST, LOWEST
from grading.states import GroupState

Edits = Mapping[str, Mapping]  # external id -> what changes


class NotValid(BadInput):
    """A correction that the validity check refuses, with what a page needs to say why."""

    def __init__(self, problems: Sequence[Problem], reply: GraderReply, material: GroupMaterial):
        super().__init__("the correction is not valid yet", got="; ".join(map(str, problems)))
        self.problems, self.reply, self.material = problems, reply, material


@dataclass(frozen=True)
class Argued:
    """A person's reply that passed the check."""

    reply: GraderReply
    checked: Checked
    material: GroupMaterial


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

    Raises Overtaken when a newer verdict exists (both stay), NotValid with every problem when it would not be valid,
    BadInput without a reason or a citation.
    """
    group = RolloutGroup.objects.locked().select_related("run", "task", "rubric").get(pk=group.pk)
    newest = newest_seen(group, parent)
    made = argued(group, newest, scores=scores, flags=flags, order=order, citations=citations or {}, reason=reason)
    verdict = store(group, made, parent=newest, user=user, reason=reason)
    group.note(group.state, by=user.username, reason=f"correction: {reason}", details={"verdict": verdict.pk})
    return verdict


def argued(
    group: RolloutGroup,
    newest: Verdict,
    *,
    scores: Edits,
    flags: Edits,
    order: Order | None,
    citations: Mapping[str, Sequence[Cited]],
    reason: str,
) -> Argued:
    """The newest verdict with these edits, checked whole. Raises NotValid, BadInput as `correct` does."""
    _refuse_unargued(reason, citations)
    material = gather.material_of(group)
    said = inherited(newest, material)
    reply = corrected_reply(said, scores=scores, flags=flags, order=order, citations=citations, reason=reason)
    return checked_reply(reply, material, newest)


def checked_reply(reply: GraderReply, material: GroupMaterial, newest: Verdict) -> Argued:
    """A person's reply that would make a valid verdict, or NotValid."""
    checked = check(reply, material, newest.rubric.rubric)
    if not checked.valid:
        raise NotValid(checked.problems, reply, material)
    return Argued(reply, checked, material)


def store(group: RolloutGroup, made: Argued, *, parent: Verdict, user, reason: str) -> Verdict:
    """Write a person's verdict. Call with the group locked."""
    fields = {"grader": decisions.PERSON, "parent": parent, "author": user, "reason": reason}
    verdict = verdicts.store(group, made.reply, made.checked, made.material, **fields)
    placing.place_again(group)
    return verdict


def newest_seen(group: RolloutGroup, seen: int) -> Verdict:
    """The verdict to correct: the newest one, if it is the one that the person saw."""
    if group.state in (GroupState.COLLECTING, GroupState.COMPLETE, GroupState.GRADING):
        raise WrongState(f"group {group.key} is {group.state}: there is no verdict to correct yet")
    newest = decisions.newest_verdict(group)
    if newest is None:
        raise WrongState(f"group {group.key} was decided without a verdict: there is none to correct")
    if newest.pk != seen:
        raise Overtaken(
            "somebody saved a newer verdict while you worked: nothing of yours is stored yet",
            got=seen,
            expected=newest.pk,
        )
    return newest


def _refuse_unargued(reason: str, citations: Mapping[str, Sequence[Cited]]) -> None:
    if not reason.strip():
        raise BadInput("a correction needs a reason")
    if not any(citations.values()):
        raise BadInput("a correction needs a citation", expected="a changed line, an event or a result")


def inherited(newest: Verdict, material: GroupMaterial) -> GraderReply:
    """What a correction starts from: the newest reply over the rows as they are; of an invalid one, what can stand.

    A person must be able to mend a reply whose citations or ids are the grader's invention.
    """
    reply = only_ranked(read(newest.reply)[0], material)
    if newest.is_valid:
        return reply
    entries = {entry.id: entry for entry in reply.candidates}
    return GraderReply(tuple(_what_stands(entry, material) for entry in entries.values()), notes=reply.notes)


def _what_stands(entry: CandidateReply, material: GroupMaterial) -> CandidateReply:
    own = material.passing[entry.id]
    return replace(
        entry,
        scores={c: s for c, s in entry.scores.items() if c in CRITERIA and type(s) is int and LOWEST <= s <= HIGHEST},
        flags={flag: raised for flag, raised in entry.flags.items() if flag in FLAGS},
        citations=tuple(
            cited
            for cited in entry.citations
            if cited.about in CLAIMS and cited.citation.candidate == entry.id and own.resolve(cited.citation).resolves
        ),
    )


def corrected_reply(
    said: GraderReply,
    *,
    scores: Edits,
    flags: Edits,
    order: Order | None,
    citations: Mapping[str, Sequence[Cited]],
    reason: str,
) -> GraderReply:
    """The reply with the edits applied. `order` None means: by weighted score, as in every reply.

    An order is argued by the revisions that were there and by this correction's reason and citations.
    """
    entries = {entry.id: entry for entry in said.candidates}
    for id in (*scores, *flags, *citations):
        entries.setdefault(id, CandidateReply(id=id, scores={}))
    edited = []
    for entry in entries.values():
        mine = scores.get(entry.id, {})
        # One about the order that argues for none is still checked, or a correction could cite what is not there.
        cited = tuple(c for c in citations.get(entry.id, ()) if order is None or c.about != "revision")
        edited.append(
            replace(
                entry,
                scores={**entry.scores, **mine},
                reasons={**entry.reasons, **dict.fromkeys(mine, reason)},
                flags={**entry.flags, **flags.get(entry.id, {})},
                citations=(*entry.citations, *cited),
            )
        )
    if order is None:
        return replace(said, candidates=tuple(edited), order=None, revisions=())
    argued = {id: tuple(c.citation for c in cs if c.about == "revision") for id, cs in citations.items()}
    argued = {id: cs for id, cs in argued.items() if cs}
    own = Revision(tuple(argued), reason, tuple(c for cs in argued.values() for c in cs))
    return replace(
        said, candidates=tuple(edited), order=order, revisions=(*said.revisions, own) if argued else said.revisions
    )
