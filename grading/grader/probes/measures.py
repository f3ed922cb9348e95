"""Shares with their intervals, and how surprising a count is. Core."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any

Z = 1.959963984540054  # two-sided 95 %


@dataclass(frozen=True)
class Figure:
    """One number of a probe. `rule` is what a fair grader keeps; `kept` None where there is no rule or no data."""

    probe: str
    name: str
    value: float | None
    n: int
    interval: tuple[float, float] | None = None
    p: float | None = None
    rule: str = ""
    kept: bool | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def wilson(hits: float, n: int) -> tuple[float, float] | None:
    """The 95 % interval of a share.

    Args:
        hits: of n; half a hit counts for a tie.
        n: trials.
    Returns:
        (low, high) within [0, 1]; None without a trial.
    """
    if not n:
        return None
    share, middle = hits / n, (hits + Z * Z / 2) / (n + Z * Z)
    half = Z * sqrt(share * (1 - share) / n + Z * Z / (4 * n * n)) / (1 + Z * Z / n)
    return (max(0.0, middle - half), min(1.0, middle + half))


def tail(hits: int, chances: Sequence[float]) -> float:
    """How likely at least so many hits are by chance: the binomial test, one-sided.

    Args:
        hits: seen.
        chances: of each trial, which may differ (1/n of its candidates).
    Returns:
        P(X >= hits), exact.
    """
    of = [1.0]  # of[k]: probability of k hits so far
    for chance in chances:
        of = [a * (1 - chance) + b * chance for a, b in zip([*of, 0.0], [0.0, *of], strict=True)]
    return min(1.0, sum(of[hits:]))


def share(probe: str, name: str, hits: float, n: int, **more: Any) -> Figure:
    """Returns: a figure of hits in n, with its interval."""
    return Figure(probe, name, hits / n if n else None, n, wilson(hits, n), **more)


def mean(values: Sequence[float]) -> tuple[float | None, tuple[float, float] | None]:
    """Returns: the mean and its 95 % interval by the normal law; None without values, no interval for a single one."""
    if not values:
        return None, None
    middle = sum(values) / len(values)
    if len(values) < 2:
        return middle, None
    spread = sqrt(sum((v - middle) ** 2 for v in values) / (len(values) - 1) / len(values))
    return middle, (middle - Z * spread, middle + Z * spread)
