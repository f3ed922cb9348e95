"""What the server knows itself of each step, added up in the database from payouts, groups and receipts."""

from bisect import bisect_right
from collections import Counter
from datetime import datetime

from django.db.models import Avg, Count, Max, Q, QuerySet, Sum

from grading.models import RolloutGroup, Run
from grading.review.decisions import DEADLINE, GRADER_FAILURE, PAUSED, SHADOW
from grading.states import OPEN
from training_bridge.delivery import REFUSED
from training_bridge.effects import REDISTRIBUTING
from training_bridge.models import Payout, Receipt
from training_bridge.monitor.spans import from_steps
from training_bridge.redistribution import regimes
from training_bridge.redistribution.masks import TINY

OTHER = (regimes.CLIPPED, regimes.BASELINE, regimes.INELIGIBLE, regimes.FILTERED, regimes.EXCLUDED)
NAMED_REASONS = (GRADER_FAILURE, DEADLINE)
FALLBACK = Q(regime=regimes.FALLBACK)
SUMS = {
    "groups": Count("pk"),
    "exact": Count("pk", filter=Q(regime=regimes.EXACT)),
    "bounded": Count("pk", filter=Q(regime=regimes.BOUNDED)),
    "other": Count("pk", filter=Q(regime__in=OTHER)),
    "fallback": Count("pk", filter=FALLBACK),
    "by_grader": Count("pk", filter=FALLBACK & Q(reason=GRADER_FAILURE)),
    "by_deadline": Count("pk", filter=FALLBACK & Q(reason=DEADLINE)),
    "by_other": Count("pk", filter=FALLBACK & ~Q(reason__in=NAMED_REASONS)),
    "n_valid": Sum("valid"),
    "n_passes": Sum("passes"),
    "tier1": Sum("tier_1"),
    "tier2": Sum("tier_2"),
    "tier3": Sum("tier_3"),
    "due": Sum("credit_due"),
    "paid": Sum("credit_paid"),
    "penalty": Sum("penalty_due"),
    "penalised": Sum("penalty_paid"),
    "weighted": Sum("advantage_tokens"),
    "length": Sum("tokens"),
    "graded_in": Avg("grading_s"),
    "slowest": Max("grading_s"),
    "at": Max("declared_at"),
}
WATCHED = {
    "inverted": Count("pk", filter=Q(is_inverted=True)),
    "refused": Count("pk", filter=Q(reason=REFUSED)),
    "trained": Count("pk", filter=~Q(regime__in=(regimes.FILTERED, regimes.EXCLUDED, regimes.INELIGIBLE))),
    "redistributed": Count("pk", filter=Q(regime__in=REDISTRIBUTING)),
    "by_pause": Count("pk", filter=FALLBACK & Q(reason=PAUSED)),
    "by_shadow": Count("pk", filter=FALLBACK & Q(reason=SHADOW)),
}

Series = dict[str, dict[int, float | None]]  # name -> step -> value


def by_step(run: Run, first: int = 0) -> Series:
    """Every derived series of the steps from `first` on. A step counts as soon as one of its groups was delivered."""
    payouts = Payout.objects.filter(run=run, step__gte=first)
    steps = {row["step"]: row for row in payouts.values("step").order_by("step").annotate(**SUMS)}
    series: Series = {}
    for step, row in steps.items():
        for name, value in _shares(row).items():
            series.setdefault(name, {})[step] = value
    for step, used in _own_numbers(run, first).items():
        series.setdefault("fallback_own", {})[step] = used
    return series | _depths(run, payouts, {step: row["at"] for step, row in steps.items()})


def _shares(row: dict) -> dict[str, float | None]:
    weighed = row["tier1"] + row["tier2"] + row["tier3"]
    return {
        "pass_rate": _share(row["n_passes"], row["n_valid"]),
        "credit_kept": _share(row["paid"], row["due"]),
        "penalty_kept": _share(row["penalised"], row["penalty"]),
        "balance": _share(row["weighted"], row["length"]),
        **{f"regime_{name}": _share(row[name], row["groups"]) for name in ("exact", "bounded", "other", "fallback")},
        **{f"tier_{n}": _share(row[f"tier{n}"], weighed) for n in (1, 2, 3)},
        "fallback_grader": row["by_grader"],
        "fallback_deadline": row["by_deadline"],
        "fallback_other": row["by_other"],
        "fallback_own": 0,
        "grading_mean": row["graded_in"],
        "grading_slowest": row["slowest"],
    }


def _share(part: float, whole: float) -> float | None:
    return part / whole if abs(whole) > TINY else None


def _own_numbers(run: Run, first: int) -> dict[int, int]:
    """Groups by their own step that the job trained with numbers of its own: version 0, it did not wait."""
    groups = RolloutGroup.objects.filter(run=run, step__gte=first).values("pk")  # a few, by index: receipts are many
    own = Receipt.objects.filter(group__in=groups, version=0, status=Receipt.Status.APPLIED)
    return dict(own.order_by().values_list("group__step").annotate(Count("group", distinct=True)))


def _depths(run: Run, payouts: QuerySet, declared: dict[int, datetime]) -> Series:
    """Groups that waited for a decision, and for a person, when the last group of a step was declared."""
    if not declared:
        return {}
    since = min(declared.values())
    rows = Payout.objects.filter(run=run, decided_at__gt=since).values_list("declared_at", "held_at", "decided_at")
    waiting = RolloutGroup.objects.filter(run=run, state__in=OPEN)
    spans = [*rows, *((at, graded if held else None, None) for at, graded, held in _open(waiting))]
    open_at = _Depth([(at, until) for at, _, until in spans])
    held_at = _Depth([(held, until) for _, held, until in spans if held])
    return {
        "queue_undecided": {step: open_at(at) for step, at in declared.items()},
        "queue_people": {step: held_at(at) for step, at in declared.items()},
    }


def _open(waiting: QuerySet):
    return waiting.values_list("created_at", "graded_at", "held")


class _Depth:
    """How many spans cover a moment; None as the end is still open."""

    def __init__(self, spans: list[tuple[datetime, datetime | None]]):
        self.begun = sorted(begin for begin, _ in spans)
        self.ended = sorted(end for _, end in spans if end)

    def __call__(self, at: datetime) -> int:
        return bisect_right(self.begun, at) - bisect_right(self.ended, at)


def recent(runs: dict[int, int], last: int) -> dict[int, dict]:
    """The sums of the last steps of several runs: run pk -> sums. `runs` maps a run to its newest step."""
    first = {run: step - last + 1 for run, step in runs.items()}
    rows = Payout.objects.filter(from_steps(first)).values("run").order_by("run").annotate(**SUMS, **WATCHED)
    return {row["run"]: row for row in rows}


def common_reason(sums: dict) -> str:
    """The most frequent reason of the fallbacks in these sums, in words; "" where there is none."""
    reasons = Counter(
        {
            "grader failure": sums["by_grader"],
            DEADLINE: sums["by_deadline"],
            SHADOW: sums["by_shadow"],
            PAUSED: sums["by_pause"],
            "another reason": sums["by_other"] - sums["by_shadow"] - sums["by_pause"],
        }
    )
    reason, n = reasons.most_common(1)[0]
    return reason if n else ""
