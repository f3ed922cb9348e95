"""Groups that wait for a person: who sees which first, who holds which.

Order: influence x uncertainty, then the nearest deadline. Influence is the credit the verdict moves between the passes:
(1 - pass rate) x sum |f_i / mean(f) - 1|, and (1 - pass rate) x passes without a valid verdict. Uncertainty, 0.1 to 1,
is the share of candidates within 0.25 of W of another, not tied; 1 without a valid verdict or with a strong signal.
"""

from dataclasses import dataclass, field

from django.db import transaction
from django.db.models import Count, FloatField, Q
from django.db.models.functions import Cast

from grading import clock, wake
from grading.errors import Conflict, WrongState
from grading.models import ReviewClaim, Role, RolloutGroup, Trajectory, Verdict, VerdictCandidate
from grading.review import decisions
from grading.states import AWAITING_REVIEW, Outcome, Purpose

CLOSE = 0.25
PLACES = 9  # of a stored W
LEAST_UNCERTAINTY = 0.1
PLACING = ("key", "run_id", "state", "hold_reason", "collect_by", "grade_by", "review_by", "wanted_by")


def counted(path: str = "") -> Q:
    """Whether a rollout counts, for queries over rollouts (`path` "") or over what has them."""
    counts = Q(**{f"{path}is_late": False}) & ~Q(**{f"{path}outcome": Outcome.INFRA_INVALID})
    return counts & (Q(run__mask_truncated=False) | Q(**{f"{path}is_truncated": False}))


@dataclass(frozen=True)
class Waiting:
    """One group of the queue with what its place follows from; of the group only PLACING is read yet."""

    group: RolloutGroup
    valid: int
    passed: int
    influence: float
    uncertainty: float
    is_strong: bool
    is_valid: bool
    claim: ReviewClaim | None = field(default=None)

    @property
    def priority(self) -> float:
        return self.influence * self.uncertainty


def with_counts(groups):
    """Annotate how many rollouts count and how many of them pass."""
    return groups.annotate(**_counts("trajectories__"))


def _counts(path: str = "") -> dict[str, Count]:
    passes = Q(**{f"{path}outcome": Outcome.PASSED, f"{path}integrity": ""})
    rows = f"{path}pk"
    return {
        "valid": Count(rows, filter=counted(path)),
        "passed": Count(rows, filter=counted(path) & passes),
    }


def waiting(groups) -> list[Waiting]:
    """The held groups among `groups`, first what changes most.

    A constant number of queries, of few columns: a whole step may wait. A page reads its own rows in full.
    """
    held = groups.awaiting_review()
    rows = Trajectory.objects.filter(group__in=held.values("pk")).order_by().values("group_id").annotate(**_counts())
    counts = {group: (valid, passed) for group, valid, passed in rows.values_list("group_id", "valid", "passed")}
    verdicts = _newest_verdicts(held)
    placed = _placements(held, {pk for pk, is_valid in verdicts.values() if is_valid})
    claims = ReviewClaim.objects.filter(group__in=held.values("pk"), until__gte=clock.now()).select_related("reviewer")
    by_group = {claim.group_id: claim for claim in claims}
    found = [
        _waiting(group, counts.get(group.pk, (0, 0)), verdicts.get(group.pk), placed, by_group.get(group.pk))
        for group in held.only(*PLACING)
    ]
    return sorted(found, key=lambda w: (-w.priority, w.group.deadline is None, w.group.deadline, w.group.pk))


def _newest_verdicts(held) -> dict[int, tuple[int, bool]]:
    """Group -> (verdict, is it valid)."""
    rows = Verdict.objects.filter(group__in=held.values("pk"), purpose=Purpose.TRAINING).order_by("pk")
    return {group: (pk, is_valid) for group, pk, is_valid in rows.values_list("group_id", "pk", "is_valid")}


def _placements(held, verdicts: set[int]) -> dict[int, list[tuple]]:
    """Verdict -> (tier, rank, W, factor) of each candidate."""
    placed: dict[int, list[tuple]] = {pk: [] for pk in verdicts}
    rows = VerdictCandidate.objects.filter(verdict__group__in=held.values("pk"), verdict__purpose=Purpose.TRAINING)
    score = Cast("weighted_score", FloatField())  # as the database keeps it: thousands of decimals cost a page its time
    for verdict, *row in rows.order_by().values_list("verdict_id", "tier", "rank", score, "factor"):
        if verdict in placed:
            placed[verdict].append(tuple(row))
    return placed


def _waiting(group: RolloutGroup, counts: tuple[int, int], verdict, placed, claim: ReviewClaim | None) -> Waiting:
    valid, passed = counts
    is_strong = group.hold_reason == decisions.SIGNAL_HOLD
    rows = placed.get(verdict[0], []) if verdict else []
    is_valid = bool(verdict and verdict[1])
    failing_share = 1 - passed / valid if valid else 0.0
    moved = spread([factor for *_, factor in rows]) if is_valid else float(passed)
    open_share = 1.0 if is_strong or not is_valid else max(LEAST_UNCERTAINTY, closeness(rows))
    return Waiting(group, valid, passed, failing_share * moved, open_share, is_strong, is_valid, claim)


def spread(factors: list[float]) -> float:
    """How far the factors move credit between the passes, in passes: 0 where all are equal."""
    mean = sum(factors) / len(factors) if factors else 1.0
    return sum(abs(factor / mean - 1) for factor in factors)


def closeness(rows: list[tuple]) -> float:
    """The share of candidates that stand close to another one they are not tied with: (tier, rank, W, factor) rows."""
    by_score = sorted(rows, key=lambda row: row[2])
    close = set()
    for n, (one, other) in enumerate(zip(by_score, by_score[1:], strict=False)):
        if round(other[2] - one[2], PLACES) <= CLOSE and one[:2] != other[:2]:
            close |= {n, n + 1}
    return len(close) / len(rows) if rows else 0.0


@transaction.atomic
def claim(group: RolloutGroup, *, user) -> None:
    """Hold a group for a while, so that two people do not read the same one. Raises Conflict, WrongState."""
    if group.state not in AWAITING_REVIEW:
        raise WrongState(f"group {group.key} is {group.state}: only a group that waits for a person is claimed")
    if not ReviewClaim.take(group, user):
        ReviewClaim.refuse_others(group, user)
        raise Conflict(f"somebody else was faster to claim group {group.key}")
    wake.pages(group.run_id)


@transaction.atomic
def release(group: RolloutGroup, *, user) -> None:
    ReviewClaim.release(group, user)
    wake.pages(group.run_id)


def claim_first(user) -> RolloutGroup | None:
    """Claim the first group that nobody holds; None if there is none."""
    for row in waiting(RolloutGroup.objects.visible_to(user, Role.REVIEWER)):
        if row.claim and row.claim.reviewer_id != user.pk:
            continue
        try:
            claim(row.group, user=user)
        except Conflict:  # taken while we looked: the next one
            continue
        return row.group
    return None


def after(user, pk: int | None) -> RolloutGroup | None:
    """The next group of the queue behind `pk` that nobody else holds; from the top when `pk` is the last."""
    rows = [
        w.group for w in waiting(RolloutGroup.objects.visible_to(user)) if not w.claim or w.claim.reviewer_id == user.pk
    ]
    at = next((n for n, group in enumerate(rows) if group.pk == pk), -1)
    rest = [group for group in (*rows[at + 1 :], *rows[: max(at, 0)]) if group.pk != pk]
    return rest[0] if rest else None


def count_for(user) -> int:
    """How many groups wait for a person, as the top of each page says."""
    return RolloutGroup.objects.visible_to(user).awaiting_review().count()
