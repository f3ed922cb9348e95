"""What the groups of a step add up to: sums that can be added over steps too, and the curves that follow from them."""

import math
from collections.abc import Iterable, Mapping
from statistics import NormalDist

from grading.review.decisions import DEADLINE, GRADER_FAILURE, PAUSED, SHADOW
from training_bridge.effects import REDISTRIBUTING
from training_bridge.redistribution import regimes
from training_bridge.redistribution.masks import TINY

Sums = dict[str, float]  # name -> number; a name that begins with `max_` is the largest, every other one a sum
Values = dict[str, float | None]

LARGEST = "max_"
SAMPLED = ("max_undecided", "max_people")  # 0 says more than nothing
EVEN_ZERO = ("groups", "max_step", *SAMPLED)
SPANS = (1, 16, 256, 4096)  # steps; of each there is a row, so that a curve of any length is a thousand rows
NAMED = {GRADER_FAILURE: "by_grader", DEADLINE: "by_deadline", SHADOW: "by_shadow", PAUSED: "by_pause"}
NOT_TRAINED = (regimes.FILTERED, regimes.EXCLUDED, regimes.INELIGIBLE)
OTHER = (regimes.CLIPPED, regimes.BASELINE, regimes.INELIGIBLE, regimes.FILTERED, regimes.EXCLUDED)
BIN, FIRST_S, RATIO, BINS = "bin_", 0.1, 1.25, 64  # of grading time: from 0.1 s, each a quarter longer than the last
QUANTILES = {"grading_median": 0.5, "grading_p90": 0.9}
NORMAL_95 = NormalDist().inv_cdf(0.975)


def of_payout(payout, refused: str) -> Sums:
    """What one group adds to its step. `refused` is the reason of numbers that could not be used."""
    found: Sums = {"groups": 1, f"regime_{payout.regime}": 1}
    if payout.regime == regimes.FALLBACK:
        found[NAMED.get(payout.reason, "by_other")] = 1
    valid, passes = payout.valid, payout.passes
    found |= {"n_valid": valid, "n_passes": passes, "rated": int(valid > 0)}
    found |= {"pp": passes * passes, "pn": passes * valid, "nn": valid * valid}  # for the interval of the pass rate
    found |= {f"tier{n}": getattr(payout, f"tier_{n}") for n in (1, 2, 3)}
    found |= {"due": payout.credit_due, "paid": payout.credit_paid}
    found |= {"penalty": payout.penalty_due, "penalised": payout.penalty_paid}
    found |= {"weighted": payout.advantage_tokens, "length": payout.tokens}
    found |= {"factors": payout.factors, "factor_sum": payout.factor_sum}
    found |= {"inverted": int(payout.is_inverted), "refused": int(payout.reason == refused)}
    found |= {"trained": int(payout.regime not in NOT_TRAINED), "missed": int(payout.by_deadline)}
    if payout.regime in REDISTRIBUTING:
        found["redistributed"] = 1
    if payout.lambda_used is not None:
        found |= {"lambdas": 1, "lambda_sum": payout.lambda_used, "max_lambda": payout.lambda_used}
    if payout.deficit is not None:
        found |= {"downweighted": 1, "deficit": payout.deficit}
    if payout.grading_s is not None:
        found |= {"graded": 1, "graded_s": payout.grading_s, "max_graded_s": payout.grading_s}
        found[f"{BIN}{_bin(payout.grading_s)}"] = 1
    found |= {"max_declared": payout.declared_at.timestamp(), "max_step": payout.step}
    return {name: value for name, value in found.items() if value or name in EVEN_ZERO}


def total(many: Iterable[Mapping[str, float]]) -> Sums:
    """All of them together; the largest of what is a largest."""
    found: Sums = {}
    for sums in many:
        for name, value in sums.items():
            before = found.get(name)
            if before is None:
                found[name] = value
            else:
                found[name] = max(before, value) if name.startswith(LARGEST) else before + value
    return found


def added(to: Mapping[str, float], more: Mapping[str, float], *, less: Mapping[str, float] | None = None) -> Sums:
    """Both together, without `less`; the largest of what is a largest."""
    found = dict(to)
    for name, value in more.items():
        largest = name.startswith(LARGEST) and name in found
        found[name] = max(found[name], value) if largest else found.get(name, 0) + value
    for name, value in (less or {}).items():
        if not name.startswith(LARGEST):
            found[name] = found.get(name, 0) - value
    return {name: value for name, value in found.items() if value or name in EVEN_ZERO}


def values(sums: Mapping[str, float]) -> Values:
    """The curves of a step, or of several steps pooled; None where there is nothing to divide by."""

    def n(name: str) -> float:
        return sums.get(name, 0)

    weighed = sum(n(f"tier{k}") for k in (1, 2, 3))
    other = sum(n(f"regime_{name}") for name in OTHER)
    low, high = interval(sums)
    return {
        "pass_rate": share(n("n_passes"), n("n_valid")),
        "pass_rate_low": low,
        "pass_rate_high": high,
        "credit_kept": share(n("paid"), n("due")),
        "penalty_kept": share(n("penalised"), n("penalty")),
        "balance": share(n("weighted"), n("length")),
        "deficit": share(n("deficit"), n("downweighted")),
        **{f"regime_{name}": share(n(f"regime_{name}"), n("groups")) for name in ("exact", "bounded", "fallback")},
        "regime_other": share(other, n("groups")),
        **{f"tier_{k}": share(n(f"tier{k}"), weighed) for k in (1, 2, 3)},
        "factor_mean": share(n("factor_sum"), n("factors")),
        "lambda_mean": share(n("lambda_sum"), n("lambdas")),
        "lambda_highest": sums.get("max_lambda"),
        "cap_share": share(n("regime_bounded"), n("redistributed")),
        "fallback_grader": n("by_grader"),
        "fallback_deadline": n("by_deadline"),
        "fallback_other": n("by_shadow") + n("by_pause") + n("by_other"),
        "fallback_own": n("own"),
        "deadlines_missed": n("missed"),
        "grading_mean": share(n("graded_s"), n("graded")),
        "grading_slowest": sums.get("max_graded_s"),
        **{name: quantile(sums, q) for name, q in QUANTILES.items()},
        "queue_undecided": sums.get("max_undecided"),
        "queue_people": sums.get("max_people"),
        "sent_after_mean": share(n("sent_after_s"), n("sent")),
        "sent_after_slowest": sums.get("max_sent_after_s", 0.0 if n("sent") else None),
        "used_after_steps": share(n("used_after_steps"), n("used")),
        "came_too_late": n("told_too_late") + n("told_expired"),
    }


def share(part: float, whole: float) -> float | None:
    return part / whole if abs(whole) > TINY else None


def interval(sums: Mapping[str, float]) -> tuple[float | None, float | None]:
    """The 95 % interval of the pass rate: Wilson's, for as many rollouts as the groups are worth.

    Rollouts of one group are alike. The variance between groups says how many independent ones they stand for.

    Returns:
        (None, None) below two groups with valid rollouts.
    """
    groups, n, passes = (sums.get(name, 0) for name in ("rated", "n_valid", "n_passes"))
    if groups < 2 or n <= 0:
        return None, None
    p = passes / n
    spread = sums.get("pp", 0) - 2 * p * sums.get("pn", 0) + p * p * sums.get("nn", 0)
    variance = groups / (groups - 1) * max(spread, 0.0) / n**2
    worth = min(n, p * (1 - p) / variance) if variance > TINY and 0 < p < 1 else n
    z2 = NORMAL_95**2
    wide = 1 + z2 / worth
    middle = (p + z2 / (2 * worth)) / wide
    reach = NORMAL_95 * math.sqrt(p * (1 - p) / worth + z2 / (4 * worth**2)) / wide
    return max(0.0, middle - reach), min(1.0, middle + reach)


def _bin(seconds: float) -> int:
    return min(BINS - 1, max(0, math.floor(math.log(max(seconds, FIRST_S) / FIRST_S, RATIO) + 1e-9)))


def quantile(sums: Mapping[str, float], q: float) -> float | None:
    """The time, s, that a share `q` of the gradings stayed below, to within a quarter of itself; None without any."""
    counts = {int(name.removeprefix(BIN)): n for name, n in sums.items() if name.startswith(BIN) and n > 0}
    wanted = q * sum(counts.values())
    if not counts:
        return None
    below = 0.0
    for place in sorted(counts):
        if below + counts[place] >= wanted:
            inside = (wanted - below) / counts[place]
            found = FIRST_S * RATIO ** (place + inside)
            return min(found, sums.get("max_graded_s", found))
        below += counts[place]
    return sums.get("max_graded_s")
