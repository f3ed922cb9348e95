"""Where a held group stands in the queue: influence x uncertainty, stored on the group whenever it changes.

Influence is the credit that the verdict moves between the passes: (1 - pass rate) x sum |f_i / mean(f) - 1|, and
(1 - pass rate) x passes without a valid verdict. Uncertainty, 0.1 to 1, is the share of candidates within 0.25 of W of
another, not tied; 1 without a valid verdict, with a strong signal, where shuffled orders flip or reviewers differ.
"""

from django.db import transaction
from django.db.models import Count, FloatField, Q
from django.db.models.functions import Cast

from grading.models import RolloutGroup, Signal, Trajectory, Verdict, VerdictCandidate
from grading.states import Outcome, Purpose

CLOSE = 0.25
USUAL = 200  # groups of the run whose mean priority is the usual one
PLACES = 9  # of a stored W
LEAST_UNCERTAINTY = 0.1
SIGNAL_HOLD = "strong integrity signal"
OPEN_QUESTIONS = (SIGNAL_HOLD, "order flips")  # held because nobody can be sure


def counted(path: str = "") -> Q:
    """Whether a rollout counts, for queries over rollouts (`path` "") or over what has them."""
    counts = Q(**{f"{path}is_late": False}) & ~Q(**{f"{path}outcome": Outcome.INFRA_INVALID})
    return counts & (Q(run__mask_truncated=False) | Q(**{f"{path}is_truncated": False}))


def counts(path: str = "") -> dict[str, Count]:
    """Annotations: how many rollouts count, and how many of them pass."""
    passes = Q(**{f"{path}outcome": Outcome.PASSED, f"{path}integrity": ""})
    rows = f"{path}pk"
    return {
        "valid": Count(rows, filter=counted(path)),
        "passed": Count(rows, filter=counted(path) & passes),
    }


def place(groups) -> int:
    """Count and store the place of these held groups, in a constant number of reads. Returns how many."""
    rows = list(groups.only("pk", "hold_reason"))
    pks = [group.pk for group in rows]
    found = Trajectory.objects.filter(group__in=pks).order_by().values("group_id").annotate(**counts())
    passing = {group: (valid, passed) for group, valid, passed in found.values_list("group_id", "valid", "passed")}
    verdicts = _newest_verdicts(pks)
    settled = _settled_hints(pks)
    placed = _placements(pks, {pk for pk, is_valid in verdicts.values() if is_valid})
    standing: dict[int, dict[str, float]] = {}
    for group in rows:
        verdict = verdicts.get(group.pk)
        ranked = placed.get(verdict[0], []) if verdict else []
        is_valid = bool(verdict and verdict[1])
        is_strong = group.hold_reason in OPEN_QUESTIONS and group.pk not in settled
        found = _standing(passing.get(group.pk, (0, 0)), ranked, is_valid, is_strong)
        standing[group.pk] = dict(zip(("influence", "uncertainty"), found, strict=True))
    with transaction.atomic():  # one CASE over thousands of rows is slower than as many small updates
        for pk, fields in standing.items():
            RolloutGroup.objects.filter(pk=pk).update(**fields)
    return len(standing)


def place_again(group: RolloutGroup) -> None:
    """After its newest verdict or its rollouts changed."""
    place(RolloutGroup.objects.awaiting_review().filter(pk=group.pk))


def priority(group: RolloutGroup) -> tuple[float, float | None]:
    """Influence x uncertainty of a group that was just graded, stored with it, and the mean of those before it."""
    place(RolloutGroup.objects.filter(pk=group.pk))
    group.refresh_from_db(fields=["influence", "uncertainty"])
    before = RolloutGroup.objects.filter(run=group.run_id, influence__isnull=False).exclude(pk=group.pk)
    usual = [i * u for i, u in before.order_by("-pk").values_list("influence", "uncertainty")[:USUAL]]
    return group.influence * group.uncertainty, sum(usual) / len(usual) if usual else None


def _settled_hints(pks: list[int]) -> set[int]:
    """Groups held for hints of which a person has ruled every strong one wrong."""
    strong = Signal.objects.filter(group__in=pks, is_strong=True)
    wrong = set(strong.filter(is_wrong=True, group__hold_reason=SIGNAL_HOLD).values_list("group", flat=True))
    return wrong - set(strong.standing().values_list("group", flat=True)) if wrong else set()


def _newest_verdicts(pks: list[int]) -> dict[int, tuple[int, bool]]:
    """Group -> (verdict, is it valid)."""
    rows = Verdict.objects.filter(group__in=pks, purpose=Purpose.TRAINING).order_by("pk")
    return {group: (pk, is_valid) for group, pk, is_valid in rows.values_list("group_id", "pk", "is_valid")}


def _placements(pks: list[int], verdicts: set[int]) -> dict[int, list[tuple]]:
    """Verdict -> (tier, rank, W, factor) of each candidate."""
    placed: dict[int, list[tuple]] = {pk: [] for pk in verdicts}
    rows = VerdictCandidate.objects.filter(verdict__group__in=pks, verdict__purpose=Purpose.TRAINING)
    score = Cast("weighted_score", FloatField())  # as the database keeps it: thousands of decimals cost time
    for verdict, *row in rows.order_by().values_list("verdict_id", "tier", "rank", score, "factor"):
        if verdict in placed:
            placed[verdict].append(tuple(row))
    return placed


def _standing(passing: tuple[int, int], ranked: list[tuple], is_valid: bool, is_strong: bool) -> tuple[float, float]:
    valid, passed = passing
    failing_share = 1 - passed / valid if valid else 0.0
    moved = spread([factor for *_, factor in ranked]) if is_valid else float(passed)
    uncertainty = 1.0 if is_strong or not is_valid else max(LEAST_UNCERTAINTY, closeness(ranked))
    return failing_share * moved, uncertainty


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
