"""What the server knows itself of each step: curves of the sums that deliveries and receipts keep up to date."""

from collections import Counter, defaultdict
from datetime import datetime

from django.db.models import Max, Min, Q

from grading.models import Run
from grading.review.decisions import DEADLINE, PAUSED, SHADOW
from training_bridge.models import StepSum
from training_bridge.monitor.spans import from_steps
from training_bridge.monitor.sums import SPANS, Sums, Values, added, values

MOST_ROWS = 1000
NAMES = tuple(values({}))
Series = dict[str, dict[int, float | None]]  # name -> step -> value
ZERO: Sums = dict.fromkeys(("groups", "trained", "fallback", "redistributed", "bounded", "inverted", "refused"), 0)
ZERO |= dict.fromkeys(("due", "paid", "penalty", "penalised", "weighted", "length", "n_valid", "n_passes"), 0)
ZERO |= dict.fromkeys(("by_grader", "by_deadline", "by_shadow", "by_pause", "by_other", "tier1", "tier2", "tier3"), 0)


def by_step(run: Run) -> Series:
    """Every derived series, every step on its own: for a program that reads a whole run, not for a page."""
    rows = StepSum.objects.filter(run=run, span=1).order_by("step")
    return curves(rows.values_list("step", "paid", "told"))


def between(run: Run, first: int = 0, last: int | None = None) -> tuple[Series, bool]:
    """Every derived series of the steps from `first` to `last`. A step counts from its first delivered group on.

    A long range is pooled over several steps a point, which stands at the last of them: the answer's second part.
    """
    rows = StepSum.objects.filter(run=run, step__gte=first)
    rows = rows if last is None else rows.filter(step__lte=last)
    ends = rows.filter(span=1).aggregate(low=Min("step"), high=Max("step"))
    if ends["low"] is None:
        return {}, False
    span = span_of(ends["high"] - ends["low"] + 1)
    rows = StepSum.objects.filter(run=run, span=span, step__gte=first - first % span, step__lte=ends["high"])
    return curves(rows.order_by("step").values_list("step", "paid", "told")), span > 1


def some(run: Run, first: int, last: int, most: int) -> Series:
    """The next steps of a range, unpooled."""
    rows = StepSum.objects.filter(run=run, span=1, step__gte=first, step__lte=last, paid__has_key="groups")
    return curves(rows.order_by("step").values_list("step", "paid", "told")[:most])


def span_of(steps: int) -> int:
    """The narrowest span that covers so many steps with few rows."""
    return next((span for span in SPANS if steps <= span * MOST_ROWS), SPANS[-1])


def changed(run: Run, since: datetime) -> Series:
    """Every derived series at the steps whose sums changed since then."""
    rows = StepSum.objects.filter(run=run, span=1, changed_at__gte=since)
    return curves(rows.order_by("step").values_list("step", "paid", "told")[:MOST_ROWS])


def curves(rows) -> Series:
    series: Series = defaultdict(dict)
    for step, paid, told in rows:
        if not paid.get("groups"):
            continue  # the job spoke of groups that are not delivered: they count with their delivery
        found: Values = values(added(paid, told))
        for name, value in found.items():
            series[name][int(paid.get("max_step", step))] = value
    return dict(series)


def newest(run: Run) -> datetime | None:
    """When the sums of the run changed last."""
    return StepSum.objects.filter(run=run, span=1).aggregate(at=Max("changed_at"))["at"]


def recent(runs: dict[int, int], last: int) -> dict[int, dict]:
    """The sums of the last steps of several runs: run pk -> sums. `runs` maps a run to its newest step."""
    rows = StepSum.objects.filter(from_steps({run: step - last + 1 for run, step in runs.items()}), Q(span=1))
    found: dict[int, Sums] = {}
    for run, paid, told in rows.values_list("run", "paid", "told"):
        if paid.get("groups"):
            found[run] = added(added(found.get(run, {}), paid), told)
    return {run: _named(sums) for run, sums in found.items()}


def _named(sums: Sums) -> dict:
    shares = {"fallback": sums.get("regime_fallback", 0), "bounded": sums.get("regime_bounded", 0)}
    return ZERO | sums | shares


def common_reason(sums: dict) -> str:
    """The most frequent reason of the fallbacks in these sums, in words; "" where there is none."""
    reasons = Counter(
        {
            "grader failure": sums["by_grader"],
            DEADLINE: sums["by_deadline"],
            SHADOW: sums["by_shadow"],
            PAUSED: sums["by_pause"],
            "another reason": sums["by_other"],
        }
    )
    reason, n = reasons.most_common(1)[0]
    return reason if n else ""
