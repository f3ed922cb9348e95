"""What the signs read of each step, once it is settled: a few sums, written once, so that no look walks the run."""

from collections import defaultdict

from django.db.models import Count, F, Min, Q, Sum

from grading.models import RolloutGroup, Run, Trajectory, VerdictCandidate
from grading.review.decisions import PAUSED, PERSON, SHADOW
from grading.states import OPEN, GroupState, Outcome, Purpose
from training_bridge import paying
from training_bridge.effects import REDISTRIBUTING
from training_bridge.models import Payout, StepReading
from training_bridge.monitor import metrics
from training_bridge.monitor.standing import Standing
from training_bridge.redistribution import regimes

AT_ONCE = 50  # steps a look
LATE_STEPS = 20  # groups may come so many steps late; what is later does not count here
UNTRAINED = (regimes.FILTERED, regimes.EXCLUDED, regimes.INELIGIBLE)
ASKED_FOR = Q(regime=regimes.FALLBACK, reason__in=(PAUSED, SHADOW))
PAID = {
    "trained": Count("pk", filter=~Q(regime__in=UNTRAINED) & ~ASKED_FOR),
    "fallback": Count("pk", filter=Q(regime=regimes.FALLBACK) & ~ASKED_FOR),
    "redistributed": Count("pk", filter=Q(regime__in=REDISTRIBUTING)),
    "bounded": Count("pk", filter=Q(regime=regimes.BOUNDED)),
    "n_valid": Sum("valid"),
    "n_passes": Sum("passes"),
    "due": Sum("credit_due"),
    "paid": Sum("credit_paid"),
    "weighted": Sum("advantage_tokens"),
    "length": Sum("tokens"),
}
LENGTHS = ("response_tokens", "tokens")  # the first that the job reports
REPORTED = ("entropy", *LENGTHS)
UNPAID = (*OPEN, GroupState.DECIDED)


def settled(here: Standing) -> int:
    """The last step that nothing more is expected of; -1 before the first.

    Its metrics are in where the job reports any, and its groups are delivered and counted, or `LATE_STEPS` old.
    """
    if here.step is None:
        return -1
    last = here.metric_step if here.metric_step is not None else here.group_step - 1
    # One question: between two a row may be overtaken by a decision that the first has not seen.
    unpaid = RolloutGroup.objects.filter(run=here.run, state__in=UNPAID).order_by().values("run")
    unpaid = unpaid.annotate(first=Min("step")).values_list("first")
    uncounted = paying.uncounted(here.run).order_by().values("stream").annotate(first=Min("group__step"))
    for (first,) in unpaid.union(uncounted.values_list("first")):
        last = min(last, first - 1)
    return max(last, here.step - LATE_STEPS)


def read_steps(run: Run, first: int, last: int) -> list[StepReading]:
    """The steps from `first` to `last` that have something to read, stored; a step that is read again is replaced."""
    if last < first:
        return []
    found: dict[int, dict] = defaultdict(dict)
    for part in (_paid, _rollouts, _ranked, _reported):
        for step, sums in part(run, first, last).items():
            found[step] |= sums
    rows = [StepReading(run=run, step=step, sums=sums) for step, sums in sorted(found.items())]
    unique = {"unique_fields": ["run", "step"], "update_fields": ["sums", "at"]}
    StepReading.objects.bulk_create(rows, update_conflicts=True, **unique)
    return rows


def _paid(run: Run, first: int, last: int) -> dict[int, dict]:
    rows = Payout.objects.filter(run=run, step__gte=first, step__lte=last).values("step").order_by("step")
    return {row.pop("step"): row for row in rows.annotate(**PAID)}


def _rollouts(run: Run, first: int, last: int) -> dict[int, dict]:
    rows = Trajectory.objects.counted().filter(group__run=run, group__step__gte=first, group__step__lte=last)
    rows = rows.order_by().values(step=F("group__step"))
    counted = rows.annotate(
        rollouts=Count("pk"),
        invalid=Count("pk", filter=Q(outcome=Outcome.INFRA_INVALID)),
        truncated=Count("pk", filter=Q(is_truncated=True)),
    )
    return {row.pop("step"): row for row in counted}


def _ranked(run: Run, first: int, last: int) -> dict[int, dict]:
    """Tiers and ties as graders gave them: a person's correction is no drift of the grader."""
    rows = VerdictCandidate.objects.filter(verdict__group__run=run, verdict__purpose=Purpose.TRAINING)
    rows = rows.filter(verdict__group__step__gte=first, verdict__group__step__lte=last, verdict__is_valid=True)
    rows = (
        rows.exclude(verdict__grader=PERSON).order_by().values_list("verdict__group__step", "verdict", "tier", "rank")
    )
    found: dict[int, dict] = {}
    for step, _, tier, _, n in rows.annotate(Count("pk")):
        sums = found.setdefault(step, dict.fromkeys(("tier1", "tier2", "tier3", "tied", "ranked"), 0))
        sums[f"tier{tier}"] += n
        sums["ranked"] += n
        sums["tied"] += n if n > 1 else 0
    return found


def _reported(run: Run, first: int, last: int) -> dict[int, dict]:
    points = metrics.reported({run.pk: first}, REPORTED)[run.pk]
    lengths = next((points[name] for name in LENGTHS if points[name]), {})
    found: dict[int, dict] = defaultdict(dict)
    for name, values in (("entropy", points["entropy"]), ("response", lengths)):
        for step, value in values.items():
            if step <= last and value is not None:
                found[step] |= {name: value, f"{name}_n": 1}
    return found
