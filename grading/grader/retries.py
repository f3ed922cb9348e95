"""When a call to a model is worth repeating, and after which wait. Core."""

import random
from dataclasses import dataclass
from http import HTTPStatus

TRIES = 5  # of one call
CALLS_PER_ANSWER = 3  # a grading makes at most three times the calls that it needs
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 30.0
RETRY_AFTER_S = 120.0  # an endpoint that asks for more is not waited for
RETRIED_STATUS = frozenset({408, 409, 425, 429})


@dataclass
class RetryBudget:
    """Calls of one grading. `asked` are the answers it needed so far, `made` all calls, repeated ones included."""

    asked: int = 0
    made: int = 0

    def allows(self, tries: int) -> bool:
        """Returns: whether one more try of the same call keeps within five of it and three times the calls overall."""
        return tries < TRIES and self.made < CALLS_PER_ANSWER * self.asked


def is_worth_retrying(status: int) -> bool:
    """Returns: whether an HTTP status may be another one later."""
    return status in RETRIED_STATUS or status >= HTTPStatus.INTERNAL_SERVER_ERROR


def wait_before(tries: int, retry_after_s: float | None, draw: float | None = None) -> float | None:
    """How long to wait before the next try.

    Args:
        tries: tries made so far, 1 or more.
        retry_after_s: what the endpoint asked for, seconds; None where it asked for nothing.
        draw: in [0, 1); None draws one.
    Returns:
        Seconds, doubled by each try and spread by the draw, never less than what was asked for. None if the endpoint
        asks for longer than anybody waits.
    """
    draw = random.random() if draw is None else draw
    doubled = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** (tries - 1))
    spread = doubled * (0.5 + draw / 2)
    if retry_after_s is None:
        return spread
    return None if retry_after_s > RETRY_AFTER_S else retry_after_s + spread / 4
