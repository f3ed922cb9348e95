"""One person at one group: its rows, read once, and what this person may see and do."""

import hashlib
from dataclasses import dataclass
from functools import cached_property

from grading import clock
from grading.grader import gather
from grading.models import (
    Decision,
    Evidence,
    Review,
    ReviewClaim,
    Role,
    RolloutGroup,
    Trajectory,
    Verdict,
    VerdictCandidate,
)
from grading.review import decisions, drafts
from grading.review.refusal_words import with_letters
from grading.review.rounds import DECIDING, Round, Turn
from grading.states import AWAITING_REVIEW, ENDED, DecisionKind, GroupState, Method, Outcome, Policy, Purpose

OUTCOME_WORDS = {Outcome.PASSED: "passed", Outcome.FAILED: "failed", Outcome.INFRA_INVALID: "infra-invalid"}
FAILING = ("failed", "error")


@dataclass(frozen=True)
class Held:
    """A claim as pages show it."""

    name: str
    is_you: bool
    until: object


@dataclass(frozen=True)
class Clock:
    left_s: float
    total_s: float | None
    words: str = ""


class Sitting:
    """Everything is read on first use, so that a part of the page costs only its own queries."""

    def __init__(self, group: RolloutGroup, user):
        self.group, self.user = group, user

    @cached_property
    def is_reviewer(self) -> bool:
        return self.user.may(Role.REVIEWER, self.group.run.team_id)

    @cached_property
    def round(self) -> Round:
        return Round.of(self.group)

    @cached_property
    def is_hidden(self) -> bool:
        """Whether no verdict may reach this person's page yet."""
        return self.is_reviewer and self.round.hides_verdict(self.user)

    @cached_property
    def hides_others(self) -> bool:
        """Whether what other people answered or said must not reach it yet."""
        return self.is_reviewer and self.round.hides_others(self.user)

    @cached_property
    def turn(self) -> Turn:
        return self.round.turn(self.user) if self.is_reviewer else Turn.DECIDE

    @property
    def is_revealed(self) -> bool:
        """Real ids and model names are shown once nothing hangs on them."""
        return self.group.state in ENDED

    @cached_property
    def trajectories(self) -> list[Trajectory]:
        """Those with a letter, in an order drawn for this person: nobody inherits another's position bias."""
        rows = self.group.trajectories.exclude(letter="")
        return sorted(rows, key=lambda t: self._draw(t.letter))

    def _draw(self, letter: str) -> bytes:
        return hashlib.sha256(f"{self.user.pk}:{self.group.pk}:{letter}".encode()).digest()

    @cached_property
    def by_letter(self) -> dict[str, Trajectory]:
        return {t.letter: t for t in self.trajectories}

    @cached_property
    def letter_of(self) -> dict[str, str]:
        return {t.external_id: t.letter for t in self.trajectories}

    @cached_property
    def by_pk(self) -> dict[int, Trajectory]:
        return {t.pk: t for t in self.trajectories}

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """The training verdicts in their order; their number is 1 and up. None while they are hidden."""
        if self.is_hidden:
            return []
        rows = self.group.verdicts.filter(purpose=Purpose.TRAINING).select_related("author", "rubric").order_by("pk")
        for number, verdict in enumerate(rows, 1):
            verdict.number = number
        return list(rows)

    @cached_property
    def verdict(self) -> Verdict | None:
        return self.verdicts[-1] if self.verdicts else None

    @cached_property
    def placements(self) -> list[VerdictCandidate]:
        return list(self.verdict.candidates.all()) if self.verdict else []

    @cached_property
    def standing(self) -> drafts.Standing | None:
        if self.verdict is None:
            return None
        return drafts.stand(
            self.group, verdict=self.verdict, trajectories=self.trajectories, placements=self.placements
        )

    @cached_property
    def evidence(self) -> list[Evidence]:
        """Of all training verdicts, the newest verdict's last."""
        rows = Evidence.objects.filter(verdict__in=[v.pk for v in self.verdicts])
        return list(rows.order_by("verdict_id", "number"))

    @cached_property
    def checks(self) -> dict[str, list[str]]:
        """Patch -> names of the checks that were run on it, which are results too."""
        return gather.checks_of(self.group)

    @cached_property
    def decision(self) -> Decision | None:
        return self.group.decisions.order_by("-version").first()

    @cached_property
    def now(self):
        return clock.now()

    @cached_property
    def claim(self) -> Held | None:
        rows = ReviewClaim.objects.filter(group=self.group, until__gte=self.now).select_related("reviewer")
        claim = rows.first()
        return claim and Held(claim.reviewer.name, claim.reviewer_id == self.user.pk, claim.until)

    @cached_property
    def review(self) -> Review | None:
        return self.round.mine(self.user)

    @property
    def may_fall_back(self) -> bool:
        """Whether letting the group fall back would change something."""
        falls_back = self.decision and self.decision.kind == DecisionKind.FALLBACK
        return not self.why_not_decide and not self.group.end_reason and not falls_back

    @property
    def may_claim(self) -> bool:
        if not (self.is_reviewer and self.group.state in AWAITING_REVIEW):
            return False
        if self.turn == Turn.REVIEW or (self.turn == Turn.BLIND and self.round.is_shared):
            own = self.review
            is_seated = own and own.state == Review.State.OPEN and own.until and own.until >= self.now
            return not is_seated and self.round.has_seat_for(self.user)
        return not self.claim and self.turn in (*DECIDING, Turn.BLIND)

    @property
    def may_grade_again(self) -> bool:
        """`regrade.ask` holds the rule."""
        group = self.group
        is_graded = group.eligible and group.method != Method.OUTCOME and not group.end_reason
        return self.is_reviewer and is_graded and group.state in AWAITING_REVIEW | ENDED

    @property
    def deadline(self) -> Clock | None:
        """What counts then is the grader's verdict: a correction that nobody approved decides nothing."""
        if self.is_hidden:
            return clock_of(self.group, self.now, is_valid=self.group.state == GroupState.GRADED)
        graders = [verdict for verdict in self.verdicts if verdict.grader != decisions.PERSON]
        return clock_of(self.group, self.now, is_valid=bool(graders and graders[-1].is_valid))

    @cached_property
    def _why_not_act(self) -> str:
        if not self.is_reviewer:
            return "You read here as a viewer. Deciding needs the role reviewer."
        if self.group.state not in AWAITING_REVIEW | ENDED:
            return f"The group is {self.group.state}: there is nothing to decide yet."
        if self.claim and not self.claim.is_you:
            return f"{self.claim.name} holds this group until {self.claim.until:%H:%M}."
        return ""

    @property
    def may_find(self) -> bool:
        """Whether this person may confirm a leak or a broken task: before any order or review too."""
        return not self._why_not_act

    @cached_property
    def why_not_decide(self) -> str:
        """Why this person cannot decide here now; "" if they can."""
        return self._why_not_act or self.round.why_not_decide(self.user)

    @property
    def why_not_approve(self) -> str:
        """Words for a disabled button; `decisions.approve` holds the rule."""
        if self.verdict is None:
            return "There is no verdict to approve."
        if not self.verdict.is_valid:
            return "The verdict is not valid: correct it, or let the group fall back."
        if self.group.end_reason:
            return "The group does not train: no verdict can count."
        if self.group.run.paused:
            return "The run is paused: outcome advantages go out until it is resumed."
        if self.group.policy == Policy.SHADOW:
            return "The run is in shadow: outcome advantages go out."
        if self.decision and self.decision.verdict_id == self.verdict.pk:
            return f"This verdict counts already, decided by {self.decision.by}."
        return ""

    def words_of(self, trajectory: Trajectory) -> str:
        """What became of a rollout that is not ranked."""
        if trajectory.integrity:
            return f"confirmed {trajectory.integrity}"
        if trajectory.is_late:
            return f"{OUTCOME_WORDS[trajectory.outcome]}, came late"
        if self.group.run.mask_truncated and trajectory.is_truncated:
            return "truncated, masked"
        words = OUTCOME_WORDS[trajectory.outcome]
        if trajectory.outcome != Outcome.FAILED:
            return words
        failing = sum(test.get("status") in FAILING for test in trajectory.tests)
        if failing:
            return f"{words}, {failing} test{'s' * (failing > 1)} fail{'s' * (failing == 1)}"
        return words if trajectory.patch else f"{words}, no patch submitted"

    def lettered(self, text: str) -> str:
        """Text of ours that may name rollouts, by their letters until the group is decided."""
        return text if self.is_revealed else with_letters(text, self.letter_of)


def clock_of(group: RolloutGroup, now, *, is_valid: bool) -> Clock | None:
    """The time left, and what happens then."""
    if not group.is_open or group.deadline is None:
        return None
    phase = group.graded_at if group.state in AWAITING_REVIEW else group.completed_at
    total = (group.deadline - phase).total_seconds() if phase and group.deadline > phase else None
    counts = is_valid and not group.run.paused and group.policy != Policy.SHADOW  # as `decisions.chosen_by_policy`
    words = "then the verdict counts" if counts else "then outcome advantages go out"
    if group.state == GroupState.COLLECTING:
        words = "then it counts as it is"
    return Clock(max(0.0, (group.deadline - now).total_seconds()), total, words)
