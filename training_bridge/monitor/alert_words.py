"""What an alert says: the value, what it is compared with, of how many, with an interval where it is a share. Core."""

from grading.grader.probes.measures import wilson
from training_bridge.monitor.alert_signs import (
    COUNT,
    FALL,
    LEVEL,
    MINUTES,
    MIX,
    NOW,
    POINTS,
    RATIO,
    REWARD,
    SHARE,
    SIZE,
    TAU_B,
    TIMES,
    Rule,
    Sign,
)
from training_bridge.monitor.alert_values import Measured

UNITS = {
    SHARE: "share, 0 to 1",
    POINTS: "points, 0 to 1",
    TIMES: "times",
    REWARD: "reward units",
    COUNT: "a count",
    MINUTES: "minutes",
    TAU_B: "τ-b, -1 to 1",
}
INDEPENDENT = ("groups", "receipts")  # rollouts of one group are not: no interval is claimed for them


def number(unit: str, value: float | None) -> str:
    """A value in its unit, as one reads it; "-" where it is undefined."""
    if value is None:
        return "-"
    match unit:
        case "share":
            return f"{value * 100:.0f} %"
        case "points":
            return f"{value * 100:.1f} points"
        case "times":
            return f"{value:.2f} times"
        case "reward":
            return f"{value:.3f}"
        case "minutes":
            return f"{int(value)} min"
        case "tau_b":
            return f"τ-b {value:.2f}"
    return f"{value:g}"


def said(sign: Sign, rule: Rule, found: Measured, *, more: str = "") -> str:
    """One line: `31 % over 10 steps (22 to 42 %, n = 80 groups)`."""
    counted = f"n = {found.n} {sign.counted[0]}"
    if sign.kind == NOW:
        words = number(sign.unit, found.value) if sign.unit != COUNT else f"{int(found.value or 0)} {sign.counted[0]}"
        told = f"{words} ({counted})" if sign.unit == SHARE else words
        return f"{told}: {more}" if more else told
    over = f"over {rule.window} step{'s' * (rule.window != 1)}"
    if sign.kind in (LEVEL, SIZE):
        return f"{_level(sign, found)} {over} ({_interval(sign, found)}{counted})"
    if sign.kind == MIX:
        return f"{number(POINTS, found.value)} from the first steps ({over}, {counted})"
    unit = SHARE if sign.unit == POINTS else ""
    now, before = (number(unit, value) if unit else f"{value:.3g}" for value in (found.now, found.before))
    than = (
        "below the best window"
        if sign.kind == FALL
        else "the first steps"
        if sign.kind == RATIO
        else "above the first steps"
    )
    return f"{number(sign.unit, found.value)} {than}: {now} against {before} ({over}, {counted})"


def _level(sign: Sign, found: Measured) -> str:
    return f"{found.now:+.3f}" if sign.kind == SIZE else number(sign.unit, found.value)


def _interval(sign: Sign, found: Measured) -> str:
    """95 %, of a share of groups that is a count of them; credit is a sum, not a count."""
    if sign.unit != SHARE or sign.counted[0] not in INDEPENDENT or sign.parts[1] != sign.counted[1]:
        return ""
    low, high = wilson(found.value * found.n, found.n)
    return f"{low * 100:.0f} to {high * 100:.0f} %, "
