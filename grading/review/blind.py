"""An order first, then the verdict: what a reviewer says before they have seen any, kept as it was given."""

from collections.abc import Mapping, Sequence

from django.db import transaction

from grading import clock, wake
from grading.errors import BadInput, Conflict, NotAllowed, WrongState
from grading.models import Review, ReviewClaim, Role, RolloutGroup, Run
from grading.review import agreement, decisions, reviews
from grading.review.drafts import is_ranked
from grading.review.rounds import Round, Turn
from grading.states import OPEN


def refuse_hidden(group: RolloutGroup, user) -> None:
    """Raise NotAllowed where a page would show this reviewer a verdict before their own order is in."""
    if not group.is_blind or not group.is_open:
        return  # most groups, without a query
    if user.may(Role.REVIEWER, group.run.team_id) and Round.of(group).hides_verdict(user):
        raise NotAllowed(f"the verdict on group {group.key} is hidden until you have given your own order")


@transaction.atomic
def give_order(
    group: RolloutGroup,
    *,
    user,
    order: Sequence[Sequence[str]],
    flags: Mapping[str, Sequence[str]] | None = None,
    tiers: Mapping[str, int] | None = None,
    notes: str = "",
    attention_s: float | None = None,
) -> Review:
    """Store the order of this person, by external ids; from here on they see the verdict.

    Raises Conflict where it is in already, BadInput unless every candidate is placed exactly once.
    """
    group = reviews.locked(group)
    found = Round.of(group)
    if (own := found.mine(user)) and own.blind:
        raise Conflict(f"your order of group {group.key} is in already: it stays as it is")
    if found.turn(user) != Turn.BLIND:
        raise WrongState(f"group {group.key} asks for no order before its verdict is shown")
    ReviewClaim.refuse_others(group, user)
    placed = [id for tied in order for id in tied]
    ranked = {t.external_id for t in group.trajectories.counted() if is_ranked(t, group)}
    if len(placed) != len(set(placed)) or set(placed) != ranked:
        raise BadInput(
            "an order places every passing candidate once", got=f"{len(placed)} placed", expected=f"{len(ranked)}"
        )
    row = reviews.begin(group, user=user)
    row.blind = {
        "order": [list(tied) for tied in order],
        "flags": {id: list(raised) for id, raised in (flags or {}).items()},
        "tiers": dict(tiers or {}),
        "notes": notes,
    }
    row.is_blind, row.ranked_at, row.seen_verdict = True, clock.now(), decisions.newest_verdict(group)
    row.attention_s = reviews.bounded(attention_s, row)
    row.save()
    group.note(group.state, by=user.username, reason="gave an order before the verdict was shown")
    wake.pages(group.run_id)
    return row


def anchoring(run: Run) -> list[dict]:
    """How near people's orders stand to the verdict they saw: given blind, after it was shown, shown from the start.

    Means over reviews; the n beside each says in how many it has a value.
    """
    rows = Review.objects.filter(group__run=run, seen_verdict__is_valid=True)
    rows = rows.exclude(group__state__in=OPEN)  # what others must not know yet is in no mean
    found = {"blind": [], "then": [], "shown": []}
    for is_blind, blind, answer, ranking in rows.values_list("is_blind", "blind", "answer", "seen_verdict__ranking"):
        grader = agreement.flat(ranking)
        if blind:
            found["blind"].append(agreement.pairs(blind["order"], grader))
        if answer:
            found["then" if is_blind else "shown"].append(agreement.pairs(agreement.flat(answer["ranking"]), grader))
    words = {
        "blind": "before the verdict was shown",
        "then": "the same people, after it was shown",
        "shown": "shown from the start",
    }
    return [{"words": words[kind], "reviews": len(pairs), **_means(pairs)} for kind, pairs in found.items()]


def _means(pairs: Sequence[agreement.Pairs]) -> dict:
    taus = [p.tau_b for p in pairs if p.tau_b is not None]
    shares = [p.accuracy for p in pairs if p.accuracy is not None]
    return {
        "tau_b": sum(taus) / len(taus) if taus else None,
        "tau_n": len(taus),
        "accuracy": sum(shares) / len(shares) if shares else None,
        "accuracy_n": len(shares),
    }
