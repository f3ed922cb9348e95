"""A person's part of an audit, and its end: the next group, their verdict, another try of the grader, the reveal."""

from collections.abc import Sequence

from django.db import transaction

from grading import clock, wake
from grading.audit import job
from grading.audit.judged import Said, judge
from grading.errors import BadInput, Conflict, LeaseLost, WrongState
from grading.grader import gather
from grading.models import Audit, AuditGroup, AuditVerdict
from grading.models.audits import PERSON
from grading.storable import storable

LEASE_S = 45 * 60  # a person at one group
State = AuditGroup.State


def counts(audit: Audit) -> dict[str, int]:
    """State -> how many groups."""
    states = list(audit.groups.values_list("state", flat=True))
    return {state: states.count(state) for state in State.values} | {"all": len(states)}


def is_finished(audit: Audit) -> bool:
    return not audit.groups.exclude(state__in=(State.DONE, State.FAILED)).exists()


def next_group(audit: Audit, user) -> AuditGroup | None:
    """The group this person is at, else the next free one, claimed. None where nothing is left for them."""
    _refuse_foreign(audit)
    own = audit.groups.filter(state=State.GRADING, claimed_by=user.username, claimed_until__gte=clock.now()).first()
    if own:
        return own
    for group in audit.groups.all() & AuditGroup.objects.free(clock.now()):
        if group.claim(by=user.username, lease_s=LEASE_S):
            return group
    return None


def release(group: AuditGroup, *, user) -> None:
    """Give a group back that this person does not want to judge."""
    mine = AuditGroup.objects.filter(pk=group.pk, state=State.GRADING, claimed_by=user.username)
    mine.update(state=State.WAITING, claimed_until=None, claimed_by="")


@transaction.atomic
def give(group: AuditGroup, said: Sequence[Said], *, user, notes: str = "") -> AuditVerdict:
    """Store a person's verdict of all candidates.

    Raises BadInput where it breaks a rule, LeaseLost where somebody else has the group, WrongState after the reveal.
    """
    group = AuditGroup.objects.select_for_update().select_related("audit__rubric").get(pk=group.pk)
    _refuse_foreign(group.audit)
    if group.audit.is_revealed:
        raise WrongState(f"{group.audit} is revealed: who made what is known, so nothing is judged any more")
    if group.state != State.GRADING or group.claimed_by != user.username:
        raise LeaseLost(f"{group} is not yours any more: somebody else judges it, or has")
    letters = {one.letter: one.trajectory for one in group.candidates.select_related("trajectory")}
    if {one.letter for one in said} != letters.keys() or len(said) != len(letters):
        raise BadInput("a verdict scores every candidate once", got=len(said), expected=", ".join(letters))
    made = judge(said, group.audit.rubric.rubric, twins=twins_of(letters), notes=notes)
    if made.problems:
        raise BadInput(" ".join(made.problems))
    verdict = AuditVerdict.objects.create(
        group=group,
        grader=PERSON,
        author=user,
        is_valid=True,
        reply=storable(made.reply.to_json()),
        ranking=job.ranking_json(made.grades.ranking),
    )
    job.close(group, State.DONE)
    return verdict


def twins_of(letters) -> list[frozenset[str]]:
    """Letters that share a patch, byte for byte."""
    by_patch: dict[bytes, list[str]] = {}
    for letter, trajectory in letters.items():
        by_patch.setdefault(gather.patch_of(trajectory)[0], []).append(letter)
    return [frozenset(same) for same in by_patch.values() if len(same) > 1]


@transaction.atomic
def try_again(audit: Audit) -> int:
    """Let the grader look once more at groups of which it gave no valid verdict. Returns how many."""
    if audit.is_revealed:
        raise WrongState(f"{audit} is revealed: nothing is judged any more")
    many = audit.groups.filter(state=State.FAILED).update(state=State.WAITING, attempts=0)
    wake.grading()
    return many


@transaction.atomic
def reveal(audit: Audit, *, by: str, reason: str = "", may_early: bool = False) -> Audit:
    """Say who made what. Before every group is judged only with a reason, which stays beside the result.

    Raises WrongState where it is not finished and this person may not end it early; Conflict where it is revealed.
    """
    audit = Audit.objects.select_for_update().get(pk=audit.pk)
    if audit.is_revealed:
        raise Conflict(f"{audit} was revealed by {audit.revealed_by} already")
    finished = is_finished(audit)
    if not finished and not may_early:
        raise WrongState(f"{audit} is not finished: an admin may end it early", got=str(counts(audit)))
    if not finished and not reason.strip():
        raise BadInput("an audit that is not finished is revealed with a reason", expected="a reason")
    audit.revealed_at, audit.revealed_by = clock.now(), by
    audit.reveal_reason = "" if finished else reason.strip()[:200]
    audit.save(update_fields=["revealed_at", "revealed_by", "reveal_reason"])
    return audit


def _refuse_foreign(audit: Audit) -> None:
    if not audit.by_person:
        raise WrongState(f"{audit} is judged by {audit.grader}, not by people")
