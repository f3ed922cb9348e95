"""What a sign says of a window of steps, and whether that is bad. Core."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from training_bridge.monitor.alert_signs import FALL, LEVEL, MIX, RATIO, RISE, SIZE, TIERS, Rule, Sign

TINY = 1e-12
MOST_START = 4  # windows from the run's first step within which a start must be found

Sums = Mapping[str, float]


@dataclass(frozen=True)
class Measured:
    """A window of a sign. `value` is None where it says nothing: too few, or no start to compare with."""

    value: float | None
    n: int = 0
    now: float | None = None  # the window's own number, which the value compares
    before: float | None = None  # the start or the best that it was compared with


def window_number(sign: Sign, window: Sequence[Sums]) -> tuple[float | None, int]:
    """Add up a window.

    Args:
        sign: one that is read by step, no mix.
        window: sums of the steps, at most `rule.window` of them.
    Returns:
        the sum of numerators over the sum of denominators, in the sign's unit (None without a denominator), and how
        many things of `sign.counted` it holds.
    """
    above, below, n = (sum(sums.get(key, 0.0) for sums in window) for key in (*sign.parts, sign.counted[1]))
    return (above / below if abs(below) > TINY else None), int(n)


def mix(sign: Sign, window: Sequence[Sums]) -> tuple[dict[str, float] | None, int]:
    """Shares of the tiers and of tied passes among those that were ranked (None without one), and how many were."""
    n = int(sum(sums.get(sign.counted[1], 0) for sums in window))
    return ({part: sum(sums.get(part, 0) for sums in window) / n for part in sign.parts} if n else None), n


def start_of(sign: Sign, rule: Rule, readings: Sequence[Sums]):
    """What the sign is compared with for the rest of the run.

    Args:
        readings: sums of the run's first steps, in their order.
    Returns:
        the number (of a mix: its shares) over the first `rule.window` steps in which something was counted, or more of
        them until `rule.least` is reached; fewer steps do once `MOST_START` windows have passed. None while there
        are too few.
    """
    told = [sums for sums in readings if sums.get(sign.counted[1])]
    fewest = 1 if len(readings) >= MOST_START * rule.window else rule.window
    for length in range(fewest, len(told) + 1):
        found, n = (mix if sign.kind == MIX else window_number)(sign, told[:length])
        if n >= rule.least:
            return found
    return None


def measure(sign: Sign, rule: Rule, window: Sequence[Sums], *, start, best: float | None = None) -> Measured:
    """What the sign says of the window that ends at a step.

    Args:
        sign: one that is read by step.
        rule: of the run.
        window: sums of its steps.
        start: the same number over the run's first steps (of a mix: its shares); None while there are too few.
        best: of a fall: the highest window so far.
    Returns:
        value in the sign's unit, to be compared with the threshold. A LEVEL is the number, a SIZE its size, a RISE
        the points above the start, a RATIO times the start, a FALL the points below the best, a MIX the larger of
        total variation between tiers and change of the tied share.
    """
    if sign.kind == MIX:
        shares, n = mix(sign, window)
        if shares is None or n < rule.least or start is None:
            return Measured(None, n)
        return Measured(max(_variation(shares, start), abs(shares["tied"] - start["tied"])), n)
    now, n = window_number(sign, window)
    if now is None or n < rule.least:
        return Measured(None, n, now)
    before = _before(sign, start, best)
    if before is None:
        return Measured(None, n, now)
    values = {LEVEL: now, SIZE: abs(now), RISE: now - before, FALL: before - now}
    return Measured(now / before if sign.kind == RATIO else values[sign.kind], n, now, before)


def _variation(shares: Mapping[str, float], start: Mapping[str, float]) -> float:
    """Total variation distance between two mixes of tiers."""
    return sum(abs(shares[tier] - start[tier]) for tier in TIERS) / 2


def _before(sign: Sign, start: float | None, best: float | None) -> float | None:
    """What the window's number is compared with; None where there is nothing yet."""
    if sign.kind in (LEVEL, SIZE):
        return 0.0
    if sign.kind == FALL:
        return best
    if start is None or (sign.kind == RATIO and start <= TINY):
        return None
    return min(start, sign.most_start)


def is_bad(sign: Sign, rule: Rule, value: float) -> bool:
    """Whether the value lies beyond the threshold."""
    return value < rule.threshold if sign.is_low_bad else value > rule.threshold


def is_over(sign: Sign, rule: Rule, value: float) -> bool:
    """Whether the value is back inside by more than the band. Between the two nothing changes."""
    band = sign.band * abs(rule.threshold)
    return value > rule.threshold + band if sign.is_low_bad else value <= rule.threshold - band


def is_worse(sign: Sign, value: float, than: float) -> bool:
    """Whether the value lies further in the bad direction."""
    return value < than if sign.is_low_bad else value > than
