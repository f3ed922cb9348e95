"""Independent answers about one held group: seats, submitting, declining, and what becomes of agreement or not."""

from collections.abc import Mapping, Sequence

from django.db import transaction

from grading import clock, wake
from grading.errors import BadInput, Conflict, WrongState
from grading.grader import gather
from grading.grader.shape import Cited, GraderReply, Order
from grading.grader.wire import read
from grading.models import Decision, Review, ReviewClaim, RolloutGroup, Verdict
from grading.review import corrections, decisions
from grading.review.corrections import Argued, Edits
from grading.review.recount import only_ranked
from grading.review.rounds import DECIDING, Round, Turn
from grading.scoring.tiers import TIER_NAMES
from grading.states import AWAITING_REVIEW

State = Review.State
LONGEST_S = 12 * 3600.0


def locked(group: RolloutGroup) -> RolloutGroup:
    return RolloutGroup.objects.locked().select_related("run", "task", "rubric").get(pk=group.pk)


@transaction.atomic
def begin(group: RolloutGroup, *, user) -> Review:
    """Take one of the group's seats, or keep the one that is theirs. Call again to renew.

    Raises Conflict while all seats are taken by others, or when their answer is in; WrongState when nobody is asked.
    """
    group = locked(group)
    _refuse_closed(group)
    found = Round.of(group)
    own = found.mine(user)
    if own and own.state == State.SUBMITTED and found.is_shared:
        raise Conflict(f"your review of group {group.key} is in already: it stays as it is")
    if not found.has_seat_for(user) and found.is_shared:
        names = ", ".join(row.reviewer.name for row in found.seated(apart_from=user))
        raise Conflict(f"{names} have all {group.reviews_wanted} reviews of group {group.key}: another group needs you")
    return _open(group, own, user=user)


def _open(group: RolloutGroup, own: Review | None, *, user) -> Review:
    now = clock.now()
    if own is None:
        return Review.objects.create(group=group, reviewer=user, started_at=now, until=now + ReviewClaim.LASTS)
    if own.state != State.SUBMITTED:
        own.state, own.until, own.started_at = State.OPEN, now + ReviewClaim.LASTS, own.started_at or now
        own.save(update_fields=["state", "until", "started_at"])
    return own


def _refuse_closed(group: RolloutGroup) -> None:
    if group.state not in AWAITING_REVIEW:
        raise WrongState(f"group {group.key} is {group.state}: it waits for nobody's review")


@transaction.atomic
def leave(group: RolloutGroup, *, user) -> None:
    """Give the seat back; what was answered stays."""
    Review.objects.filter(group=group, reviewer=user, state=State.OPEN).update(until=None)


@transaction.atomic
def decline(group: RolloutGroup, *, user) -> None:
    """This person will not answer: seat and claim are free, and the queue does not offer them the group again."""
    group = locked(group)
    _refuse_closed(group)
    row, _ = Review.objects.get_or_create(group=group, reviewer=user)
    if row.state == State.SUBMITTED:
        raise Conflict(f"your review of group {group.key} is in already: it stays as it is")
    row.state, row.until = State.DECLINED, None
    row.save(update_fields=["state", "until"])
    ReviewClaim.release(group, user)
    wake.pages(group.run_id)


@transaction.atomic
def submit(
    group: RolloutGroup,
    *,
    parent: int,
    user,
    reason: str,
    scores: Edits,
    flags: Edits,
    order: Order | None = None,
    citations: Mapping[str, Sequence[Cited]] | None = None,
    is_right: bool = False,
    attention_s: float | None = None,
) -> Review:
    """Hand in one's own answer: the verdict with these edits, or, with `is_right`, as it stands.

    Raises Overtaken when a newer verdict exists, Conflict when the answer is in already, NotValid where it would make
    no valid verdict, BadInput where nothing was touched and nobody said that it is right.
    """
    group = locked(group)
    turn = Round.of(group).turn(user)
    if turn in (Turn.WAIT, Turn.OTHERS):
        raise Conflict(f"your review of group {group.key} is in already: it stays as it is")
    if turn != Turn.REVIEW:
        raise WrongState(f"group {group.key} does not wait for your review: it is your turn to {turn}")
    row = begin(group, user=user)
    newest = corrections.newest_seen(group, parent)
    is_changed = bool(scores or flags or order)
    if is_changed:
        edits = {"scores": scores, "flags": flags, "order": order, "citations": citations or {}}
        made = corrections.argued(group, newest, reason=reason, **edits)
    else:
        made = _found_right(group, newest, is_right=is_right)
    row.answer = {"reply": made.reply.to_json(), "ranking": ranking_of(made), "is_changed": is_changed}
    row.seen_verdict = row.seen_verdict or newest
    row.notes, row.attention_s = reason, bounded(attention_s, row)
    row.state, row.submitted_at, row.until = State.SUBMITTED, clock.now(), None
    row.save()
    _note_progress(group, user)
    return row


def _found_right(group: RolloutGroup, newest: Verdict, *, is_right: bool) -> Argued:
    """The verdict as it stands, where somebody said that it is right."""
    if not is_right:
        raise BadInput(
            "nothing is changed, and an untouched ranking is no answer", expected="an edit, or Already right"
        )
    material = gather.material_of(group)
    return corrections.checked_reply(corrections.inherited(newest, material), material, newest)


def _note_progress(group: RolloutGroup, user) -> None:
    found = Round.of(group)
    said = f"review {len(found.submitted)} of {group.reviews_wanted} is in"
    if found.is_complete:
        said += ": they differ, another person decides" if found.differs else ": they agree"
    group.note(group.state, by=user.username, reason=said)
    if found.is_complete and found.differs:
        RolloutGroup.objects.filter(pk=group.pk).update(uncertainty=1.0)
    wake.pages(group.run_id)


def ranking_of(made: Argued) -> dict:
    """Tier name -> tied groups of external ids, best first."""
    return {name: [list(tied) for tied in made.checked.grades.ranking[tier]] for tier, name in TIER_NAMES.items()}


def bounded(attention_s: float | None, row: Review) -> float | None:
    """Seconds as a browser counted them, never more than the time that has passed."""
    if attention_s is None or not 0 <= attention_s < LONGEST_S:
        return row.attention_s
    passed = (clock.now() - row.started_at).total_seconds() if row.started_at else LONGEST_S
    return min(attention_s, passed)


@transaction.atomic
def count(group: RolloutGroup, *, review: int, user) -> Decision:
    """Let a submitted review count: where all agree anybody may say so, where they differ a person who gave none.

    The answer becomes a correction, unless it found the newest verdict right; the decision is this person's.
    """
    group = locked(group)
    found = Round.of(group)
    turn = found.turn(user)
    if not found.asks_several or turn not in DECIDING:
        raise WrongState(found.why_not_decide(user) or f"group {group.key} has no independent reviews to decide on")
    ReviewClaim.refuse_others(group, user)
    chosen = next((row for row in found.submitted if row.pk == review), None)
    if chosen is None:
        raise BadInput("no such review", got=review, expected="one that is in, of this group")
    newest = decisions.newest_verdict(group)
    verdict = newest if _finds_right(chosen, newest) else _as_correction(group, chosen, newest, user=user)
    Review.objects.filter(pk=chosen.pk).update(verdict=verdict)
    return decisions.approve_locked(group, seen_verdict=verdict.pk, user=user)


def _finds_right(chosen: Review, newest: Verdict) -> bool:
    return not chosen.answer["is_changed"] and chosen.seen_verdict_id == newest.pk


def _as_correction(group: RolloutGroup, chosen: Review, newest: Verdict, *, user) -> Verdict:
    """The answer over the rows as they are now. Raises NotValid where these changed too much for it."""
    material = gather.material_of(group)
    reply: GraderReply = only_ranked(read(chosen.answer["reply"])[0], material)
    made = corrections.checked_reply(reply, material, newest)
    reason = f"the review of {chosen.reviewer.name}: {chosen.notes or 'the ranking is right as it was'}"
    verdict = corrections.store(group, made, parent=newest, user=user, reason=reason)
    group.note(group.state, by=user.username, reason=f"correction: {reason}", details={"verdict": verdict.pk})
    return verdict


def refuse_early(group: RolloutGroup, user) -> Round:
    """Raise WrongState while independent reviews or an order of one's own come before a decision."""
    found = Round.of(group)
    if why := found.why_not_decide(user):
        raise WrongState(f"group {group.key} cannot be decided yet: {why}")
    return found


@transaction.atomic
def approve(group: RolloutGroup, *, seen_verdict: int, user, attention_s: float | None = None) -> Decision:
    """`decisions.approve` by somebody whose turn it is; their review of the group is in with it."""
    group = locked(group)
    found = refuse_early(group, user)
    is_alone = not found.asks_several
    decision = decisions.approve_locked(group, seen_verdict=seen_verdict, user=user)
    if is_alone:
        _answered(found, decision.verdict, user=user, attention_s=attention_s, is_done=True)
    return decision


@transaction.atomic
def correct(group: RolloutGroup, *, user, attention_s: float | None = None, **edits) -> Verdict:
    """`corrections.correct` by somebody whose turn it is; kept as their answer, which is in once it is decided.

    Not where several answered alone: who settles these has read them, so theirs is a verdict, no review to measure by.
    """
    group = locked(group)
    ReviewClaim.refuse_others(group, user)
    found = refuse_early(group, user)
    is_alone = not found.asks_several
    verdict = corrections.correct(group, user=user, **edits)
    if is_alone:
        _answered(found, verdict, user=user, attention_s=attention_s, is_done=group.state not in AWAITING_REVIEW)
    return verdict


@transaction.atomic
def fall_back(group: RolloutGroup, *, user, reason: str, attention_s: float | None = None) -> Decision:
    group = locked(group)
    found = refuse_early(group, user)
    is_alone = not found.asks_several
    decision = decisions.fall_back(group, user=user, reason=reason)
    if is_alone:
        _answered(found, None, user=user, attention_s=attention_s, is_done=True)
    return decision


def _answered(found: Round, verdict: Verdict | None, *, user, attention_s, is_done: bool) -> None:
    """Keep what a person who decides alone said; answers of others that waited for a decision are in with it."""
    row = found.mine(user) or Review(group=found.group, reviewer=user)
    if verdict is not None:
        own = verdict.author_id == user.pk and verdict.parent_id is not None
        row.seen_verdict_id = row.seen_verdict_id or (verdict.parent_id if own else verdict.pk)
        row.answer, row.verdict = {"ranking": verdict.ranking, "is_changed": own}, verdict
    row.attention_s = bounded(attention_s, row)
    now = clock.now()
    if is_done and row.state != State.SUBMITTED:
        row.state, row.submitted_at, row.until = State.SUBMITTED, now, None
    row.save()
    if is_done and any(other.state == State.OPEN and other.answer for other in found.rows):
        waiting = Review.objects.filter(group=found.group, state=State.OPEN, answer__isnull=False)
        waiting.update(state=State.SUBMITTED, submitted_at=now, until=None)
