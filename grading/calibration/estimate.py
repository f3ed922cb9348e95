"""A figure with everything that must stand beside it: its interval, what it is made of, and why it is missing. Core."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """`value` None: undefined, and `why` says so. `low` None beside a value: no interval, and `why` says so."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0  # pairs, candidates, …: the counted things
    groups: int = 0  # independent ones: what was resampled
    why: str = ""
    is_clipped: bool = False  # the interval left the possible values and was cut there

    @classmethod
    def undefined(cls, why: str, *, n: int = 0, groups: int = 0) -> "Estimate":
        return cls(None, n=n, groups=groups, why=why)

    @property
    def excludes_0(self) -> bool:
        """Whether 0 lies outside the interval; False without one."""
        return self.low is not None and not self.low <= 0 <= self.high
