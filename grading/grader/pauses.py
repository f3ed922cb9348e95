"""An endpoint that fails again and again is left alone for a while, ever longer: no storm of new gradings. Core."""

from dataclasses import dataclass, field

FAILURES = 5  # in a row, before the first pause
FIRST_S, LONGEST_S = 4.0, 120.0


@dataclass
class Pauses:
    """How the endpoints fared with this process; times are of one clock that never goes back, in seconds."""

    failures: dict[str, int] = field(default_factory=dict)  # in a row
    until: dict[str, float] = field(default_factory=dict)

    def ended(self, endpoint: str, *, failed: bool, now: float) -> float:
        """Note how a grading ended. Returns: for how long nothing new is started there, 0 for no pause."""
        if not failed:
            self.failures.pop(endpoint, None)
            self.until.pop(endpoint, None)
            return 0.0
        count = self.failures[endpoint] = self.failures.get(endpoint, 0) + 1
        pause_s = min(FIRST_S * 2 ** min(count - FAILURES, 16), LONGEST_S) if count >= FAILURES else 0.0
        if pause_s:
            self.until[endpoint] = now + pause_s
        return pause_s

    def lasts(self, endpoint: str, *, now: float) -> bool:
        """Returns: whether the endpoint is left alone now."""
        return now < self.until.get(endpoint, now)
