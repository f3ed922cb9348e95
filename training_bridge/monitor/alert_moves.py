"""When a sign fires and when it is over: held down both ways, so that a value at the boundary rings once. Core."""

from collections.abc import Mapping
from dataclasses import dataclass

FIRE, RESOLVE = "fire", "resolve"


@dataclass(frozen=True)
class Pace:
    """In steps or seconds: how long it must be bad to fire, well again to be over, and quiet after that."""

    hold: float
    calm: float
    mute: float


BY_STEP = Pace(hold=1, calm=2, mute=10)  # the second bad step in a row fires, the third good one ends it
BY_CLOCK = Pace(hold=10, calm=60, mute=600)


def advance(
    memory: Mapping, *, at: float, is_bad: bool, is_over: bool, is_open: bool, pace: Pace
) -> tuple[dict, str | None]:
    """Take one value in.

    Args:
        memory: what the last call returned, {} at first; keys this function does not know stay.
        at: the step, or seconds. It may go back: a job that returns to a checkpoint repeats its steps.
        is_bad, is_over: beyond the threshold; back inside by more than the band. Never both.
        is_open: whether the sign's alert is open.
        pace: in the unit of `at`.
    Returns:
        the memory to keep, and FIRE, RESOLVE or None. Between the threshold and the band an open alert stays open
        and a closed one closed; after RESOLVE nothing fires for `pace.mute`, then it may at once.
    """
    kept = dict(memory)
    if "muted_to" in kept:
        kept["muted_to"] = min(kept["muted_to"], at + pace.mute)
    against = is_over if is_open else is_bad
    if not against:
        kept.pop("since", None)
        return kept, None
    since = min(kept.get("since", at), at)
    if at - since < (pace.calm if is_open else pace.hold) or (not is_open and at < kept.get("muted_to", at)):
        return kept | {"since": since}, None
    kept.pop("since", None)
    return (kept | {"muted_to": at + pace.mute}, RESOLVE) if is_open else (kept, FIRE)
