"""Groups that wait for a person: who sees which first, who holds which.

Order: influence x uncertainty (see `placing`), then the nearest deadline. Nobody is offered a group that they declined
or have answered, or whose reviews others already have.
"""

from dataclasses import dataclass

from django.db import transaction
from django.db.models import Count, F, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce, Least

from grading import clock, wake
from grading.errors import Conflict, WrongState
from grading.models import Review, ReviewClaim, Role, RolloutGroup, Trajectory
from grading.review import placing, reviews
from grading.review.placing import SIGNAL_HOLD
from grading.states import AWAITING_REVIEW, GroupState

State = Review.State
TRIED = 50  # others may claim while we look


@dataclass(frozen=True)
class Waiting:
    """One held group as a list shows it."""

    group: RolloutGroup
    valid: int
    passed: int
    claim: ReviewClaim | None = None
    reviews: tuple[Review, ...] = ()

    @property
    def priority(self) -> float:
        return self.group.influence * self.group.uncertainty

    @property
    def is_strong(self) -> bool:
        return self.group.hold_reason == SIGNAL_HOLD

    @property
    def is_valid(self) -> bool:
        return self.group.state == GroupState.GRADED


def with_counts(groups):
    """Annotate how many rollouts count and how many of them pass."""
    return groups.annotate(**placing.counts("trajectories__"))


def ordered(groups):
    """The held groups among `groups`, first what changes most; those without a stored place get theirs first.

    One that is held after we looked has no place yet: it comes with its own hint, a moment later.
    """
    held = groups.awaiting_review()
    if held.filter(influence=None).exists():
        placing.place(held.filter(influence=None))
    by = Coalesce(Least("review_by", "wanted_by"), "review_by", "wanted_by")
    first = held.exclude(influence=None).annotate(priority=F("influence") * F("uncertainty"), by=by)
    return first.order_by("-priority", F("by").asc(nulls_last=True), "pk")


def rows_of(groups: list[RolloutGroup]) -> list[Waiting]:
    """What a list says about these groups, in a constant number of queries."""
    pks = [group.pk for group in groups]
    found = Trajectory.objects.filter(group__in=pks).order_by().values("group_id").annotate(**placing.counts())
    counts = {group: (valid, passed) for group, valid, passed in found.values_list("group_id", "valid", "passed")}
    claims = ReviewClaim.objects.filter(group__in=pks, until__gte=clock.now()).select_related("reviewer")
    by_group = {claim.group_id: claim for claim in claims}
    answers: dict[int, list[Review]] = {}
    for row in Review.objects.filter(group__in=pks).select_related("reviewer").order_by("submitted_at", "pk"):
        answers.setdefault(row.group_id, []).append(row)
    return [Waiting(g, *counts.get(g.pk, (0, 0)), by_group.get(g.pk), tuple(answers.get(g.pk, ()))) for g in groups]


def waiting(groups) -> list[Waiting]:
    """The held groups among `groups` in their order."""
    return rows_of(list(ordered(groups)))


def open_to(groups, user):
    """Those in which this person has something to do and nobody is in the way."""
    now = clock.now()
    done = Review.objects.filter(reviewer=user, state__in=(State.SUBMITTED, State.DECLINED))
    held = ReviewClaim.objects.filter(until__gte=now).exclude(reviewer=user)
    mine = Q(state=State.SUBMITTED) | Q(state=State.OPEN, until__gte=now)
    rows = Review.objects.filter(group=OuterRef("pk")).exclude(reviewer=user).order_by().values("group")
    seated = rows.filter(mine).annotate(n=Count("pk")).values("n")
    answered = rows.filter(state=State.SUBMITTED).annotate(n=Count("pk")).values("n")
    found = groups.exclude(pk__in=done.values("group")).exclude(pk__in=held.values("group"))
    found = found.annotate(seated=Coalesce(Subquery(seated), 0), answered=Coalesce(Subquery(answered), 0))
    shared = Q(seated__lt=F("reviews_wanted")) | Q(answered__gte=F("reviews_wanted"))
    return found.filter(Q(reviews_wanted=1) | shared)


@transaction.atomic
def claim(group: RolloutGroup, *, user) -> None:
    """Hold a group for a while, alone or on one of its seats. Raises Conflict, WrongState."""
    if group.state not in AWAITING_REVIEW:
        raise WrongState(f"group {group.key} is {group.state}: only a group that waits for a person is claimed")
    found = reviews.Round.of(group)
    if found.is_shared and not found.is_complete:
        reviews.begin(group, user=user)
    else:
        if not ReviewClaim.take(group, user):
            ReviewClaim.refuse_others(group, user)
            raise Conflict(f"somebody else was faster to claim group {group.key}")
        if not found.is_shared:
            reviews.begin(group, user=user)
    wake.pages(group.run_id)


@transaction.atomic
def release(group: RolloutGroup, *, user) -> None:
    ReviewClaim.release(group, user)
    reviews.leave(group, user=user)
    wake.pages(group.run_id)


def claim_first(user) -> RolloutGroup | None:
    """Claim the first group that nobody holds; None if there is none."""
    for group in list(ordered(open_to(RolloutGroup.objects.visible_to(user, Role.REVIEWER), user))[:TRIED]):
        try:
            claim(group, user=user)
        except (Conflict, WrongState):  # taken or decided while we looked: the next one
            continue
        return group
    return None


def after(user, pk: int | None) -> RolloutGroup | None:
    """The next group of the queue behind `pk` that is open to this person; from the top when `pk` is the last."""
    visible = RolloutGroup.objects.visible_to(user)
    every = list(ordered(visible).values_list("pk", flat=True))
    free = set(open_to(visible.awaiting_review(), user).values_list("pk", flat=True))
    at = every.index(pk) if pk in every else -1
    rest = [one for one in (*every[at + 1 :], *every[: max(at, 0)]) if one in free and one != pk]
    return visible.filter(pk=rest[0]).first() if rest else None


def count_for(user) -> int:
    """How many groups wait for a person, as the top of each page says."""
    return RolloutGroup.objects.visible_to(user).awaiting_review().count()
