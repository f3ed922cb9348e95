"""The reviews of one held group as they stand, and whose turn it is: an order first, an answer, a wait, a decision."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

from grading import clock
from grading.models import Membership, Review, Role, RolloutGroup
from grading.review import agreement
from grading.states import AWAITING_REVIEW

State = Review.State


class Turn(StrEnum):
    """What one reviewer does next at a group."""

    BLIND = "blind"  # give an order before any verdict is shown
    REVIEW = "review"  # answer without seeing the others
    WAIT = "wait"  # one's own answer is in, others' are not
    AGREED = "agreed"  # all are in and say the same
    THIRD = "third"  # all are in and differ: this person decides
    OTHERS = "others"  # all are in and differ: somebody else decides
    DECIDE = "decide"  # nothing stands before a decision


DECIDING = frozenset({Turn.DECIDE, Turn.THIRD, Turn.AGREED})


@dataclass(frozen=True)
class Round:
    group: RolloutGroup
    rows: Sequence[Review]
    now: object

    @classmethod
    def of(cls, group: RolloutGroup) -> "Round":
        rows = Review.objects.filter(group=group).select_related("reviewer").order_by("submitted_at", "pk")
        return cls(group, list(rows), clock.now())

    @property
    def is_on(self) -> bool:
        """Whether the group still waits: what was decided hides nothing and asks nobody."""
        return self.group.state in AWAITING_REVIEW and self.group.held

    @property
    def waits_for_a_person(self) -> bool:
        """Also while somebody has it graded again: what was hidden before stays hidden meanwhile."""
        return self.group.is_open and self.group.held

    @property
    def is_shared(self) -> bool:
        return self.group.reviews_wanted > 1

    @property
    def asks_several(self) -> bool:
        """Whether a decision follows from independent reviews: who makes it adds none of their own."""
        return self.is_on and self.is_shared

    @property
    def submitted(self) -> list[Review]:
        return [row for row in self.rows if row.state == State.SUBMITTED and row.answer]

    @property
    def is_complete(self) -> bool:
        return len(self.submitted) >= self.group.reviews_wanted

    @property
    def differs(self) -> bool:
        """Whether any two answers have other tiers or another order."""
        said = [row.answer["ranking"] for row in self.submitted]
        return any(not agreement.is_same(one, other) for one, other in combinations(said, 2))

    def mine(self, user) -> Review | None:
        return next((row for row in self.rows if row.reviewer_id == user.pk), None)

    def seated(self, *, apart_from) -> list[Review]:
        """Whose seats are taken: answers that are in, and open ones whose time runs."""
        return [
            row
            for row in self.rows
            if row.reviewer_id != apart_from.pk
            and (row.state == State.SUBMITTED or (row.state == State.OPEN and row.until and row.until >= self.now))
        ]

    def has_seat_for(self, user) -> bool:
        return len(self.seated(apart_from=user)) < self.group.reviews_wanted

    def hides_verdict(self, user) -> bool:
        """Whether this reviewer must not see any verdict yet. The caller knows that they are one."""
        if not (self.waits_for_a_person and self.group.is_blind):
            return False
        own = self.mine(user)
        return not (own and own.blind) and not (self.is_shared and self.is_complete)

    def hides_others(self, user) -> bool:
        """Whether others' answers, corrections and comments stay hidden: until one's own is in, or all are."""
        if not self.waits_for_a_person or self.is_complete:
            return False
        own = self.mine(user)
        if self.is_shared:
            return not (own and own.state == State.SUBMITTED)
        return self.hides_verdict(user)

    def turn(self, user) -> Turn:
        if not self.is_on:
            return Turn.DECIDE
        if self.hides_verdict(user):
            return Turn.BLIND
        if not self.is_shared:
            return Turn.DECIDE
        own = self.mine(user)
        if not self.is_complete:
            return Turn.WAIT if own and own.state == State.SUBMITTED else Turn.REVIEW
        if not self.differs:
            return Turn.AGREED
        is_party = any(row.reviewer_id == user.pk for row in self.submitted)
        return Turn.OTHERS if is_party and self.has_a_third() else Turn.THIRD

    def has_a_third(self) -> bool:
        """Whether somebody of the team could decide who has no answer of their own in it."""
        party = [row.reviewer_id for row in self.submitted]
        mine = Membership.objects.filter(team=self.group.run.team_id, role__in=Role.at_least(Role.REVIEWER))
        return mine.exclude(user__in=party).exists()

    def why_not_decide(self, user) -> str:
        """Why this reviewer cannot decide yet; "" if they can."""
        turn = self.turn(user)
        count = f"{len(self.submitted)} of {self.group.reviews_wanted} independent reviews are in"
        return {
            Turn.BLIND: "The verdict is hidden: give your own order first.",
            Turn.REVIEW: f"{count}: give yours before anything is decided.",
            Turn.WAIT: f"Your review is in. {count}.",
            Turn.OTHERS: "The reviews differ: somebody who gave none decides.",
        }.get(turn, "")
